"""The files of a run: where they are, what they hold, and what a failed write leaves."""

import errno
import json
import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from safetensors import safe_open

from app.errors import AppError
from app.run.config import Config, dump_config, load_config
from app.run.folder import RunFolder

ONE = {"a": np.ones(1, np.float32)}


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def new(output="run", **settings):
    return RunFolder.new(Config(output=output, **settings))


def test_folders_of_one_second_are_separate_and_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("app.run.folder._now", lambda: "now")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    paths = []
    for output in (None, None, None, "~/run"):
        with new(output) as folder:
            paths.append(str(folder.path))
    assert paths == [
        "runs/custom.relu-relu-now",
        "runs/custom.relu-relu-now-2",
        "runs/custom.relu-relu-now-3",
        f"{tmp_path}/home/run",
    ]


def test_of_two_runs_that_begin_at_once_in_one_folder_one_is_refused(monkeypatch):
    def slow(config):
        time.sleep(0.05)
        return dump_config(config)

    monkeypatch.setattr("app.run.folder.dump_config", slow)

    def begin(seed):
        try:
            with new(seed=seed):
                return seed
        except AppError as error:
            return str(error)

    with ThreadPoolExecutor(2) as pool:
        first, second = sorted(pool.map(begin, (1, 2)), key=str)
    assert second.startswith(("run already holds a run", "run is not empty"))
    assert load_config("run/config.yaml").seed == first


def test_a_run_that_begins_just_after_the_folder_was_found_empty_keeps_its_configuration(monkeypatch):
    def listed(path, names=os.listdir):
        entries = names(path)
        (Path(path) / "config.yaml").write_text("seed: 1")
        return entries

    monkeypatch.setattr(os, "listdir", listed)
    with pytest.raises(AppError, match="run is not empty"):
        new(seed=2)
    assert Path("run/config.yaml").read_text() == "seed: 1"
    assert not Path("run/metrics.jsonl").exists()


def test_metrics_are_written_at_once_as_strict_json():
    with new() as folder:
        for loss in ("nan", "-inf", "1"):
            folder.record({"event": "x", "loss": float(loss)})
        lines = Path("run/metrics.jsonl").read_text().splitlines()
    assert [json.loads(line, parse_constant=pytest.fail)["loss"] for line in lines] == [None, None, 1.0]


def test_every_file_has_the_permissions_of_the_umask():
    with new() as folder:
        folder.save_weights("relu", ONE)
        folder.save_text("summary.txt", "text")
    assert len(list(Path("run").iterdir())) == 4
    modes = {stat.S_IMODE(file.stat().st_mode) for file in Path("run").iterdir()}
    umask = os.umask(0)
    os.umask(umask)
    assert modes == {0o666 & ~umask}


@pytest.mark.parametrize(
    ("operator", "file"),
    [
        ("relu", "weights-relu.safetensors"),
        ("my_ops.py:swish", "weights-my_ops.py-swish.safetensors"),
        ("../../etc/my ops.py:größe", "weights-..-..-etc-my-ops.py-größe.safetensors"),
        ("/" + "long/" * 100 + "my_ops.py:swish", "weights" + "-long" * 9 + "-my_ops.py-swish.safetensors"),
    ],
)
def test_weights_are_in_a_file_named_after_their_operator(operator, file):
    weights = {"weight": np.arange(6, dtype=np.float32).reshape(2, 3), "bias": np.zeros(3, np.float32)}
    with new() as folder:
        folder.save_weights(operator, weights)
    (written,) = Path("run").glob("weights-*")
    assert written.name == file
    with safe_open(written, "numpy") as tensors:
        assert tensors.metadata() == {"operator": operator}
        assert set(tensors.keys()) == set(weights)
        for name, array in weights.items():
            np.testing.assert_array_equal(tensors.get_tensor(name), array)


def test_operators_whose_files_would_have_one_name_have_two():
    with new() as folder:
        for operator in ("a/b.py:f", "a-b.py:f"):
            folder.save_weights(operator, ONE)
    names = sorted(file.name for file in Path("run").glob("weights-*"))
    assert names == ["weights-a-b.py-f-2.safetensors", "weights-a-b.py-f.safetensors"]


@pytest.mark.parametrize("name", ["config.yaml", "report.html", "notes"])
def test_a_run_does_not_begin_in_a_folder_with_other_files(name):
    Path(name).write_text("mine\n")
    with pytest.raises(AppError) as error:
        new(".")
    assert str(error.value) == (
        f". is not empty, and not the folder of a run with these settings: it has {name}. "
        "Choose a new or empty folder, such as output=run"
    )
    assert {file.name: file.read_text() for file in Path().iterdir()} == {name: "mine\n"}
    with pytest.raises(
        AppError, match=r"^/ is not empty, and not the folder of a run with these settings: it has .* and [0-9]+ more"
    ):
        new("/")


def test_a_run_that_was_killed_before_its_metrics_began_may_begin_again():
    new().__exit__(None, None, None)
    Path("run/metrics.jsonl").unlink()
    with new() as folder:
        assert folder.metrics() == b""


def test_what_a_killed_process_was_writing_is_removed_when_its_run_is_resumed():
    new().__exit__(None, None, None)
    Path("run/.checkpoint.safetensors.0f.part").write_bytes(b"half")
    Path("run/.notes").write_bytes(b"mine")
    with RunFolder.again(Path("run")):
        assert sorted(os.listdir("run")) == [".notes", "config.yaml", "metrics.jsonl"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_under_the_metrics_is_an_error_that_names_the_file():
    Path("run").mkdir()
    folder = RunFolder(Path("run"), open("/dev/full", "w"))  # noqa: SIM115 - the folder closes it
    message = r"^run/metrics.jsonl cannot be written: No space left on device$"
    with pytest.raises(AppError, match=message):
        folder.record({"event": "x"})
    with pytest.raises(AppError, match=message):  # by what is still in the buffer
        folder.__exit__(None, None, None)


def test_a_failed_write_leaves_the_old_file(monkeypatch):
    with new() as folder:
        folder.save_weights("relu", ONE)
        folder.save_text("summary.txt", "text")
    before = {file: file.read_bytes() for file in Path("run").iterdir()}
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
    with RunFolder.again(Path("run")) as folder:
        with pytest.raises(AppError, match=r"^run/summary.txt cannot be written: No space left on device$"):
            folder.save_text("summary.txt", "another")
        with pytest.raises(AppError, match=r"^run/weights-relu.safetensors cannot be written: No space left on"):
            folder.save_weights("relu", {"a": np.zeros(1, np.float32)})
    assert {file: file.read_bytes() for file in Path("run").iterdir()} == before
