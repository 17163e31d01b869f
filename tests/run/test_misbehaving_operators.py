"""What a user reads when an operator of theirs misbehaves in training: the same with every engine, and no traceback."""

import re
import shutil
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest
from safetensors.numpy import load_file

from app.custom.read_only import ADVICE
from app.run.config import Config

OPERATORS = Path(__file__).with_name("misbehaving_operators.py")
ENGINES = get_args(get_type_hints(Config)["engine"])

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("engine", ENGINES)]


@pytest.fixture
def misbehave(train, tmp_path, engine):
    """`train.py` with one of the operators, from a file of its own: operators that count begin anew."""
    shutil.copy(OPERATORS, tmp_path / "my_ops.py")

    def run(operator, *words, folder="run"):
        settings = (
            f"model.activation=my_ops.py:{operator}",
            f"engine={engine}",
            "baseline=null",
            "check=false",
            *words,
        )
        return train(*settings, folder=folder)

    return run


@pytest.mark.parametrize(
    ("operator", "told"),
    [
        (
            "gradient_of_wrong_shape",
            "error: the gradient of operator own (my_ops.py:16): the gradient of x has shape [8, 1], expected that of "
            "x, [8, 5]",
        ),
        (
            "writes_into_its_input",
            "operator own (my_ops.py:16): its function writes_into_its_input raised ValueError: assignment "
            f"destination is read-only (my_ops.py:58); {ADVICE}",
        ),
        (
            "writes_natively",
            "operator own (my_ops.py:16): in its function writes_natively: it writes into an array that it is "
            f"given (my_ops.py:67: `x[row, column] = max(x[row, column], 0)`); {ADVICE}",
        ),
        (
            "gradient_that_writes",
            "error: the gradient of operator own (my_ops.py:16): its function <lambda> raised ValueError: output "
            f"array is read-only (my_ops.py:94); {ADVICE}",
        ),
        (
            "few_columns",
            "made shape [BATCH, 4] of shape [BATCH, 5]; between two layers an operator keeps the shape",
        ),
        ("few_rows", " shape [3, 5]"),
    ],
)
def test_what_the_first_step_shows_ends_training_before_it_begins(misbehave, operator, told, engine):
    run = misbehave(operator)
    assert run.status == 1
    assert told.replace("BATCH", "8" if engine == "eager" else "-1") in run.err
    assert not run.folder.exists()


def test_an_operator_that_makes_nan_of_finite_numbers_is_named_with_what_it_was_given(misbehave, engine):
    run = misbehave("nan_from_finite")
    first, blame, got, made, *_ = run.err.splitlines()
    assert run.status == 1
    assert first == "error: my_ops.py:nan_from_finite: the loss became NaN in iteration 2 of epoch 2."
    assert blame == (
        "Replaying the step, operator own (my_ops.py:16) is the first operator that turns finite inputs "
        "into NaN or inf:"
    )
    assert got.split()[0] == "in"
    assert got.endswith("all finite")
    assert made.split()[0] == "out"
    assert made.endswith("not finite: 1 of 40 (1 NaN)")
    # The saved weights are those before this step.
    before = misbehave("relu_as_it_is", "train.epochs=1", folder="before")
    (event,) = [m for m in run.metrics if m["event"] == "nonfinite"]
    assert (event["epoch"], event["iteration"], event["did"]) == (1, 2, "stop")
    assert "operator own (my_ops.py:16)" in event["what"]
    kept, after_one_epoch = (load_file(next(r.folder.glob("weights-*"))) for r in (run, before))
    for name, weights in kept.items():
        assert np.isfinite(weights).all()
        assert not np.array_equal(weights, after_one_epoch[name])


@pytest.mark.parametrize(
    ("operator", "blamed"),
    [("gradient_of_nan", "own_grad (my_ops.py:16)"), ("LayerOfNan", "LayerOfNan_grad (my_ops.py:98)")],
)
def test_a_backward_pass_that_makes_nan_is_found_by_the_weights(misbehave, operator, blamed, engine):
    run = misbehave(operator)
    assert f"error: my_ops.py:{operator}: the weights became NaN or infinite in iteration 0 of epoch 1." in run.err
    named = blamed.replace("_grad", "")
    expected = f"the gradient of operator {named}" if engine == "eager" else f"operator {blamed}"
    assert f"{expected} is the first operator that turns finite inputs" in run.err


@pytest.mark.filterwarnings("error")
def test_a_gradient_so_wrong_that_numbers_overflow_is_told_to_be_wrong(misbehave, engine):
    run = misbehave("gradient_too_large")
    assert run.status == 1
    got = [line for line in run.err.splitlines() if line.startswith("  in ")]
    assert got
    assert all(line.endswith("all finite") for line in got)
    assert "my_ops.py:gradient_too_large: gradient is wrong: it is " in run.err


def test_a_surrogate_whose_numbers_overflow_is_not_called_wrong(misbehave, engine):
    run = misbehave("surrogate_too_large")
    assert run.status == 1
    assert "train.learning_rate may be too high" in run.err
    assert "is wrong" not in run.err


def test_a_learning_rate_that_is_too_large_is_named_where_nothing_is_wrong_with_the_operator(train, engine):
    words = ("train.learning_rate=1e30", "train.weight_decay=0.01", "model.activation=relu", "baseline=null")
    run = train(*words, f"engine={engine}")
    assert run.status == 1
    assert "The inputs were already very large: train.learning_rate may be too high." in run.err


def test_an_operator_that_raises_is_told_with_the_iteration(misbehave, engine):
    run = misbehave("raises_later", "train.epochs=30")
    assert run.status == 1
    told = r"error: operator own \(my_ops\.py:16\): its function raises_later raised RuntimeError: enough of it"
    assert re.search(told + r" \(my_ops\.py:\d+\)\n", run.err)
    assert "This happened in iteration " in run.err


def test_an_operator_that_exits_ends_training_with_an_error(misbehave, engine):
    run = misbehave("exits_later", "train.epochs=30")
    assert run.status == 1
    assert "its function exits_later raised SystemExit: 0" in run.err
    assert "This happened in iteration " in run.err


def test_an_operator_that_raises_once_is_told_to_remember_something(misbehave, engine):
    run = misbehave("raises_once", "train.epochs=30")
    assert run.status == 1
    assert re.search(r"raises_once raised RuntimeError: enough of it \(my_ops\.py:\d+\)\nThis happened ", run.err)
    assert "Replaying the steps raised no error, so an operator keeps state between calls." in run.err


def test_what_a_backward_over_tensors_raises_is_an_error_like_any_other(misbehave, engine):
    run = misbehave("LayerThatRaises")
    assert run.status == 1
    assert "ZeroDivisionError: integer division or modulo by zero" in run.err
    assert "LayerThatRaises (my_ops.py:" in run.err


def test_a_shape_that_changes_with_the_batch_is_told_with_the_operator(misbehave, engine):
    run = misbehave("other_at_the_end")  # the last batch of each epoch has 4 images
    assert run.status == 1
    made = "my_ops.py:other_at_the_end made shape [4, 3] of shape [4, 5]"
    foretold = "operator own (my_ops.py:16) returned shape [4, 3] for a batch of 4, expected [-1, 5]"
    assert (made if engine == "eager" else foretold) in run.err
    assert "This happened in iteration 7 of epoch 1." in run.err
