"""What a run keeps: equal bytes for equal runs, hashes by which a change is noticed, and the operator as imported."""

from __future__ import annotations

import hashlib
import itertools
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from interrupted_runs import LONGER, stopped_at
from PIL import Image

from app.__main__ import main
from app.errors import FileError
from app.experiment.train_command import main as train_py
from app.run.folder import check_sums

pytestmark = pytest.mark.slow

Train = Callable[..., Any]


@pytest.fixture(scope="module")
def _kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept") / "run"


@pytest.fixture
def kept(train: Train, tmp_path: Path, _kept: Path) -> Path:
    """The folder of a run with all that a run keeps. It is made once, and copied."""
    if not _kept.exists():
        run = train("report=true", "train.epochs=1")
        assert run.status == 0
        shutil.move(run.folder, _kept)
    return Path(shutil.copytree(_kept, tmp_path / "run"))


# --- Two equal runs ---


def test_two_equal_runs_keep_the_same_bytes(train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    contents = []
    for _ in range(2):
        seconds = itertools.count()
        for clock in ("perf_counter", "monotonic", "time"):
            monkeypatch.setattr(time, clock, lambda seconds=seconds: next(seconds) / 8)
        monkeypatch.setattr(time, "strftime", lambda *_: "now")
        run = train("report=true", "costs=true", "train.checkpoint_every=3")
        monkeypatch.undo()
        monkeypatch.chdir(tmp_path)
        assert run.status == 0
        contents.append({f.relative_to(run.folder): f.read_bytes() for f in run.folder.rglob("*") if f.is_file()})
        shutil.rmtree(run.folder)
    first, second = contents
    assert {str(name) for name in first} >= {"answers.safetensors", "SHA256SUMS", "report.html", "curves.png"}
    assert [name for name in first if first[name] != second.get(name)] == []
    assert first.keys() == second.keys()


# --- A file that was changed ---


def test_every_file_of_a_run_has_its_hash(kept: Path):
    assert check_sums(kept)
    assert subprocess.run(["sha256sum", "-c", "--strict", "SHA256SUMS"], cwd=kept, check=False).returncode == 0
    listed = {line.split("  ")[1] for line in (kept / "SHA256SUMS").read_text().splitlines()}
    made_again = {"report.html", "curves.png", "SHA256SUMS", "checkpoints"}
    assert listed == {file.name for file in kept.iterdir()} - made_again


def test_a_flipped_bit_in_any_file_is_noticed(kept: Path, capsys: pytest.CaptureFixture[str]):
    before = (kept / "report.html").read_bytes()
    for file in [file for file in kept.iterdir() if file.is_file() and file.suffix not in (".html", ".png")]:
        whole = file.read_bytes()
        for place in (len(whole) // 2, len(whole) - 2):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(FileError, match=r"differs from what the run wrote|SHA256SUMS, line|is missing"):
                check_sums(kept)
            assert main(["report", str(kept)]) == 1
        file.write_bytes(whole)
    assert (kept / "report.html").read_bytes() == before
    capsys.readouterr()
    assert main(["report", str(kept)]) == 0
    assert capsys.readouterr().err == ""


def test_changed_digits_in_the_metrics_are_told(kept: Path, capsys: pytest.CaptureFixture[str]):
    metrics = kept / "metrics.jsonl"
    text = metrics.read_text()
    metrics.write_text(text.replace('"test_accuracy": 0.', '"test_accuracy": 0.9'))
    digest = hashlib.sha256(metrics.read_bytes()).hexdigest()
    assert main(["report", str(kept)]) == 1
    told = capsys.readouterr().err
    assert told.startswith(
        f"error: {metrics} differs from what the run wrote: its SHA-256 is {digest}, and SHA256SUMS has "
    )
    assert told.endswith(f"If you know why and want to use it, remove {kept / 'SHA256SUMS'}\n")
    (kept / "SHA256SUMS").unlink()
    assert main(["report", str(kept)]) == 0


def test_a_file_that_is_gone_is_named(kept: Path):
    (kept / "weights-relu.safetensors").unlink()
    with pytest.raises(FileError, match=r"weights-relu.safetensors is missing, but the run wrote it"):
        check_sums(kept)


@pytest.mark.parametrize("text", ["", "x", "0" * 64 + "  ../../etc/passwd\n", "0" * 64 + "  config.yaml\n"])
def test_damaged_hashes_are_told(kept: Path, text: str):
    (kept / "SHA256SUMS").write_text(text)
    with pytest.raises(FileError, match="SHA256SUMS"):
        check_sums(kept)


def test_a_run_without_hashes_says_that_it_cannot_be_checked(kept: Path, capsys: pytest.CaptureFixture[str]):
    (kept / "SHA256SUMS").unlink()  # as of an earlier release, or of a run that was killed
    capsys.readouterr()
    assert main(["report", str(kept)]) == 0
    told = capsys.readouterr().err
    assert told.startswith(f"note: {kept}: it has no SHA256SUMS, as the run has not ended or is of an earlier release")


def test_a_run_that_goes_on_gets_hashes_anew(train: Train, resume: Any, tmp_path: Path):
    with stopped_at(5):
        run = train(*LONGER)
    assert check_sums(run.folder)
    with stopped_at(3):
        assert resume()[0] == 130
    assert check_sums(run.folder)
    assert resume()[0] == 0
    assert check_sums(run.folder)


def test_a_run_that_goes_on_and_is_killed_has_none(train: Train, resume: Any, monkeypatch: pytest.MonkeyPatch):
    with stopped_at(5):
        run = train(*LONGER)

    def killed(*_: object) -> None:
        raise SystemExit(9)

    with monkeypatch.context() as patch:
        patch.setattr("app.run.run.Run._enter", killed)
        with pytest.raises(SystemExit):
            resume()
    assert check_sums(run.folder)  # nothing was touched yet
    with monkeypatch.context() as patch:
        patch.setattr("app.run.run.TrainingLoop.run", killed)
        patch.setattr("app.run.run.Run._end", lambda *_, **__: None)
        with pytest.raises(SystemExit):
            resume()
    assert not check_sums(run.folder)


# --- An operator file that is edited during the run ---

EDITED = """
from pathlib import Path
import app

@app.custom_op
def mine(x):
    text = Path(__file__).read_text()
    Path(__file__).write_text(text.replace("x * 2", "x * 3"))
    return x * 2

@mine.backward
def _(dy):
    return dy * 2
"""


def test_the_model_is_of_what_was_imported_and_the_end_says_so(
    train: Train, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "my_ops.py"
    file.write_text(EDITED)
    run = train("model.activation=my_ops.py:mine", "report=true")
    assert (run.status, run.err) == (0, "")
    assert file.read_text() == EDITED.replace("x * 2", "x * 3")
    assert run.out.splitlines()[-1] == (
        "note: my_ops.py was edited during the run, which used the earlier version. `predict` and --resume will report "
        "the change"
    )
    assert (run.folder / "model.json").is_file()
    Image.new("L", (28, 28)).save("zero.png")
    predict = ["predict", "run", "zero.png", "--custom-op", "my_ops.py"]
    assert main(predict) == 1
    assert "--accept-changed my_ops.py:mine" in capsys.readouterr().err
    file.write_text(EDITED)
    main(predict)
    assert "zero.png: the picture is empty" in capsys.readouterr().err  # so the network was read
    file.write_text(EDITED.replace("x * 2", "x * 4"))
    assert train_py(["--resume", "run", "--custom-op", "my_ops.py"]) == 1
    assert "the source of my_ops.py:mine" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        (["model.json"], "run has no model.json: a network for use is that file and the one beside it"),
        (["model.safetensors"], "run has no model.safetensors: a network for use is that file and the one beside it"),
        (["model.json", "model.safetensors"], "run has no model.json: no run was kept there for use"),
    ],
)
def test_the_file_of_a_model_that_is_missing_is_named(
    kept: Path, capsys: pytest.CaptureFixture[str], lost: list[str], told: str
):
    for name in lost:
        (kept / name).unlink()
    capsys.readouterr()
    assert main(["predict", "run", "zero.png"]) == 1
    assert capsys.readouterr().err == f"error: {told}\n"
