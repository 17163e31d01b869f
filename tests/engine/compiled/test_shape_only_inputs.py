"""What a gradient's function does not read is not kept for it: custom operators need no more than built-in ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

import app
from app import static
from app.custom import custom_op
from app.custom.shelf.relu import relu
from app.engine.compiled.buffers import plan_buffers
from app.engine.compiled.lower import lower
from app.engine.compiled.passes import PASSES, drop_shape_only_inputs
from app.engine.compiled.schedule import schedule
from app.engine.compiled.trial import why_not
from app.graph.passes import optimise

pytestmark = pytest.mark.slow


@custom_op(elementwise=True)
def of_one_number(x: Any) -> Any:
    return max(x, 0.0)


@of_one_number.backward
def _(y: Any, dy: Any) -> Any:
    return dy if y > 0 else 0.0


@custom_op
@njit
def of_arrays(x: Any) -> Any:
    return np.maximum(x, np.float32(0))


@of_arrays.backward
@njit
def _(y: Any, dy: Any) -> Any:
    return dy * (y > 0)  # np.where takes Numba two seconds


def _trained(activation: Callable[[Any], Any]) -> Any:
    x = static.data("x", [None, 8])
    hidden = activation(static.nn.fc(x, 6))
    loss = app.mean(static.nn.fc(hidden, 3))
    app.optimizer.SGD(0.1).minimize(loss)
    return loss


def _memory(activation: Callable[[Any], Any]) -> list[int]:
    """The sizes of the buffers of a small network, in a batch of 10."""
    program = static.Program()
    with static.program_guard(program, static.Program()):
        loss = _trained(activation)
    low = lower(optimise(program, [loss.name], PASSES), [loss.name], why_not)
    schedule(low)
    return sorted(buffer.elements(10) for buffer in plan_buffers(low, [loss.name]).buffers)


@pytest.mark.parametrize("activation", [of_one_number, of_arrays, relu])
def test_a_custom_relu_needs_the_memory_of_the_builtin_one(activation: Callable[[Any], Any]):
    assert _memory(activation) == _memory(app.relu)


@custom_op(elementwise=True)
def total(x: Any, y: Any) -> Any:
    return x + y


@total.backward
def _(dout: Any) -> Any:
    return dout, dout


def test_an_input_stays_where_no_other_input_has_its_shape():
    x, narrow = static.data("x", [None, 4]), static.data("narrow", [None, 1])
    x.stop_gradient = narrow.stop_gradient = False
    static.append_backward(app.mean(app.square(total(x, narrow))), parameter_list=[x, narrow])
    before = static.default_main_program()
    after = drop_shape_only_inputs(before)
    [gradient] = [op for op in after.global_block().ops if op.type == "total_grad"]
    shapes = [after.global_block().var(name).shape for name in gradient.inputs]
    assert shapes == [(-1, 1), (-1, 4)], "of x, narrow and the gradient of the sum, x is as good as the last"
    random, fetch = np.random.default_rng(0), [x.grad_name, narrow.grad_name]
    feed = {"x": random.normal(size=(5, 4)).astype("float32"), "narrow": random.normal(size=(5, 1)).astype("float32")}
    actual, expected = (static.Executor().run(program, feed, fetch) for program in (after, before))
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(one, other)
