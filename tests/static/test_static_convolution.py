"""Convolutions and batch normalisation as functions of Programs, run by every engine.

`tests/engine/compiled/test_convolutions.py` trains with convolutions that are compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import optimizer, static
from app.errors import ShapeError
from app.nn import functional

IMAGES = np.random.default_rng(0).normal(size=(6, 1, 10, 10)).astype("float32")
LABELS = np.arange(6) % 3


def losses(engine: str, build: Any, steps: int = 3) -> list[float]:
    main, startup = static.Program(), static.Program()
    startup.random_seed = 3
    with static.program_guard(main, startup):
        x, label = static.data("x", [None, 1, 10, 10]), static.data("label", [None], "int64")
        loss = functional.cross_entropy(build(x), label)
        optimizer.Momentum(0.1).minimize(loss)
    scope, executor = static.Scope(), static.Executor(engine=engine)
    executor.run(startup, scope=scope)
    feed = {"x": IMAGES, "label": LABELS}
    return [float(executor.run(main, feed, [loss], scope=scope)[0]) for _ in range(steps)]


def with_pooling(x: Any) -> Any:
    x = static.nn.conv2d(x, 4, 3, padding=1, act="relu")
    x = functional.max_pool2d(x, 2, 2)
    x = static.nn.batch_norm(static.nn.conv2d(x, 6, 3, stride=2, groups=2), act="tanh")
    return static.nn.fc(functional.avg_pool2d(x, 2), 3)


def with_odd_windows(x: Any) -> Any:
    x = functional.max_pool2d(static.nn.conv2d(x, 3, (2, 3), stride=(1, 2), padding="same"), 3, 2, 1)
    x = static.nn.conv2d(x, 2, 2, dilation=2, bias_attr=False, act="sigmoid")
    return static.nn.fc(functional.max_pool2d(x, (2, 1)), 3)


def with_normalization(x: Any) -> Any:
    return static.nn.batch_norm(app.reshape(x, [-1, 100]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "build",
    [
        with_normalization,
        *(pytest.param(build, marks=pytest.mark.soak) for build in (with_pooling, with_odd_windows)),
    ],
)
def test_engines_train_alike(build: Any):
    expected = losses("reference", build)
    assert expected[-1] < expected[0]
    np.testing.assert_allclose(losses("compiled", build), expected, rtol=1e-4)


def test_unknown_channels_are_an_error():
    with static.program_guard(static.Program(), static.Program()):
        x = static.data("x", [None, None, 8, 8])
        with pytest.raises(ShapeError, match=r"with a known number of channels, found shape \[-1, -1, 8, 8\]"):
            static.nn.conv2d(x, 4, 3)
