"""The folder of a stranger's run runs nothing: operator files are run only if the user names them."""

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import forked
import pytest
from interrupted_runs import stopped_at
from runs_of_train import QUICK_END

from app.__main__ import main
from app.custom import lookup
from app.experiment.train_command import main as train_py
from app.run.config import Config, dump_config

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
THEIRS = """
import app
open(__file__ + ".was_run", "a").close()

def double(x):
    return 2 * x

theirs, other = app.custom_op(double, name="theirs"), app.custom_op(double, name="other")
theirs.backward(lambda dy: 2 * dy)
other.backward(lambda dy: 2 * dy)
"""
TOLD = "Python code, which is executed only if you name it yourself. If you trust it, add "
LAYERS = "[{type: dense, units: 4, activation: 'FILE:theirs'}, {type: dense, units: 3}]"


@pytest.fixture
def marker(tmp_path, monkeypatch):
    """What a file of a stranger's, theirs/ops.py, writes when it is run; the working folder is that of the test."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "ops.py").write_text(THEIRS)
    return tmp_path / "theirs" / "ops.py.was_run"


OPERATORS_OF_A_FILE = ["activation: 'ops.py:theirs'", f"layers: {LAYERS.replace('FILE', 'ops.py')}"]


@pytest.mark.parametrize("operators", OPERATORS_OF_A_FILE, ids=["activation", "layer"])
def test_a_configuration_that_the_user_names_runs_its_operators(images, marker, capsys, operators):
    Path("theirs/run.yaml").write_text(f"model: {{{operators}}}\n")
    settings = [f"data.source={images}", "engine=reference", "train.epochs=1", "train.batch_size=8", *QUICK_END]
    status = train_py(["--config", "theirs/run.yaml", "output=run", *settings])
    assert (status, capsys.readouterr().err) == (0, "")
    assert marker.exists()


@pytest.mark.parametrize("command", [train_py, lambda words: main(["inspect", *words])], ids=["train", "inspect"])
def test_a_file_named_beside_a_configuration_is_refused_as_it_has_no_effect(marker, capsys, command):
    assert command(["--config", str(ROOT / "configs/quick.yaml"), "--custom-op", "theirs/ops.py:theirs"])
    message = "is for the folder of a run or a saved model; .* set with model.activation=theirs/ops.py:NAME"
    assert re.search(message, capsys.readouterr().err)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("named", "is_enough"),
    [
        (["theirs/ops.py"], True),
        (["theirs/ops.py:theirs"], True),
        (["./theirs/../theirs/ops.py"], True),
        (["FOLDER/theirs/ops.py"], True),
        (["mine/ops.py", "theirs/ops.py"], True),
        ([], False),
        (["mine/ops.py"], False),
        (["mine/ops.py:theirs"], False),
        (["ops.py"], False),
        (["ops"], False),
        (["theirs"], False),
    ],
)
def test_a_file_is_run_for_a_run_folder_if_that_very_file_is_named(
    train, marker, capsys, monkeypatch, named, is_enough
):
    Path("mine").mkdir()
    Path("mine/ops.py").write_text(THEIRS.replace("2 * x", "x"))  # of the same name, and another function
    assert train("train.epochs=1", "model.activation=theirs/ops.py:theirs").status == 0
    Path("run/summary.txt").unlink()  # as if it had not come to its end
    marker.unlink()
    words = [word for file in named for word in ("--custom-op", file.replace("FOLDER", os.getcwd()))]
    for command in (
        lambda: train_py(["--resume", "run", *words]),
        lambda: main(["export", "run", "--to", "onnx", *words]),
    ):
        monkeypatch.setattr(lookup, "_ran", {})  # as in another process
        assert command() == (0 if is_enough else 1)
        refusal = re.search(f"names theirs/ops.py:theirs: {TOLD}--custom-op theirs/ops.py, or", capsys.readouterr().err)
        assert (refusal is None) == is_enough
        assert marker.exists() == is_enough
    assert not Path("mine/ops.py.was_run").exists() or named == ["mine/ops.py", "theirs/ops.py"]


def test_the_file_of_a_link_is_the_file_that_it_leads_to(train, marker):
    Path("link.py").symlink_to("theirs/ops.py")
    assert train("train.epochs=1", "model.activation=link.py:theirs").status == 0
    Path("run/summary.txt").unlink()  # as if it had not come to its end
    marker.unlink()
    assert train_py(["--resume", "run", "--custom-op", "theirs/ops.py"]) == 0


def test_a_name_that_is_typed_with_settings_names_the_file(train, marker):
    Path("mine.py").write_text("def scaled(x, by=1.0):\n    return x * by\n")
    with stopped_at(3):
        run = train("train.epochs=1", "model.activation=mine.py:scaled(by=0.5)")
    assert run.status == 130
    assert train_py(["--resume", "run"]) == 1
    assert train_py(["--resume", "run", "--custom-op", "mine.py"]) == 0


def test_an_interrupted_run_prints_the_file_to_name(train, marker):
    with stopped_at(3):
        run = train("train.epochs=1", "model.activation=theirs/ops.py:theirs")
    assert "Resume with:\nopsmith train --resume run --custom-op theirs/ops.py\n" in run.err


def test_a_run_folder_runs_no_file(train, marker, capsys):
    run = train("train.epochs=1", "model.activation=theirs/ops.py:theirs", "report=true")
    assert run.status == 0
    marker.unlink()
    folder = str(run.folder)
    (run.folder / "summary.txt").unlink()  # as if it had not come to its end
    Path(folder, "picture.png").write_bytes(b"")
    for command, words in [
        (train_py, ["--resume", folder]),
        (train_py, ["--resume", folder, "train.epochs=2", "baseline=relu"]),
        (train_py, ["--resume", folder, "model.activation=theirs/ops.py:theirs"]),
        (main, ["demo", folder]),
        (main, ["predict", folder, f"{folder}/picture.png"]),
        (main, ["export", folder, "--to", "onnx"]),
        (main, ["inspect", folder]),
    ]:
        assert command(words) == 1
        assert re.search(r"is executed only if you name it.*--custom-op theirs/ops\.py", capsys.readouterr().err)
        assert not marker.exists()
    assert main(["report", folder]) == 0
    assert not marker.exists()
    assert train_py(["--resume", folder, "--custom-op", "theirs/ops.py"]) == 0


def test_an_operator_of_a_layer_trains_and_resumes_if_it_is_named(train, marker, capsys):
    typed = LAYERS.replace("FILE", "theirs/ops.py")
    run = train(f"model.layers={typed}", "train.epochs=1", "report=true", "check=true")
    assert (run.status, run.err) == (0, "")
    assert "theirs/ops.py:theirs: gradient agrees" in run.out
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    assert "return 2 * x" in page
    assert "only single layers use this operator" in page
    again = ["--resume", str(run.folder)]
    (run.folder / "summary.txt").unlink()  # as if it had not come to its end
    marker.unlink()
    assert train_py(again) == 1
    assert "is executed only if you name it" in capsys.readouterr().err
    with stopped_at(12):
        assert train_py([*again, "train.epochs=2", "--custom-op", "theirs/ops.py"]) == 130
    theirs = Path("theirs/ops.py")
    capsys.readouterr()
    theirs.write_text(THEIRS.replace("return 2 * x", "return 3 * x"))
    assert train_py([*again, "--custom-op", "theirs/ops.py"]) == 1
    assert "the source of theirs/ops.py:theirs, or of a function that it calls, has changed" in capsys.readouterr().err


# --- Modules in the working folder ---


def test_a_module_that_the_user_names_is_found_in_the_working_folder(marker, tmp_path):
    Path("theirs/ops.py").rename("ops.py")
    done = forked.run(["-m", "app", "check", "ops:theirs", "--only", "gradient"], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


# --- Words that a terminal, or a page, would obey ---

CLEAR = "\x1b[2J"


def test_escape_codes_in_names_are_printed_as_escapes(train, tmp_path, capsys):
    (tmp_path / f"{CLEAR}ops.py").write_text(THEIRS)
    for name, status, shown in (("ops", 0, "\\x1b[2Jops.py:theirs  epoch 1/1"), ("no", 2, "\\x1b[2Jno.py")):
        run = train("train.epochs=1", rf'model.activation="\x1b[2J{name}.py:theirs"', folder=name)
        assert run.status == status
        assert CLEAR not in run.out + run.err
        assert shown in run.out + run.err
    for words in (["report", CLEAR], ["predict", "x", CLEAR], ["data", CLEAR], ["check", CLEAR]):
        with suppress(SystemExit):
            assert main(words) > 0
        printed = capsys.readouterr()
        assert CLEAR not in printed.out + printed.err


def test_the_report_of_a_strangers_run_holds_no_script_of_theirs(tmp_path):
    bad = "</script><script>alert(1)</script>"
    name = f"{bad}.py:f"
    event = {"event": "epoch", "operator": name, "epoch": 0, "seconds": 1.0, "test_accuracy": 0.5, "test_loss": 1.0}
    data = {"origin": bad, "verified": True, "sample": False, "training": 1, "test": 1, "shape": [1, 1]}
    start = {"event": "start", "at": bad, "machine": {bad: bad}, "data": data, "engines": {name: bad}}
    claim = {"mean": 0.1, "p": 0.5, "low": None, "high": None}
    comparison = {"operators": [name, bad], "first": name, "seeds": [0]}
    comparison["results"] = {other: {"test_accuracies": [0.5]} for other in (name, bad)}
    comparison["differences"] = [{"operator": bad, "identical": False, "accuracy": claim, "speed": claim}]
    for file, text in {
        "config.yaml": dump_config(Config(baseline=name, output="run")),
        "metrics.jsonl": f"{json.dumps(start)}\n{json.dumps(event)}\n",
        "comparison.json": json.dumps(comparison),
        "operators.json": json.dumps([{"operator": name, "sources": {bad: bad}}]),
    }.items():
        (tmp_path / file).write_text(text)
    assert main(["report", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "alert(1)" in page
    assert bad not in page
    assert "<script>alert" not in page


PLANTED = (
    *("abc", "argparse", "collections", "contextlib", "dataclasses", "enum", "functools", "importlib", "io", "json"),
    *("numba", "numpy", "os", "pathlib", "pickle", "PIL", "random", "re", "requests", "runpy", "signal", "socket"),
    *("statistics", "struct", "subprocess", "threading", "tqdm", "types", "typing", "warnings"),
)


def test_the_command_and_its_workers_import_nothing_from_the_working_folder(tmp_path, images):
    script, folder = tmp_path / "bin" / "opsmith", tmp_path / "folder"
    for place in (script.parent, folder):
        place.mkdir()
    script.write_text(f"import sys\nsys.path.append({str(ROOT)!r})\nfrom app.__main__ import main\nsys.exit(main())\n")
    for name in PLANTED:
        (folder / f"{name}.py").write_text("open('was_run', 'a').close()\nraise SystemExit(7)\n")
    words = ["--with", "relu,custom.relu", "--seeds", "1", "--workers", "2", f"data.source={images}", *QUICK_END]
    settings = ["check=true", "engine=reference", "train.epochs=1", "train.batch_size=8"]
    command = [sys.executable, script, "compare", *words, *settings]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}  # which loads Numba, and compiles nothing
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (folder / "was_run").exists()
