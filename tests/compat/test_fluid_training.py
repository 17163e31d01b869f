"""paddle.fluid: rates that fall by themselves, figures over batches, tables of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from app.compat import fluid
from app.graph import defaults, names

layers = fluid.layers

DECAYS: list[tuple[Callable[[], Any], list[float]]] = [
    (lambda: layers.exponential_decay(0.8, 2, 0.25), [0.8, 0.4, 0.2, 0.1]),
    (lambda: layers.exponential_decay(0.8, 2, 0.25, staircase=True), [0.8, 0.8, 0.2, 0.2]),
    (lambda: layers.natural_exp_decay(0.8, 2, 0.5), [0.8 * math.exp(-0.25 * n) for n in range(4)]),
    (lambda: layers.inverse_time_decay(0.8, 1, 1.0), [0.8, 0.4, 0.8 / 3, 0.2]),
    (lambda: layers.polynomial_decay(0.8, 4, 0.0), [0.8, 0.6, 0.4, 0.2]),
    (lambda: layers.piecewise_decay([1, 3], [0.3, 0.2, 0.1]), [0.3, 0.2, 0.2, 0.1]),
    (lambda: layers.cosine_decay(0.8, 2, 4), [0.8, 0.8, 0.4 + 0.4 * math.sqrt(0.5), 0.4 + 0.4 * math.sqrt(0.5)]),
    (lambda: layers.linear_lr_warmup(0.8, 2, 0.0, 0.4), [0.0, 0.2, 0.8, 0.8]),
]


@pytest.fixture
def program() -> Iterator[Any]:
    main, startup = fluid.Program(), fluid.Program()
    with names.guard(), defaults.static_mode(), fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        yield main


@pytest.mark.parametrize(("decay", "rates"), DECAYS)
def test_every_run_goes_on_in_a_decay(program: Any, decay: Callable[[], Any], rates: list[float]):
    x = fluid.data("x", [1], "float32")
    y = layers.fc(x, 1, bias_attr=False, param_attr=fluid.ParamAttr("w"))
    test_program = program.clone(for_test=True)
    fluid.optimizer.SGD(learning_rate=decay()).minimize(layers.mean(y))
    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(fluid.default_startup_program())
    weights, feed = [], {"x": np.ones(1, "float32")}
    for _ in range(5):
        weights.append(float(np.asarray(fluid.global_scope().values["w"]).item()))
        executor.run(test_program, feed=feed, fetch_list=[y])  # a run without a step leaves the rate
        executor.run(program, feed=feed)
    np.testing.assert_allclose(-np.diff(weights), rates, atol=1e-6)


def test_a_decay_goes_on_with_eager_steps_too():
    with fluid.dygraph.guard():
        w = fluid.dygraph.to_variable(np.ones(1, "float32"))
        w.stop_gradient = False
        optimizer = fluid.optimizer.SGD(layers.exponential_decay(0.5, 1, 0.5), parameter_list=[w])
        for _ in range(2):
            loss = layers.mean(w)
            loss.backward()
            optimizer.minimize(loss)
            optimizer.clear_gradients()
    np.testing.assert_allclose(w.numpy(), [0.25])


def test_figures_over_batches():
    accuracy, average = fluid.metrics.Accuracy(), fluid.average.WeightedAverage()
    for value, size in ((0.5, 10), ([1.0], 30)):
        accuracy.update(value=value, weight=size)
        average.add(value, size)
    assert accuracy.eval() == average.eval() == 0.875
    with pytest.raises(AttributeError, match=r"closest: paddle\.metric\.Recall"):
        fluid.metrics.Recall  # noqa: B018


def test_a_last_axis_of_one_number_becomes_the_row(program: Any):
    ids = fluid.data("ids", [None, 1], "int64")
    assert tuple(layers.embedding(ids, size=[5, 3]).shape) == (-1, 3)
    assert tuple(fluid.embedding(ids, size=[5, 3]).shape) == (-1, 1, 3)
