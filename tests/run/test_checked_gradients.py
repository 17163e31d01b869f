"""Gradients are checked before training: what is said, when a run does not begin, and what is recorded."""

import io
import json
import re

import pytest

import app
from app.__main__ import main
from app.command_line import run as run_command
from app.errors import GradcheckError
from app.printing import PLAIN, RED
from app.run.config import Config, load_config
from app.run.console import Console
from app.run.gradients import check_gradients
from app.run.network import Activation

pytestmark = pytest.mark.slow

OPERATORS = """
import numpy as np
import app

@app.custom_op(elementwise=True)
def swish(x):
    return x / (1 + np.exp(-x))

@swish.backward
def swish_grad(x, dy):
    s = 1 / (1 + np.exp(-x))
    return dy * (s + x * s * (1 - s)) * 0.5
"""
WRONG = "my_ops.py:swish: gradient is wrong: it is half of what it should be (wrong in 24 of 24 elements; worst at "
OWN = ("model.activation=my_ops.py:swish", "--custom-op", "my_ops.py")


@pytest.fixture
def train(train):
    return lambda *words, **options: train("check=true", *words, **options)


@pytest.fixture
def wrong(train, tmp_path):
    """Runs of an operator whose gradient is wrong."""
    (tmp_path / "my_ops.py").write_text(OPERATORS)
    return lambda *words: train(*OWN, *words)


def test_operators_whose_gradients_agree_those_of_layers_too_are_named_in_one_line(train):
    layers = "model.layers=[{type: dense, units: 5, activation: custom.tanh}, {type: dense, units: 5}]"
    run = train("model.activation=custom.relu", layers)
    words = "gradient agrees with finite differences"
    assert f"custom.relu, custom.tanh: {words}" in run.out.splitlines()[:4]
    assert [m for m in run.metrics if m["event"] == "checked"] == [
        {"event": "checked", "operator": name, "state": "agrees", "words": words}
        for name in ("custom.relu", "custom.tanh")
    ]


def test_a_wrong_gradient_ends_the_run_before_it_begins(wrong):
    run = wrong()
    assert run.status == 1
    assert run.err.startswith(f"error: {WRONG}")
    assert "add --anyway or check=warn" in run.err
    assert run.out == ""
    assert not run.folder.exists()


@pytest.mark.parametrize("word", ["--anyway", "check=warn"])
def test_it_trains_anyway_where_one_says_so(wrong, word):
    run = wrong(word)
    assert run.status == 0
    assert re.sub(r"\AChecking .* \.\.\.\n +[\d.]+ s\n", "", run.out).startswith(WRONG)  # said where it takes long
    assert [m["state"] for m in run.metrics if m["event"] == "checked"] == ["wrong"]


def test_without_the_check_nothing_is_said(wrong):
    run = wrong("check=false")
    assert run.status == 0
    assert "gradient" not in run.out
    assert not [m for m in run.metrics if m["event"] == "checked"]


def test_the_check_changes_no_bit_of_training(train):
    runs = train(), train("check=false", folder="b")
    kept = [(run.folder / "weights-custom.relu.safetensors").read_bytes() for run in runs]
    assert kept[0] == kept[1]


def test_a_run_that_goes_on_is_not_checked_again(wrong, train):
    folder = wrong("--anyway").folder
    run = train_again(folder)
    assert run == 0
    events = [json.loads(line)["event"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert events.count("checked") == 1


def train_again(folder):
    from app.experiment.train_command import main as train_main

    return train_main(["--resume", str(folder), "--custom-op", "my_ops.py", "train.epochs=3", "check=true"])


def test_compare_checks_as_well(wrong, images, capsys):
    words = [f"data.source={images}", "engine=reference", "train.epochs=1", "report=false", "costs=false", "output=c"]
    assert main(["compare", "--with", "relu,my_ops.py:swish", "--seeds", "1", *words]) == 1
    assert capsys.readouterr().err.startswith(f"error: {WRONG}")
    assert main(["compare", "--anyway", "--with", "relu,my_ops.py:swish", "--seeds", "1", *words]) == 0
    assert capsys.readouterr().out.startswith(WRONG)


def test_from_python_it_is_an_error_too(images, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def double(x):
        return x * 2

    operator = app.custom_op(double, elementwise=True)
    operator.backward(lambda x, dy: dy)
    with pytest.raises(GradcheckError, match="double: gradient is wrong: it is half of what it should be"):
        app.train(operator, source=str(images), epochs=1, quiet=True)


def test_a_wrong_gradient_is_red_on_a_terminal(monkeypatch, capsys):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name in ("stdout", "stderr"):
        terminal = Terminal()
        monkeypatch.setattr(f"sys.{name}", terminal)
        if name == "stdout":
            Console().alarm("wrong\x1b")
            assert terminal.getvalue() == f"{RED}wrong\\x1b{PLAIN}\n"
        else:
            run_command(lambda: refused())
            assert terminal.getvalue() == f"{RED}error: wrong{PLAIN}\n"


def refused():
    raise GradcheckError("wrong")


def test_one_rank_checks_and_all_agree(monkeypatch):
    class Second:
        rank, size = 1, 2

        def gather(self, value):
            assert value == []  # it checked nothing itself
            return [[("own", "wrong", "gradient is wrong: it is zero")], value]

    world = Second()
    activation = Activation("own", lambda x: pytest.fail("it is not called"))
    with pytest.raises(GradcheckError, match="own: gradient is wrong: it is zero"):
        check_gradients(Config(), [activation], world, Console())


@pytest.mark.parametrize(("text", "meant"), [("true", True), ("false", False), ("warn", "warn")])
def test_the_setting_has_three_values(tmp_path, text, meant):
    (tmp_path / "c.yaml").write_text(f"check: {text}\n")
    assert load_config(tmp_path / "c.yaml").check == meant
    with pytest.raises(app.errors.ConfigError, match="check: found 'maybe'"):
        load_config(tmp_path / "c.yaml", ["check=maybe"])
