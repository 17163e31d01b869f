"""The files that a run leaves: equal for equal runs, with hashes that show changes, of the operator as imported."""

import hashlib
import itertools
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from PIL import Image

from app.__main__ import main
from app.errors import FileError
from app.experiment.train_command import main as train_py
from app.run.folder import check_sums

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def _kept(tmp_path_factory):
    return tmp_path_factory.mktemp("kept") / "run"


@pytest.fixture
def kept(train, tmp_path, capsys, _kept):
    """A copy of the folder of a run with a report."""
    if not _kept.exists():
        run = train("report=true", "train.epochs=1")
        assert run.status == 0
        shutil.move(run.folder, _kept)
    capsys.readouterr()
    return Path(shutil.copytree(_kept, tmp_path / "run"))


def test_equal_runs_write_equal_bytes_except_for_times(train, tmp_path, monkeypatch):
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
        contents.append({str(f.relative_to(run.folder)): f.read_bytes() for f in run.folder.rglob("*") if f.is_file()})
        shutil.rmtree(run.folder)
    first, second = contents
    assert first.keys() >= {"answers.safetensors", "SHA256SUMS", "report.html"}
    assert [name for name in first if first[name] != second.get(name)] == []
    assert first.keys() == second.keys()


# --- Hashes ---


def test_every_file_of_a_run_has_its_hash(kept):
    assert check_sums(kept)
    assert subprocess.run(["sha256sum", "-c", "--strict", "SHA256SUMS"], cwd=kept, check=False).returncode == 0
    listed = {line.split("  ")[1] for line in (kept / "SHA256SUMS").read_text().splitlines()}
    made_again = {"report.html", "SHA256SUMS", "checkpoints"}
    assert listed == {file.name for file in kept.iterdir()} - made_again


def test_a_flipped_bit_in_any_file_is_an_error(kept, capsys):
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


def test_edited_metrics_are_an_error_until_the_hashes_are_removed(kept, capsys):
    metrics = kept / "metrics.jsonl"
    metrics.write_text(metrics.read_text().replace('"test_accuracy": 0.', '"test_accuracy": 0.9'))
    digest = hashlib.sha256(metrics.read_bytes()).hexdigest()
    assert main(["report", str(kept)]) == 1
    told = capsys.readouterr().err
    changed = f"error: {metrics} differs from what the run wrote: its SHA-256 is {digest}, and SHA256SUMS has "
    assert told.startswith(changed)
    assert told.endswith(f"If you know why and want to use it, remove {kept / 'SHA256SUMS'}\n")
    (kept / "SHA256SUMS").unlink()  # as in a run of an earlier release, or one that was killed
    assert main(["report", str(kept)]) == 0
    told = capsys.readouterr().err
    assert told.startswith(f"note: {kept}: it has no SHA256SUMS, as the run has not ended or is of an earlier release")


def test_damaged_hashes_and_missing_files_are_named(kept, capsys):
    sums = kept / "SHA256SUMS"
    whole = sums.read_text()
    for text in ("", "x", "0" * 64 + "  ../../etc/passwd\n", "0" * 64 + "  config.yaml\n"):
        sums.write_text(text)
        with pytest.raises(FileError, match="SHA256SUMS"):
            check_sums(kept)
    sums.write_text(whole)
    (kept / "weights-relu.safetensors").unlink()
    with pytest.raises(FileError, match=r"weights-relu.safetensors is missing, but the run wrote it"):
        check_sums(kept)
    for name in ("model.json", "model.safetensors"):
        moved = (kept / name).rename(kept / "moved")
        assert main(["predict", "run", "zero.png"]) == 1
        message = f"error: run has no {name}: a network for use is that file and the one beside it\n"
        assert capsys.readouterr().err == message
        moved.rename(kept / name)


def test_a_resumed_run_writes_its_hashes_again(interrupted, resume, monkeypatch):
    folder = interrupted(5).folder
    assert check_sums(folder)

    def killed(*_):
        raise SystemExit(9)

    with monkeypatch.context() as patch:
        patch.setattr("app.run.run.Run._enter", killed)
        with pytest.raises(SystemExit):
            resume()
    assert check_sums(folder)  # nothing was touched yet
    with monkeypatch.context() as patch:
        patch.setattr("app.run.run.TrainingLoop.run", killed)
        patch.setattr("app.run.run.Run._end", lambda *_, **__: None)
        with pytest.raises(SystemExit):
            resume()
    assert not check_sums(folder)  # until it ends
    assert resume()[0] == 0
    assert check_sums(folder)


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


def test_editing_an_operator_file_during_a_run_changes_nothing_and_the_end_says_so(train, tmp_path, capsys):
    file = tmp_path / "my_ops.py"
    file.write_text(EDITED)
    run = train("model.activation=my_ops.py:mine", "report=true")
    assert (run.status, run.err) == (0, "")
    assert file.read_text() == EDITED.replace("x * 2", "x * 3")
    assert run.out.splitlines()[-1] == (
        "note: my_ops.py was edited during the run, which used the earlier version. `predict`, `demo` and --resume "
        "will report the change"
    )
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
