"""What a stranger hands over runs nothing: operator files are run only if the user names them on the command line."""

import hashlib
import io
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

from app.__main__ import main
from app.errors import AppError
from app.experiment.train_command import main as train_py
from app.run.config import Config, dump_config
from app.run.trust import Trust

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


@pytest.fixture(params=["activation: 'FILE:theirs'", f"layers: {LAYERS}"], ids=["activation", "layer"])
def yaml(marker, request):
    """The stranger's configuration, which names an operator for the network or for a layer."""
    Path("theirs/run.yaml").write_text(f"model: {{{request.param.replace('FILE', 'ops.py')}}}\n")
    return "theirs/run.yaml"


@pytest.mark.parametrize(
    ("words", "is_enough"),
    [
        (["--custom-op", "theirs/ops.py"], True),
        (["--custom-op", "theirs/ops.py:theirs"], True),
        (["--custom-op", "./theirs/../theirs/ops.py"], True),
        (["model.activation=theirs/ops.py:theirs"], True),
        (["baseline=theirs/ops.py:other"], True),  # another operator in the same file
        (["model={activation: 'theirs/ops.py:theirs'}"], True),
        ([], False),
        (["--custom-op", "ops2.py"], False),
        (["--custom-op", "theirs/ops.py:other"], False),
        (["--custom-op", "theirs"], False),
        (["baseline=custom.relu"], False),
    ],
)
def test_a_file_is_run_if_the_user_names_it(train, yaml, marker, words, is_enough):
    run = train("--config", yaml, "train.epochs=1", *words)
    assert run.status == (0 if is_enough else 1)
    assert marker.exists() == run.folder.exists() == is_enough
    message = (
        f"error: {yaml} names theirs/ops.py:theirs: {TOLD}--custom-op theirs/ops.py, or in Python name the operator"
    )
    assert (run.err == f"{message} in the call\n") == (run.out == "") == (not is_enough)


def test_a_name_that_is_typed_with_settings_names_the_file(train, marker):
    Path("mine.py").write_text("def scaled(x, by=1.0):\n    return x * by\n")
    run = train("train.epochs=1", "model.activation=mine.py:scaled(by=0.5)")
    assert (run.status, run.err) == (0, "")
    assert Trust(operators=["mine.py:scaled(by='a:b')"]).covers("mine.py:scaled")


def test_a_file_of_the_same_name_elsewhere_is_run_instead_and_named_to_resume(train, yaml, marker):
    Path("mine").mkdir()
    Path("mine/ops.py").write_text(THEIRS)
    with stopped_at(3):
        run = train("--config", yaml, "train.epochs=1", "--custom-op", "mine/ops.py")
    assert Path("mine/ops.py.was_run").exists()
    assert not marker.exists()
    assert "Resume with: python train.py --resume run --custom-op mine/ops.py\n" in run.out


def test_a_run_folder_runs_no_file(train, marker, capsys):
    run = train("train.epochs=1", "model.activation=theirs/ops.py:theirs", "report=true")
    assert run.status == 0
    marker.unlink()
    folder = str(run.folder)
    Path(folder, "picture.png").write_bytes(b"")
    for command, words in [
        (train_py, ["--resume", folder]),
        (train_py, ["--resume", folder, "train.epochs=2", "baseline=relu"]),
        (train_py, ["--config", f"{folder}/config.yaml", "output=again"]),
        (main, ["demo", folder]),
        (main, ["predict", folder, f"{folder}/picture.png"]),
        (main, ["export", folder, "--to", "onnx"]),
        (main, ["inspect", folder]),
        (main, ["inspect", "--config", f"{folder}/config.yaml"]),
        (main, ["compare", "--config", f"{folder}/config.yaml"]),
    ]:
        assert command(words) == 1
        assert re.search(r"is executed only if you name it.*--custom-op (theirs/)?ops\.py", capsys.readouterr().err)
        assert not marker.exists()
    assert main(["report", folder]) == 0
    assert not marker.exists()
    for words in (["--custom-op", "theirs/ops.py"], ["model.activation=theirs/ops.py:theirs"]):
        assert train_py(["--resume", folder, *words]) == 0


def test_an_operator_of_a_layer_trains_and_resumes_if_it_is_named(train, marker, capsys):
    typed = LAYERS.replace("FILE", "theirs/ops.py")
    run = train(f"model.layers={typed}", "train.epochs=1", "report=true", "check=true")
    assert (run.status, run.err) == (0, "")
    assert "theirs/ops.py:theirs: gradient agrees" in run.out
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    assert "return 2 * x" in page
    assert "only single layers use this operator" in page
    again = ["--resume", str(run.folder), "train.epochs=2"]
    marker.unlink()
    assert train_py(again) == 1
    assert "is executed only if you name it" in capsys.readouterr().err
    assert train_py([*again, "--custom-op", "theirs/ops.py"]) == 0
    Path("theirs/ops.py").write_text(THEIRS.replace("return 2 * x", "return 3 * x"))
    assert train_py([*again, "train.epochs=3", "--custom-op", "theirs/ops.py"]) == 1
    assert "the source of theirs/ops.py:theirs, or of a function that it calls, has changed" in capsys.readouterr().err


# --- Asking on a terminal ---


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("kind", "answer", "ranks", "agreed"),
    [
        (Terminal, "y\n", 1, True),
        (Terminal, " YES \n", 1, True),
        (Terminal, "\n", 1, False),
        (Terminal, "", 1, False),
        (Terminal, "y\n", 2, None),
        (io.StringIO, "y\n", 1, None),
    ],
    ids=["y", "yes", "empty line", "end of input", "ranks", "a pipe"],
)
def test_the_user_is_asked_on_a_terminal_alone(marker, monkeypatch, kind, answer, ranks, agreed):
    screen, name = Terminal(), "theirs/ops.py:theirs"
    monkeypatch.setattr(sys, "stdin", kind(answer))
    monkeypatch.setattr(sys, "stderr", screen)
    if ranks > 1:
        monkeypatch.setenv("PMI_RANK", "0")
        monkeypatch.setenv("PMI_SIZE", str(ranks))
    if agreed:
        assert Trust(by="a.yaml").homes(["relu", name]) == {name: "theirs/ops.py"}
    else:
        with pytest.raises(AppError, match=r"a\.yaml names theirs/ops.py:theirs.*--custom-op theirs/ops\.py"):
            Trust(by="a.yaml").homes([name])
    digest = hashlib.sha256(Path("theirs/ops.py").read_bytes()).hexdigest()
    question = (
        "a.yaml names theirs/ops.py:theirs. That is Python code, which can do anything once it is run:\n"
        f"  {Path('theirs/ops.py').resolve()}\n  SHA-256 {digest}\nRun it? [y/N] "
    )
    assert screen.getvalue() == ("" if agreed is None else question)
    assert not marker.exists()


# --- Modules in the working folder ---


def test_modules_in_the_folder_of_a_run_are_not_imported(train):
    run = train("train.epochs=1", "baseline=null")
    for name in ("numpy", "yaml", "msgspec", "PIL", "numba", "json", "argparse"):
        (run.folder / f"{name}.py").write_text("open('was_run', 'a').close()\nraise SystemExit(7)\n")
    command = [sys.executable, "-m", "app", "report", "."]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=run.folder, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (run.folder / "was_run").exists()


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
    found = {"operators": [name, bad], "first": name, "seeds": [0]}
    found["results"] = {other: {"test_accuracies": [0.5]} for other in (name, bad)}
    found["differences"] = [{"operator": bad, "identical": False, "accuracy": claim, "speed": claim}]
    for file, text in {
        "config.yaml": dump_config(Config(baseline=name, output="run")),
        "metrics.jsonl": f"{json.dumps(start)}\n{json.dumps(event)}\n",
        "comparison.json": json.dumps(found),
        "operators.json": json.dumps([{"operator": name, "sources": {bad: bad}}]),
    }.items():
        (tmp_path / file).write_text(text)
    assert main(["report", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "alert(1)" in page
    assert bad not in page
    assert "<script>alert" not in page
