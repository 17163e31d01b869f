"""Pooling against a plain loop over windows, ties and NaN, and what it says when it is misused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from image_calls import pooling

import app
from app.errors import OperatorError, ShapeError
from app.nn import functional
from app.ops.pooling import avg_pool2d, max_pool2d


def spans(
    size: int, axis: int, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, output_size: Any
) -> list[tuple[int, int, int]]:
    """Where each window along an axis begins and ends, and how many elements it covers with the padding's."""
    if output_size is not None:
        count = output_size[axis]
        ends = [(i * size // count, math.ceil((i + 1) * size / count)) for i in range(count)]
        return [(start, stop, stop - start) for start, stop in ends]
    length, step = kernel[axis], stride[axis]
    if padding == "same":
        total = max((math.ceil(size / step) - 1) * step + length - size, 0)
        before, after = total // 2, total - total // 2
    else:
        before, after = padding[axis]
    found = []
    for start in range(-before, size, step):
        stop = start + length
        if stop > size + after and not (ceil_mode and padding != "same"):
            break
        found.append((max(start, 0), min(stop, size), min(stop, size + after) - start))
        if stop >= size + after:
            break
    return found


def by_loop(x: np.ndarray, mean: bool, exclusive: bool = True, **windows: Any) -> np.ndarray:
    rows, columns = (spans(size, axis, **windows) for axis, size in enumerate(x.shape[2:]))
    y = np.zeros((*x.shape[:2], len(rows), len(columns)))
    for i, (top, bottom, height) in enumerate(rows):
        for j, (left, right, width) in enumerate(columns):
            part = x[:, :, top:bottom, left:right].astype("float64")
            numbers = (bottom - top) * (right - left) if exclusive else height * width
            y[:, :, i, j] = part.sum((2, 3)) / numbers if mean else part.max((2, 3))
    return y


@settings(max_examples=80, deadline=None)
@given(call=pooling())
def test_the_greatest_number_of_each_window(call: Any):
    (x,) = call.inputs
    found = max_pool2d.kernel(x, **call.attributes)
    expected = by_loop(x, mean=False, **call.attributes)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found.astype("float64"), expected)


@settings(max_examples=80, deadline=None)
@given(call=pooling(mean=True))
def test_the_mean_of_each_window(call: Any):
    (x,) = call.inputs
    found = avg_pool2d.kernel(x, **call.attributes)
    expected = by_loop(x, mean=True, **call.attributes)
    assert (found.dtype, found.shape) == (x.dtype, expected.shape)
    near = 1e-2 if x.dtype == "float16" else 1e-5
    np.testing.assert_allclose(found.astype("float64"), expected, rtol=near, atol=near)


def gradient(x: Any, **settings: Any) -> Any:
    image = app.to_tensor(np.array(x, "float64")[None, None], stop_gradient=False)
    functional.max_pool2d(image, **settings).sum().backward()
    return image.grad.numpy()[0, 0].tolist()


def test_the_first_of_equal_numbers_gets_the_gradient():
    assert gradient([[1, 1], [1, 1]], kernel_size=2) == [[1, 0], [0, 0]]
    assert gradient([[0, 1, 0], [1, 1, 1]], kernel_size=2, stride=1) == [[0, 2, 0], [0, 0, 0]]
    assert gradient([[-np.inf, -np.inf]], kernel_size=(1, 2)) == [[1, 0]]
    assert gradient([[-0.0, 0.0]], kernel_size=(1, 2)) == [[1, 0]]


def test_nan_is_the_greatest_of_a_window():
    x = app.to_tensor(np.array([[[[1.0, np.nan, 2.0, 3.0]]]]))
    assert np.isnan(functional.max_pool2d(x, (1, 2)).numpy()).tolist() == [[[[True, False]]]]
    assert gradient([[1, np.nan, 2, 3], [np.nan, 5, 1, 1]], kernel_size=2) == [[0, 1, 0, 1], [0, 0, 0, 0]]


def test_the_gradient_of_another_size_of_window_is_not_mixed_up():
    x = np.arange(36.0).reshape(6, 6)
    assert np.sum(gradient(x, kernel_size=3, stride=2, padding=1)) == 9


def test_parts_that_are_alike_are_ordinary_windows():
    x = app.randn([2, 3, 12, 9])
    found = functional.adaptive_avg_pool2d(x, (4, 3))
    assert (found == functional.avg_pool2d(x, 3)).all()
    whole = app.mean(x, axis=[2, 3], keepdim=True).numpy()
    np.testing.assert_allclose(functional.adaptive_avg_pool2d(x, 1).numpy(), whole, rtol=1e-5, atol=1e-6)


X = app.to_tensor(np.zeros((2, 3, 8, 8), "float32"))


@pytest.mark.parametrize(
    ("call", "kind", "told"),
    [
        (lambda: functional.max_pool2d(X[0], 2), ShapeError, "expected images of shape [images, channels"),
        (lambda: functional.max_pool2d(X, 2, padding=2), ShapeError, "padding must be less than the kernel (2, 2)"),
        (lambda: functional.max_pool2d(X, 9), ShapeError, "a window over 9 elements does not fit into an axis of 8"),
        (lambda: functional.max_pool2d(X, 2, return_mask=True), OperatorError, "return_mask is not supported"),
        (lambda: functional.avg_pool2d(X, 2, divisor_override=3), OperatorError, "multiply the means"),
        (lambda: functional.avg_pool2d(X, -1), ShapeError, "avg_pool2d: kernel_size must be a whole number of at"),
        (lambda: functional.adaptive_avg_pool2d(X, 0), ShapeError, "output_size must be a whole number of at least"),
        (lambda: functional.adaptive_max_pool2d(X, (1, 2, 3)), ShapeError, "output_size must be a whole number of"),
    ],
)
def test_what_cannot_be_pooled_is_said(call: Any, kind: type[Exception], told: str):
    with pytest.raises(kind) as caught:
        call()
    assert told in str(caught.value)
