"""What programs written for Paddle ask of Programs, optimisers and Executors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.errors import AppError, ShapeError

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


def test_a_fully_connected_layer_of_several_inputs_has_an_attribute_for_each_weight():
    x = data()
    z = x * 2.0
    attrs = [app.ParamAttr(name=name, initializer=app.nn.initializer.Constant(1.0)) for name in ("first", "second")]
    out = static.nn.fc([x, z], 3, weight_attr=attrs, bias_attr=False)
    assert {p.name for p in static.default_main_program().all_parameters()} == {"first", "second"}
    np.testing.assert_allclose(run([out])[0], np.repeat(3 * X.sum(1, keepdims=True), 3, 1))
    with pytest.raises(ShapeError, match="fc: 2 inputs, but 1 attributes of weights"):
        static.nn.fc([x, z], 3, weight_attr=attrs[:1])


@pytest.mark.parametrize("shape", [[1], []])
@pytest.mark.parametrize("kind", [app.optimizer.SGD, app.optimizer.Adam])
def test_a_learning_rate_may_be_a_variable(shape: list[int], kind: Any):
    x = data()
    rate = static.create_global_var(shape, 0.5, "float32", name="rate")
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
