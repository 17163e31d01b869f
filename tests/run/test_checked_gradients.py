"""Gradients are checked before training: what is printed, when a run does not begin, and what is recorded."""

import io
import re
import sys
from contextlib import nullcontext
from unittest.mock import Mock

import pytest
from as_python import uncompiled
from interrupted_runs import stopped_at

from app.__main__ import main
from app.checking.before_training import GradientCheck
from app.command_line import run as run_command
from app.data.sample import load_sample
from app.errors import GradcheckError, OperatorError
from app.experiment.train_command import main as train_py
from app.printing import PLAIN, RED
from app.run.activation import Activation, find_activation
from app.run.config import Config, DistConfig, ModelConfig
from app.run.console import Console
from app.run.gradients import check_gradients

__all__ = ["uncompiled"]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("uncompiled")]

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
    layers = "model.layers=[{type: dense, units: 5, activation: custom.legendre3}, {type: dense, units: 5}]"
    run = train("check=true", "model.activation=custom.relu", layers)
    verdict = "gradient agrees with finite differences"
    assert f"custom.relu, custom.legendre3: {verdict}" in run.out.splitlines()
    assert checked(run) == [
        {"event": "checked", "operator": name, "state": "agrees", "words": verdict}
        for name in ("custom.relu", "custom.legendre3")
    ]


def test_a_wrong_gradient_ends_the_run_before_it_begins(wrong):
    run = wrong()
    assert (run.status, run.out) == (1, "")
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
    assert run.out.startswith(printed)
    assert run.out.count("gradient is wrong") == len(states)
    assert [m["state"] for m in checked(run)] == states


def test_the_check_changes_no_bit_of_training_and_a_resumed_run_is_not_checked_again(train, wrong):
    runs = train("check=true"), train("check=false", folder="b")
    weights = [(run.folder / "weights-custom.relu.safetensors").read_bytes() for run in runs]
    assert weights[0] == weights[1]
    with stopped_at(9):
        run = wrong("--anyway", folder="c")
    assert train_py(["--resume", str(run.folder), "--custom-op", "my_ops.py", "check=true"]) == 0
    assert len(checked(run)) == 1


def test_compare_checks_as_well(wrong, images, capsys):
    words = [
        f"data.source={images}",
        "engine=reference",
        "train.epochs=1",
        "train.batch_size=8",
        "report=false",
        "costs=false",
        "output=c",
    ]
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

        def allgather(self, value):
            assert value == {}  # it checked nothing itself
            return [{"own": GradientCheck("wrong", "gradient is wrong: it is zero")}, value]

    activation = Activation("own", lambda x: pytest.fail("it is not called"))
    with pytest.raises(GradcheckError, match="own: gradient is wrong: it is zero"):
        check_gradients(Config(), [activation], load_sample(), Second(), Console())


MORE = """
import numpy as np
import app

@app.custom_op(row_by_row=ROW_BY_ROW)
def centred(x):
    return x - x.mean(axis=0)

centred.backward(lambda dy: dy - dy.mean(axis=0))

@app.custom_op
def noisy(x):
    return x + np.random.normal(size=x.shape)

noisy.backward(lambda dy: dy)

@app.custom_op
def first_three(x, k=3):
    return np.where(np.arange(x.shape[1]) < k + 5, x, 0)

first_three.backward(lambda dy: dy)
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("centred", "it is declared row by row, but the rows of a batch give other numbers alone than together"),
        ("noisy", "the same inputs give another result each time"),
        (
            "first_three",
            r"gradient is wrong: .*\(wrong in 3 of 11 elements; .*; on x float64\[\d+, 11\] of the network",
        ),
    ],
)
def test_an_operator_is_checked_as_it_is_in_the_network(train, tmp_path, name, message):
    (tmp_path / "my_ops.py").write_text(MORE.replace("ROW_BY_ROW", "True"))
    own = ("check=true", f"model.activation=my_ops.py:{name}", "model.hidden=[11]")
    run = train(*own)
    assert run.status == 1
    assert re.search(f"error: my_ops.py:{name}: {message}", run.err)
    assert ("declare it: @operator.backward(surrogate=True)" in run.err) == (name == "first_three")
    assert train(*own, "--anyway").status == 0


@pytest.mark.parametrize(("shape", "is_refused"), [("none", False), ("allreduce", True)])
def test_an_operator_that_mixes_the_rows_of_a_batch_is_refused_on_several_ranks(tmp_path, shape, is_refused):
    (tmp_path / "my_ops.py").write_text(MORE.replace("ROW_BY_ROW", "False"))
    config = Config(model=ModelConfig(hidden=(5,)), dist=DistConfig(shape=shape))
    world = Mock(rank=0, size=2, allgather=lambda value: [value])
    refused = pytest.raises(OperatorError, match=r"my_ops.py:centred: the result of a row depends on the other rows")
    with refused if is_refused else nullcontext():
        check_gradients(config, [find_activation(f"{tmp_path}/my_ops.py:centred")], load_sample(), world, Console())
