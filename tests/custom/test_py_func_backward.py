"""The backward function of `py_func`: what it is given, what it may return, and when it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from func_modes import F32

import app
from app.static import py_func


def recorded(seen: list[Any], result: Callable[..., Any]) -> Callable[..., Any]:
    """A backward function that keeps what it is given."""

    def backward(*given: Any) -> Any:
        seen.append(given)
        return result(*given)

    return backward


@pytest.mark.parametrize(
    ("skip", "expected"),
    [
        ([], [1, 2, 3, 4]),
        (["x"], [2, 3, 4]),
        (["z"], [1, 3, 4]),
        (["a"], [1, 2, 4]),
        (["b", "x"], [2, 3]),
        (["x", "z", "a", "b"], []),
    ],
)
@pytest.mark.parametrize("as_list", [list, tuple])
def test_skipped_variables_are_not_passed(mode: Any, skip: list[str], expected: list[int], as_list: type):
    seen: list[Any] = []
    known = {"x": mode.input([1.0]), "z": mode.input([2.0]), "a": mode.output([1]), "b": mode.output([1])}
    py_func(
        lambda x, z: (x + z, x + z + 1),
        [known["x"], known["z"]],
        [known["a"], known["b"]],
        recorded(seen, lambda *given: (given[-2], given[-1])),
        as_list(known[name] for name in skip),
    )
    mode.gradients(known["a"] * 7.0 + known["b"] * 8.0, [known["x"], known["z"]])
    assert [v.item() for v in seen[0]] == [*expected, 7, 8]


def test_an_input_that_is_given_twice_is_skipped_twice(mode: Any):
    seen: list[Any] = []
    x, y = mode.input([2.0]), mode.output([1])
    py_func(lambda a, b: a * b, [x, x], y, recorded(seen, lambda y, dy: (2 * dy, 2 * dy)), x)
    assert mode.gradients(y, [x])[0] == 4
    assert [v.item() for v in seen[0]] == [4, 1]


def test_a_missing_output_gradient_is_passed_as_none(mode: Any):
    seen: list[Any] = []
    x = mode.input([1.0, 2.0])
    backward = recorded(seen, lambda x, a, b, da, db: db * 3)
    _, b = py_func(lambda v: (v, v * 3), x, [mode.output([2]), mode.output([2])], backward)
    np.testing.assert_array_equal(mode.gradients(b, [x])[0], [3, 3])
    assert seen[0][3] is None
    np.testing.assert_array_equal(seen[0][4], [1, 1])


def test_none_is_returned_for_an_input_without_gradient(mode: Any):
    x, index = mode.input([1.0, 2.0, 3.0]), mode.input([2, 0], stop_gradient=True)

    def backward(x: Any, index: Any, y: Any, dy: Any) -> Any:
        dx = np.zeros_like(x)
        dx[index] = dy
        return dx, None

    y = py_func(lambda x, index: x[index], [x, index], mode.output([2]), backward)
    np.testing.assert_array_equal(mode.gradients(y * y, [x])[0], [2, 0, 6])


def test_a_function_without_backward_stops_gradients(mode: Any):
    x = mode.input([1.0, 2.0])
    y = py_func(lambda v: v * v, x, mode.output([2]))
    assert y.stop_gradient
    np.testing.assert_array_equal(mode.gradients(y * x, [x])[0], [1, 4])


def test_whole_numbers_have_no_gradient(mode: Any):
    x = mode.input([1.0, 2.0])
    whole, y = py_func(
        lambda v: (v.astype("int32"), v), x, [mode.output([2], "int32"), mode.output([2])], lambda *given: given[-1]
    )
    assert whole.stop_gradient
    assert not y.stop_gradient
    np.testing.assert_array_equal(mode.gradients(app.cast(whole, F32) * y, [x])[0], [1, 2])


def test_the_backward_function_is_not_called_where_no_input_wants_a_gradient(mode: Any):
    seen: list[Any] = []
    x, z = mode.input([1.0], stop_gradient=True), mode.input([2.0])
    y = py_func(lambda v: v * 2, x, mode.output([1]), recorded(seen, lambda x, y, dy: dy))
    assert y.stop_gradient
    assert mode.gradients(y * z, [z])[0] == 2
    assert not seen
