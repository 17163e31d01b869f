"""What programs written for Paddle ask of Programs, optimisers and Executors."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.compat.paddle import fluid
from app.errors import AppError, ProgramError, ShapeError

X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "float32")


@pytest.fixture(autouse=True)
def static_mode() -> Any:
    app.enable_static()
    yield
    app.disable_static()


def run(fetch: Any) -> Any:
    executor = static.Executor()
    executor.run(static.default_startup_program())
    return executor.run(feed={"x": X}, fetch_list=fetch)


def data() -> Any:
    x = static.data("x", [None, 2])
    x.stop_gradient = False
    return x


def test_a_pruned_run_is_an_error():
    loss = app.sum(data() * 2.0)
    with pytest.raises(ProgramError, match="use_prune=True is not supported: run a clone of the Program"):
        static.Executor().run(static.default_main_program(), {"x": X}, [loss], use_prune=True)


def test_a_fully_connected_layer_of_several_inputs_has_an_attribute_for_each_weight():
    x = data()
    z = x * 2.0
    attrs = [app.ParamAttr(name=name, initializer=app.nn.initializer.Constant(1.0)) for name in ("first", "second")]
    out = fluid.layers.fc(input=[x, z], size=3, param_attr=attrs, bias_attr=False)
    assert {p.name for p in static.default_main_program().all_parameters()} == {"first", "second"}
    np.testing.assert_allclose(run([out])[0], np.repeat(3 * X.sum(1, keepdims=True), 3, 1))
    with pytest.raises(ShapeError, match="fc: 2 inputs, but 1 attributes of weights"):
        fluid.layers.fc(input=[x, z], size=3, param_attr=attrs[:1])


@pytest.mark.parametrize("shape", [[1], []])
@pytest.mark.parametrize("kind", [app.optimizer.SGD, app.optimizer.Adam])
def test_a_learning_rate_may_be_a_variable(shape: list[int], kind: Any):
    x = data()
    rate = static.create_global_var(shape, 0.5, "float32", persistable=True, name="rate")
    w = static.create_parameter([2], "float32", default_initializer=app.nn.initializer.Constant(2.0))
    optimizer = kind(learning_rate=rate)
    optimizer.minimize(app.sum(x * w))
    run([])
    step = X.sum(0) if kind is app.optimizer.SGD else 1.0
    np.testing.assert_allclose(static.global_scope().value(w.name), 2 - 0.5 * step, rtol=1e-5)
    with pytest.raises(AppError, match="the learning rate is the Variable rate, whose value is known only at run time"):
        optimizer.get_lr()
    with pytest.raises(AppError, match="the learning rate is the Variable rate; set that in the scope"):
        optimizer.set_lr(1.0)
    with pytest.raises(AppError, match="is a Variable of another Program"), static.program_guard(static.Program()):
        kind(learning_rate=rate).minimize(app.sum(static.nn.fc(static.data("y", [1, 1]), 1)))


@pytest.mark.parametrize(
    ("declared", "fed", "given"),
    [
        *(([2], shape, [3, 2]) for shape in ([3, 2], [3, 2, 1], [3, 1, 2])),
        ([1], [3], [3, 1]),
        ([2, 3], [2, 6], [2, 2, 3]),
        *(([2], shape, None) for shape in ([6], [2, 3], [1, 6], [3, 1])),
        ([0], [3, 0, 2], None),
    ],
)
def test_data_of_paddle_1_take_any_rank_of_as_many_rows(declared: list[int], fed: list[int], given: list[int] | None):
    x = fluid.layers.data("x", declared)
    array = np.resize(X, fed)
    run = partial(static.Executor().run, feed={"x": array}, fetch_list=[x * 2.0])
    if given is None:
        with pytest.raises(ShapeError, match=rf"x takes shape \[-1, {declared[0]}\], but was fed"):
            run()
    else:
        np.testing.assert_array_equal(run()[0], 2 * array.reshape(given))


def test_functions_of_paddle_1_write_to_their_outputs():
    x = data()
    count = fluid.layers.fill_constant([1], "float32", 1.0)
    fluid.layers.increment(count, 2.0)
    h, total, filled = x * 1.0, x * 1.0, x * 1.0
    fluid.layers.assign(x * 5.0, h)
    fluid.layers.sums([x, x], out=total)
    kept = fluid.layers.fill_constant([1], "float32", 3.0)
    fluid.layers.fill_constant([1], "float32", 9.0, out=kept)
    apart = fluid.layers.increment(count, in_place=False)
    found = run([count, h, total, kept, apart, filled])
    expected = [[3.0], 5 * X, 2 * X, [9.0], [4.0], X]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
