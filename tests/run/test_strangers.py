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
from app.run.config import Config, dump_config, operators_typed
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


@pytest.fixture
def marker(tmp_path, monkeypatch):
    """What a file of a stranger's, theirs/ops.py, writes when it is run; the working folder is that of the test."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "ops.py").write_text(THEIRS)
    return tmp_path / "theirs" / "ops.py.was_run"


@pytest.fixture
def yaml(marker):
    """The stranger's configuration."""
    Path("theirs/run.yaml").write_text("model: {activation: 'ops.py:theirs'}\n")
    return "theirs/run.yaml"


def test_a_configuration_runs_no_file(train, yaml, marker):
    run = train("--config", yaml)
    assert (run.status, run.out) == (1, "")
    assert run.err == (
        f"error: {yaml} names theirs/ops.py:theirs: {TOLD}--custom-op theirs/ops.py, "
        "or in Python name the operator in the call\n"
    )
    assert not marker.exists()
    assert not run.folder.exists()


@pytest.mark.parametrize(
    "words",
    [
        ["--custom-op", "theirs/ops.py"],
        ["--custom-op", "theirs/ops.py:theirs"],
        ["--custom-op", "./theirs/../theirs/ops.py"],
        ["model.activation=theirs/ops.py:theirs"],
        ["baseline=theirs/ops.py:other"],  # another operator in the same file
        ["model={activation: 'theirs/ops.py:theirs'}"],
    ],
)
def test_one_word_of_the_user_is_enough(train, yaml, marker, words):
    run = train("--config", yaml, "train.epochs=1", *words)
    assert (run.status, run.err) == (0, "")
    assert marker.exists()


@pytest.mark.parametrize("word", ["ops2.py", "theirs/ops.py:other", "theirs", "baseline=custom.relu"])
def test_another_word_is_not(train, yaml, marker, word):
    run = train("--config", yaml, *([word] if "=" in word else ["--custom-op", word]))
    assert run.status == 1
    assert TOLD in run.err
    assert not marker.exists()


def test_a_file_that_lies_elsewhere_today_is_the_one_that_is_run(train, yaml, marker):
    Path("mine").mkdir()
    Path("mine/ops.py").write_text(THEIRS)
    assert train("--config", yaml, "train.epochs=1", "--custom-op", "mine/ops.py").status == 0
    assert Path("mine/ops.py.was_run").exists()
    assert not marker.exists()


def test_a_run_folder_runs_no_file(train, marker, capsys):
    run = train("train.epochs=1", "model.activation=theirs/ops.py:theirs", "report=true")
    assert run.status == 0
    marker.unlink()
    folder = str(run.folder)
    Path(folder, "picture.png").write_bytes(b"")
    commands = [
        lambda: train_py(["--resume", folder]),
        lambda: train_py(["--resume", folder, "train.epochs=2", "baseline=relu"]),
        lambda: main(["demo", folder]),
        lambda: main(["predict", folder, f"{folder}/picture.png"]),
        lambda: main(["export", folder, "--to", "onnx"]),
        lambda: main(["inspect", folder]),
        lambda: main(["inspect", "--config", f"{folder}/config.yaml"]),
        lambda: main(["compare", "--config", f"{folder}/config.yaml"]),
        lambda: train_py(["--config", f"{folder}/config.yaml", "output=again"]),
    ]
    for command in commands:
        assert command() == 1
        assert re.search(r"is executed only if you name it.*--custom-op (theirs/)?ops\.py", capsys.readouterr().err)
        assert not marker.exists()
    assert main(["report", folder]) == 0
    assert not marker.exists()
    for words in (["--custom-op", "theirs/ops.py"], ["model.activation=theirs/ops.py:theirs"]):
        assert train_py(["--resume", folder, *words]) == 0


def test_the_command_that_goes_on_names_the_file(train, marker):
    with stopped_at(3):
        run = train("model.activation=theirs/ops.py:theirs")
    assert "Resume with: python train.py --resume run --custom-op theirs/ops.py\n" in run.out


def test_compare_takes_its_own_words_alone(yaml, marker, capsys):
    assert main(["compare", "--config", yaml]) == 1
    assert f"{yaml} names theirs/ops.py:theirs" in capsys.readouterr().err
    assert not marker.exists()


# --- Asking on a terminal ---


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("answer", "agreed"), [("y\n", True), (" YES \n", True), ("\n", False), ("", False)])
def test_on_a_terminal_the_user_is_asked(marker, monkeypatch, answer, agreed):
    screen = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", screen)
    trust, name = Trust(by="a.yaml"), "theirs/ops.py:theirs"
    if agreed:
        assert trust.homes(["relu", name]) == {name: "theirs/ops.py"}
    else:
        with pytest.raises(AppError, match=r"a\.yaml names theirs/ops.py:theirs"):
            trust.homes([name])
    digest = hashlib.sha256(Path("theirs/ops.py").read_bytes()).hexdigest()
    assert screen.getvalue() == (
        "a.yaml names theirs/ops.py:theirs. That is Python code, which can do anything once it is run:\n"
        f"  {Path('theirs/ops.py').resolve()}\n  SHA-256 {digest}\nRun it? [y/N] "
    )
    assert not marker.exists()


def test_ranks_and_pipes_are_not_asked(marker, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(AppError, match=r"--custom-op theirs/ops\.py"):
        Trust().homes(["theirs/ops.py:theirs"])
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    for name, value in (("PMI_RANK", "0"), ("PMI_SIZE", "2")):
        monkeypatch.setenv(name, value)
    with pytest.raises(AppError, match=r"--custom-op theirs/ops\.py"):
        Trust().homes(["theirs/ops.py:theirs"])


def test_what_is_typed_is_told_from_what_is_read():
    assert operators_typed(["seed=1", "model.activation=a.py:f", "baseline=null", "model={activation: tanh}"]) == [
        "a.py:f",
        "tanh",
    ]


# --- Modules in the working folder ---


def test_modules_in_the_folder_of_a_run_are_not_imported(train, tmp_path):
    run = train("train.epochs=1", "baseline=null")
    for name in ("numpy", "yaml", "msgspec", "PIL", "numba", "json", "argparse"):
        (run.folder / f"{name}.py").write_text("open('was_run', 'a').close()\nraise SystemExit(7)\n")
    done = subprocess.run(
        [sys.executable, "-m", "app", "report", "."],
        cwd=run.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not (run.folder / "was_run").exists()


def test_a_module_that_the_user_names_is_found_in_the_working_folder(tmp_path):
    (tmp_path / "theirs.py").write_text(
        "import app\n\n@app.custom_op\ndef twice(x):\n    return x * 2\n\n\ntwice.backward(lambda dy: dy * 2)\n"
    )
    done = forked.run(["-m", "app", "check", "theirs:twice", "--only", "gradient"], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


# --- Words that a terminal, or a page, would obey ---

CLEAR = "\x1b[2J"


def test_words_with_escape_codes_are_printed_as_escapes(train, tmp_path):
    (tmp_path / f"{CLEAR}ops.py").write_text(THEIRS)
    run = train("train.epochs=1", r'model.activation="\x1b[2Jops.py:theirs"')
    assert run.status == 0
    assert CLEAR not in run.out + run.err
    assert "\\x1b[2Jops.py:theirs  epoch 1/1" in run.out
    run = train(r'model.activation="\x1b[2Jno.py:theirs"', folder="b")
    assert run.status == 2
    assert CLEAR not in run.err
    assert "\\x1b[2Jno.py" in run.err


@pytest.mark.parametrize("words", [["report", CLEAR], ["predict", "x", CLEAR], ["data", CLEAR], ["check", CLEAR]])
def test_so_are_words_of_the_command_line(words, capsys):
    with suppress(SystemExit):
        assert main(words) > 0
    printed = capsys.readouterr()
    assert CLEAR not in printed.out + printed.err


def test_the_report_of_a_strangers_run_holds_no_script_of_theirs(tmp_path):
    bad = "</script><script>alert(1)</script>"
    name = f"{bad}.py:f"
    config = Config(baseline=name, output="run")
    (tmp_path / "config.yaml").write_text(dump_config(config))
    event = {"event": "epoch", "operator": name, "epoch": 0, "seconds": 1.0, "test_accuracy": 0.5, "test_loss": 1.0}
    data = {"origin": bad, "verified": True, "sample": False, "training": 1, "test": 1, "shape": [1, 1]}
    start = {"event": "start", "at": bad, "machine": {bad: bad}, "data": data, "engines": {name: bad}}
    (tmp_path / "metrics.jsonl").write_text(f"{json.dumps(start)}\n{json.dumps(event)}\n")
    claim = {"mean": 0.1, "p": 0.5, "low": None, "high": None}
    found = {"operators": [name, bad], "first": name, "seeds": [0]}
    found["results"] = {other: {"test_accuracies": [0.5]} for other in (name, bad)}
    found["differences"] = [{"operator": bad, "identical": False, "accuracy": claim, "speed": claim}]
    (tmp_path / "comparison.json").write_text(json.dumps(found))
    (tmp_path / "operators.json").write_text(json.dumps([{"operator": name, "sources": {bad: bad}}]))
    assert main(["report", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "alert(1)" in page
    assert bad not in page
    assert "<script>alert" not in page
