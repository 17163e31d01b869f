"""Convolution and pooling against plain NumPy, ties and NaN, and wrong arguments."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from image_calls import convolving, pooling
from numpy.lib.stride_tricks import sliding_window_view

import app
from app.errors import DtypeError, OperatorError, ShapeError
from app.nn import functional as F  # noqa: N812 - the name that every tutorial uses
from app.ops import REGISTRY
from app.ops.convolution import UNFOLDED, conv2d, conv2d_weight
from app.ops.pooling import avg_pool2d, max_pool2d
from app.ops.size import named_size
from app.ops.spec import Spec


def padding_along(padding: Any, axis: int, size: int, stride: int, reach: int) -> tuple[int, int]:
    if padding != "same":
        return padding[axis]
    total = max((math.ceil(size / stride) - 1) * stride + reach - size, 0)
    return total // 2, total - total // 2


def convolved(x: np.ndarray, weight: np.ndarray, stride: Any, padding: Any, dilation: Any, groups: int) -> np.ndarray:
    """The definition: of each window the sum of products, in float64."""
    images, outputs = len(x), len(weight)
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, weight.shape[2:], strict=True)]
    pads = [padding_along(padding, axis, x.shape[2 + axis], stride[axis], reach[axis]) for axis in (0, 1)]
    windows = sliding_window_view(np.pad(x.astype("float64"), ((0, 0), (0, 0), *pads)), reach, (2, 3))
    windows = windows[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]
    windows = windows.reshape(images, groups, weight.shape[1], *windows.shape[2:])
    grouped = weight.astype("float64").reshape(groups, outputs // groups, *weight.shape[1:])
    return np.einsum("ngcyxij,gocij->ngoyx", windows, grouped).reshape(images, outputs, *windows.shape[3:5])


def spans(size: int, axis: int, kernel: Any, stride: Any, padding: Any, ceil_mode: bool) -> list[tuple[int, int, int]]:
    """Where each window along an axis begins and ends, and how many elements it covers with the padding's."""
    before, after = padding_along(padding, axis, size, stride[axis], kernel[axis])
    windows = []
    for start in range(-before, size, stride[axis]):
        stop = start + kernel[axis]
        if stop > size + after and not (ceil_mode and padding != "same"):
            break
        windows.append((max(start, 0), min(stop, size), min(stop, size + after) - start))
        if stop >= size + after:
            break
    return windows


def pooled(x: np.ndarray, mean: bool, exclusive: bool = True, **windows: Any) -> np.ndarray:
    rows, columns = (spans(size, axis, **windows) for axis, size in enumerate(x.shape[2:]))
    y = np.zeros((*x.shape[:2], len(rows), len(columns)))
    for i, (top, bottom, height) in enumerate(rows):
        for j, (left, right, width) in enumerate(columns):
            part = x[:, :, top:bottom, left:right].astype("float64")
            numbers = (bottom - top) * (right - left) if exclusive else height * width
            y[:, :, i, j] = part.sum((2, 3)) / numbers if mean else part.max((2, 3))
    return y


def assert_near(actual: np.ndarray, expected: np.ndarray, dtype: Any, near: dict[str, float]) -> None:
    assert (actual.dtype, actual.shape) == (dtype, expected.shape)
    np.testing.assert_allclose(actual.astype("float64"), expected, rtol=near[dtype.name], atol=near[dtype.name])


@settings(max_examples=60, deadline=None)
@given(call=convolving())
def test_a_convolution_is_the_sum_of_products_of_each_window(call: Any):
    result, dtype = conv2d.kernel(*call.inputs, **call.attributes), call.inputs[0].dtype
    near = {"float16": 0.1, "float32": 1e-4, "float64": 1e-10}
    assert_near(result, convolved(*call.inputs, **call.attributes), dtype, near)


@settings(max_examples=40, deadline=None)
@given(call=convolving("x"))
def test_gradients_of_a_convolution_are_the_transposed_products(call: Any):
    """<conv(x, w), y> is linear in each, so its gradients are known from it alone."""
    y, weight, x = (array.astype("float64") for array in call.inputs)
    total = (convolved(x, weight, **call.attributes) * y).sum()
    for name, arrays, value in (("conv2d_input", (y, weight, x), x), ("conv2d_weight", (x, y, weight), weight)):
        gradient = REGISTRY[name].kernel(*arrays, **call.attributes)
        assert gradient.shape == value.shape
        np.testing.assert_allclose((gradient * value).sum(), total, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("operator", [max_pool2d, avg_pool2d], ids=["max", "mean"])
def test_pooling_gives_the_maximum_or_the_mean_of_each_window(operator: Any):
    mean = operator is avg_pool2d
    near = {"float16": 1e-2, "float32": 1e-5, "float64": 1e-5}

    @settings(max_examples=80, deadline=None)
    @given(call=pooling(mean=mean))
    def check(call: Any) -> None:
        (x,) = call.inputs
        result, expected = operator.kernel(x, **call.attributes), pooled(x, mean, **call.attributes)
        assert_near(result, expected, x.dtype, near if mean else dict.fromkeys(near, 0.0))

    check()


def test_a_convolution_unfolds_a_few_images_at_a_time():
    x, weight = np.ones((200, 4, 32, 32), "float32"), np.ones((4, 4, 5, 5), "float32")
    y = conv2d.kernel(x, weight, **conv2d.attributes)
    tracemalloc.start()
    conv2d_weight.kernel(x, y, weight, **conv2d_weight.attributes)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 3 * UNFOLDED  # and all windows side by side would be 60 MB
    assert 10 * most < 200 * 4 * 25 * 28 * 28 * 4


def test_the_gradient_of_a_weight_is_the_same_every_time():
    random = np.random.default_rng(0)
    x, y = random.normal(size=(64, 3, 12, 12)).astype("float32"), random.normal(size=(64, 4, 8, 8)).astype("float32")
    like = np.zeros((4, 3, 5, 5), "float32")
    first, *others = (conv2d_weight.kernel(x, y, like, **conv2d_weight.attributes) for _ in range(4))
    assert all((other == first).all() for other in others)


def test_inference_computes_with_sizes_that_only_a_run_tells():
    n, h = named_size("n"), named_size("h")
    (spec,) = conv2d.infer_outputs(
        [Spec((n, 3, h, -1), "float32"), Spec((8, 3, 5, 5), "float32")],
        {**conv2d.attributes, "stride": (2, 1), "padding": ((2, 2), (0, 0))},
    )
    assert spec.shape[:2] == (n, 8)
    assert (spec.shape[2].at(h=28), spec.shape[3]) == (14, -1)


def gradient(x: Any, **settings: Any) -> Any:
    image = app.to_tensor(np.array(x, "float64")[None, None], stop_gradient=False)
    F.max_pool2d(image, **settings).sum().backward()
    return image.grad.numpy()[0, 0].tolist()


def test_the_first_of_equal_numbers_gets_the_gradient_of_a_maximum():
    assert gradient([[1, 1], [1, 1]], kernel_size=2) == [[1, 0], [0, 0]]
    assert gradient([[0, 1, 0], [1, 1, 1]], kernel_size=2, stride=1) == [[0, 2, 0], [0, 0, 0]]
    assert gradient([[-np.inf, -np.inf]], kernel_size=(1, 2)) == [[1, 0]]
    assert gradient([[-0.0, 0.0]], kernel_size=(1, 2)) == [[1, 0]]


def test_nan_is_the_maximum_of_a_window():
    x = app.to_tensor(np.array([[[[1.0, np.nan, 2.0, 3.0]]]]))
    assert np.isnan(F.max_pool2d(x, (1, 2)).numpy()).tolist() == [[[[True, False]]]]
    assert gradient([[1, np.nan, 2, 3], [np.nan, 5, 1, 1]], kernel_size=2) == [[0, 1, 0, 1], [0, 0, 0, 0]]


X = app.zeros([2, 3, 8, 8])
W = app.zeros([4, 3, 3, 3])
ERRORS: dict[type[OperatorError], list[tuple[Callable[[], Any], str]]] = {
    ShapeError: [
        (lambda: F.conv2d(X[0], W), "conv2d of (float32[3, 8, 8], float32[4, 3, 3, 3]): expected images of shape"),
        (lambda: F.conv2d(X, W[0]), "a weight of shape [outputs, channels of a group, height, width], found shape"),
        (lambda: F.conv2d(X[:, :2], W), "takes images of 3 channels, found 2 channels in float32[2, 2, 8, 8]"),
        (lambda: F.conv2d(X, W, groups=2), "takes images of 3 * 2 groups channels, found 3 channels"),
        (lambda: F.conv2d(X, W, groups=3), "groups must divide the 4 outputs of the weight, found 3"),
        (lambda: F.conv2d(X[:, :, :2], W), "a window over 3 elements does not fit into an axis of 2"),
        (
            lambda: F.conv2d(X, W, dilation=4, padding=[0] * 4),
            "a window over 9 elements does not fit into an axis of 8",
        ),
        (lambda: F.conv2d(X, W, dilation=5, padding=1), "does not fit into an axis of 8 with 1 + 1 of padding"),
        (
            lambda: F.conv2d(X, W, stride=0),
            "conv2d: stride must be a whole number of at least 1, or two of them (height, width), found 0",
        ),
        (lambda: F.conv2d(X, W, stride=(1, 2, 3)), "conv2d: stride must be a whole number of at least 1"),
        (lambda: F.conv2d(X, W, dilation=1.5), "conv2d: dilation must be a whole number of at least 1"),
        (lambda: F.conv2d(X, W, padding=-1), "conv2d: padding must not be negative, found -1"),
        (lambda: F.conv2d(X, W, padding="full"), 'conv2d: padding must be "same", "valid", a whole number'),
        (lambda: F.conv2d(X, W, padding=[[0, 0], [1, 1], [2, 2], [2, 2]]), "conv2d: only height and width can have"),
        (lambda: F.max_pool2d(X[0], 2), "expected images of shape [images, channels"),
        (lambda: F.max_pool2d(X, 2, padding=2), "padding must be less than the kernel (2, 2)"),
        (lambda: F.max_pool2d(X, 9), "a window over 9 elements does not fit into an axis of 8"),
        (lambda: F.avg_pool2d(X, -1), "avg_pool2d: kernel_size must be a whole number of at"),
    ],
    DtypeError: [
        (
            lambda: conv2d.infer_outputs([X[:1, :, :4, :4], W.astype("float64")], conv2d.attributes),
            "expected values of one floating type, found float32 and float64",
        )
    ],
}


@pytest.mark.parametrize(("kind", "call", "message"), [(kind, *row) for kind, rows in ERRORS.items() for row in rows])
def test_wrong_arguments_are_errors(kind: type[OperatorError], call: Callable[[], Any], message: str):
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert message in str(caught.value)
