"""What cannot be converted is told with the line, and how to write it."""

from __future__ import annotations

import numpy as np
import pytest

import app
from app.data import Batches
from app.errors import AppError, ProgramError
from app.jit import not_to_static, to_static

X = app.to_tensor(np.ones((3, 2), "float32"))


def run(function):
    return to_static(function, backend="reference")(X)


def test_a_lambda_is_traced_without_conversion():
    assert float(run(lambda x: x.sum() * 2)) == 12
    with pytest.raises(ProgramError, match=r"app.where"):
        run(lambda x: x if x.sum() > 0 else -x)


def test_a_function_that_is_left_alone_is_not_converted():
    @not_to_static
    def inner(x):
        return x if x.sum() > 0 else -x

    def outer(x):
        return inner(x)

    with pytest.raises(ProgramError, match=r"test_conversion_errors.py:\d+: return x if"):
        run(outer)


def test_branches_that_return_different_kinds_are_told():
    def function(x):
        if x.sum() > 0:
            return x, x
        return x

    with pytest.raises(ProgramError, match=r"test_conversion_errors.py:\d+: return values of the same kind"):
        run(function)


def test_a_variable_of_one_branch_is_told_when_it_is_used():
    def function(x):
        if x.sum() > 0:
            y = x
        return y * 2

    with pytest.raises(
        ProgramError, match=r"y has no value here: it has a value in only one branch .* give it one before"
    ):
        run(function)


def test_a_list_that_grows_in_a_loop_is_told():
    def function(x):
        out = []
        i = x.sum() * 0
        while i < 3:
            out.append(x)
            i = i + 1
        return out

    with pytest.raises(ProgramError, match=r"out changes .* out\[i\] = x"):
        run(function)


def test_a_text_that_changes_in_a_loop_is_told():
    def function(x):
        name, i = "a", x.sum() * 0
        while i < 3:
            name = name + "b"
            i = i + 1
        return x, name

    with pytest.raises(ProgramError, match=r"name changes from 'a' to 'ab' .* only Tensors and numbers"):
        run(function)


def test_numbers_of_values_are_told_with_the_line():
    def function(x):
        return x * np.asarray(x.sum())

    with pytest.raises(AppError, match=r"no value yet(.|\n)*np.asarray\(x.sum\(\)\)"):
        run(function)


def test_a_condition_of_many_elements_is_told():
    def function(x):
        if x > 0:
            x = -x
        return x

    with pytest.raises(ProgramError, match=r"neither true nor false; use app.any or app.all"):
        run(function)


def test_a_layer_made_inside_is_told():
    def function(x):
        return app.nn.Linear(2, 2)(x)

    with pytest.raises(ProgramError, match=r"creates a parameter"):
        run(function)


def test_a_schedule_cannot_be_traced():
    schedule = app.optimizer.lr.StepDecay(0.1, 2)

    def function(x):
        schedule.step()
        return x * 2

    with pytest.raises(AppError, match=r"outside"):
        run(function)


def test_an_unknown_backend_is_told():
    with pytest.raises(ProgramError, match=r"there are compiled, reference"):
        to_static(lambda x: x, backend="fast")


def test_a_loop_over_batches_is_told():
    batches = Batches(np.ones((6, 2), "float32"), np.zeros(6, "int64"), None, 2)

    def epoch(rows):
        for x, _ in rows:
            print(x)

    with pytest.raises(ProgramError, match=r"test_conversion_errors.py:\d+: a loop over batches .*train_from_dataset"):
        to_static(epoch, backend="reference")(batches)
