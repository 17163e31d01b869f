"""Gradients are checked before training: what is printed, when a run does not begin, and what is recorded."""

import io
import re
import sys
from unittest.mock import Mock

import pytest
from runs_of_train import without_waits

from app.__main__ import main
from app.command_line import run as run_command
from app.errors import GradcheckError
from app.experiment.train_command import main as train_py
from app.printing import PLAIN, RED
from app.run.config import Config
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


@pytest.fixture
def wrong(train, tmp_path):
    """Runs of an operator whose gradient is wrong."""
    (tmp_path / "my_ops.py").write_text(OPERATORS)
    own = ("check=true", "model.activation=my_ops.py:swish")
    return lambda *words, folder="run": train(*own, *words, folder=folder)


def checked(run):
    return [m for m in run.metrics if m["event"] == "checked"]


def test_operators_whose_gradients_agree_including_those_of_layers_are_one_line(train):
    layers = "model.layers=[{type: dense, units: 5, activation: custom.tanh}, {type: dense, units: 5}]"
    run = train("check=true", "model.activation=custom.relu", layers)
    words = "gradient agrees with finite differences"
    assert f"custom.relu, custom.tanh: {words}" in run.out.splitlines()  # after progress, on a busy machine
    assert checked(run) == [
        {"event": "checked", "operator": name, "state": "agrees", "words": words}
        for name in ("custom.relu", "custom.tanh")
    ]


def test_a_wrong_gradient_ends_the_run_before_it_begins(wrong):
    run = wrong()
    assert (run.status, without_waits(run.out)) == (1, "")
    assert run.err.startswith(f"error: {WRONG}")
    assert "add --anyway or check=warn" in run.err
    assert not run.folder.exists()


@pytest.mark.parametrize(
    ("word", "printed", "states"),
    [("--anyway", WRONG, ["wrong"]), ("check=warn", WRONG, ["wrong"]), ("check=false", "Data: ", [])],
)
def test_a_run_with_a_wrong_gradient_trains_with_anyway_warn_or_no_check(wrong, word, printed, states):
    run = wrong(word)
    assert run.status == 0
    assert re.sub(r"\AChecking .* \.\.\.\n +[\d.]+ s\n", "", run.out).startswith(printed)  # on a slow machine
    assert run.out.count("gradient is wrong") == len(states)
    assert [m["state"] for m in checked(run)] == states


def test_the_check_changes_no_bit_of_training_and_a_resumed_run_is_not_checked_again(train, wrong):
    runs = train("check=true"), train("check=false", folder="b")
    kept = [(run.folder / "weights-custom.relu.safetensors").read_bytes() for run in runs]
    assert kept[0] == kept[1]
    run = wrong("--anyway", folder="c")
    assert train_py(["--resume", str(run.folder), "--custom-op", "my_ops.py", "train.epochs=3", "check=true"]) == 0
    assert len(checked(run)) == 1


def test_compare_checks_as_well(wrong, images, capsys):
    words = [f"data.source={images}", "engine=reference", "train.epochs=1", "report=false", "costs=false", "output=c"]
    compare = ["compare", "--with", "relu,my_ops.py:swish", "--seeds", "1", *words]
    assert main(compare) == 1
    assert capsys.readouterr().err.startswith(f"error: {WRONG}")
    assert main([*compare, "--anyway"]) == 0
    assert capsys.readouterr().out.startswith(WRONG)


def test_a_wrong_gradient_is_red_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for stream in ("stdout", "stderr"):
        terminal = io.StringIO()
        terminal.isatty = lambda: True
        monkeypatch.setattr(f"sys.{stream}", terminal)
    Console().alarm("wrong\x1b")
    run_command(Mock(side_effect=GradcheckError("wrong")))
    assert sys.stdout.getvalue() == f"{RED}wrong\\x1b{PLAIN}\n"
    assert sys.stderr.getvalue() == f"{RED}error: wrong{PLAIN}\n"


def test_rank_0_checks_and_all_ranks_refuse():
    class Second:
        rank, size = 1, 2

        def gather(self, value):
            assert value == []  # it checked nothing itself
            return [[("own", "wrong", "gradient is wrong: it is zero")], value]

    activation = Activation("own", lambda x: pytest.fail("it is not called"))
    with pytest.raises(GradcheckError, match="own: gradient is wrong: it is zero"):
        check_gradients(Config(), [activation], Second(), Console())
