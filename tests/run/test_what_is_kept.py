"""The files that a run leaves: equal for equal runs, of the operator as imported; damage is noticed."""

import itertools
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import app
from app.__main__ import main
from app.run.record import read_run
from app.run.weights import write_weights

pytestmark = pytest.mark.slow

END = '{"event": "end"}\n'


@pytest.fixture(scope="module")
def _kept(tmp_path_factory):
    return tmp_path_factory.mktemp("kept") / "run"


@pytest.fixture
def folder(train, tmp_path, capsys, _kept):
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
        run = train("report=true", "costs=true")
        monkeypatch.undo()
        monkeypatch.chdir(tmp_path)
        assert run.status == 0
        contents.append({str(f.relative_to(run.folder)): f.read_bytes() for f in run.folder.rglob("*") if f.is_file()})
        shutil.rmtree(run.folder)
    first, second = contents
    assert first.keys() >= {"predictions.safetensors", "report.html"}
    assert [name for name in first if first[name] != second.get(name)] == []
    assert first.keys() == second.keys()


# --- Damage ---


def test_metrics_that_are_cut_at_any_place_are_noticed(folder, capsys):
    metrics = folder / "metrics.jsonl"
    whole = metrics.read_bytes()
    assert main(["report", str(folder)]) == 0
    assert capsys.readouterr().err == ""
    for size in (len(whole) - 1, whole.index(b"\n") + 1, 3 * len(whole) // 4):
        metrics.write_bytes(whole[:size])
        assert main(["report", str(folder)]) == 0
        assert capsys.readouterr().err == (
            f"note: {folder}: its metrics.jsonl has no last line, as the run has not ended or the file was cut off, so "
            "figures may be missing\n"
        )
        assert not read_run(folder).ended


def test_weights_other_than_those_that_the_run_ended_with_are_refused(folder, capsys):
    file = sorted(folder.glob("weights-*.safetensors"))[0]
    operator, weights = next((name, one) for name, one in read_run(folder).weights.items() if one.file == file)
    other = {path: array + np.float32(1) for path, array in weights.arrays.items()}
    write_weights(file, operator, other)
    Image.new("L", (28, 28), 255).save(folder / "digit.png")
    for words in (["predict", str(folder), str(folder / "digit.png")], ["export", str(folder), "--to", "onnx"]):
        assert main(words) == 1
        assert f"{file} has other weights than the run ended with" in capsys.readouterr().err


def test_writing_a_report_leaves_the_random_numbers_of_the_user_alone(folder):
    app.seed(5)
    expected = app.rand([3]).numpy()
    app.seed(5)
    assert main(["report", str(folder)]) == 0
    np.testing.assert_array_equal(app.rand([3]).numpy(), expected)


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


def test_editing_an_operator_file_during_a_run_changes_nothing_and_predict_says_so(train, tmp_path, capsys):
    file = tmp_path / "my_ops.py"
    file.write_text(EDITED)
    run = train("model.activation=my_ops.py:mine", "report=true")
    assert (run.status, run.err) == (0, "")
    assert file.read_text() == EDITED.replace("x * 2", "x * 3")
    Image.new("L", (28, 28)).save("zero.png")
    predict = ["predict", "run", "zero.png", "--custom-op", "my_ops.py"]
    assert main(predict) == 1
    assert "--accept-changed my_ops.py:mine" in capsys.readouterr().err
    file.write_text(EDITED)
    main(predict)
    assert "zero.png: the picture is empty" in capsys.readouterr().err  # so the network was read
