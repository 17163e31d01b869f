"""`static.nn.static_pylayer` without a function for the gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app import static
from app.errors import OperatorError

FEED = {"x": np.array([1, -2], "float32")}


def data(wants_gradient: bool = True) -> Any:
    x = static.data("x", [2])
    x.stop_gradient = not wants_gradient
    return x


def test_inputs_may_not_want_gradients_of_a_function_without_one():
    y = static.nn.static_pylayer(lambda a: -a, [data(wants_gradient=False)])
    assert static.Executor().run(feed=FEED, fetch_list=[y])[0].tolist() == [-1, 2]
    with static.program_guard(static.Program()):
        with pytest.raises(ValueError, match="all inputs must have stop_gradient=True; x has not") as caught:
            static.nn.static_pylayer(lambda a: -a, [data()])
        assert isinstance(caught.value, OperatorError)
