"""Convolution against a plain loop over windows, its shapes, and what it says when it is misused."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from image_calls import convolving

import app
from app.errors import DtypeError, OperatorError, ShapeError
from app.nn import functional
from app.ops import REGISTRY
from app.ops.convolution import UNFOLDED, conv2d, conv2d_weight
from app.ops.size import named_size
from app.ops.spec import Spec


def by_loop(x: np.ndarray, weight: np.ndarray, stride: Any, padding: Any, dilation: Any, groups: int) -> np.ndarray:
    """The definition: of each window the sum of products, in float64."""
    x, weight = x.astype("float64"), weight.astype("float64")
    kernel, sizes = weight.shape[2:], x.shape[2:]
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    if padding == "same":
        totals = [max((-(-size // s) - 1) * s + r - size, 0) for size, s, r in zip(sizes, stride, reach, strict=True)]
        padding = [(total // 2, total - total // 2) for total in totals]
    x = np.pad(x, ((0, 0), (0, 0), *padding))
    counts = [(size - r) // s + 1 for size, r, s in zip(x.shape[2:], reach, stride, strict=True)]
    y = np.zeros((len(x), len(weight), *counts))
    for i, j in np.ndindex(*counts):
        top, left = i * stride[0], j * stride[1]
        window = x[:, :, top : top + reach[0] : dilation[0], left : left + reach[1] : dilation[1]]
        for channel in range(len(weight)):
            first = channel // (len(weight) // groups) * weight.shape[1]
            y[:, channel, i, j] = (window[:, first : first + weight.shape[1]] * weight[channel]).sum((1, 2, 3))
    return y


@settings(max_examples=60, deadline=None)
@given(call=convolving())
def test_it_is_the_sum_of_products_of_each_window(call: Any):
    x, weight = call.inputs
    found = conv2d.kernel(x, weight, **call.attributes)
    expected = by_loop(x, weight, **call.attributes)
    assert (found.dtype, found.shape) == (x.dtype, expected.shape)
    near = {"float16": 0.1, "float32": 1e-4, "float64": 1e-10}[x.dtype.name]
    np.testing.assert_allclose(found.astype("float64"), expected, rtol=near, atol=near)


@settings(max_examples=40, deadline=None)
@given(call=convolving("x"))
def test_its_gradients_are_the_transposed_products(call: Any):
    """<conv(x, w), y> is linear in each, so its gradients are known from it alone."""
    y, weight, x = (array.astype("float64") for array in call.inputs)
    total = (by_loop(x, weight, **call.attributes) * y).sum()
    for name, arrays, value in (("conv2d_input", (y, weight, x), x), ("conv2d_weight", (x, y, weight), weight)):
        gradient = REGISTRY[name].kernel(*arrays, **call.attributes)
        assert gradient.shape == value.shape
        np.testing.assert_allclose((gradient * value).sum(), total, rtol=1e-9, atol=1e-9)


def test_images_are_unfolded_a_few_at_a_time():
    x, weight = np.ones((200, 4, 32, 32), "float32"), np.ones((4, 4, 5, 5), "float32")
    y = conv2d.kernel(x, weight, **conv2d.attributes)
    tracemalloc.start()
    conv2d_weight.kernel(x, y, weight, **conv2d_weight.attributes)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 3 * UNFOLDED  # and all windows side by side would be 60 MB
    assert 10 * most < 200 * 4 * 25 * 28 * 28 * 4


def test_the_weights_gradient_is_the_same_every_time():
    random = np.random.default_rng(0)
    x, y = random.normal(size=(64, 3, 12, 12)).astype("float32"), random.normal(size=(64, 4, 8, 8)).astype("float32")
    like = np.zeros((4, 3, 5, 5), "float32")
    first = conv2d_weight.kernel(x, y, like, **conv2d_weight.attributes)
    assert all((conv2d_weight.kernel(x, y, like, **conv2d_weight.attributes) == first).all() for _ in range(3))


def test_sizes_that_only_a_run_tells_are_computed_with():
    n, h = named_size("n"), named_size("h")
    (found,) = conv2d.infer_outputs(
        [Spec((n, 3, h, -1), "float32"), Spec((8, 3, 5, 5), "float32")],
        {**conv2d.attributes, "stride": (2, 1), "padding": ((2, 2), (0, 0))},
    )
    assert found.shape[:2] == (n, 8)
    assert (found.shape[2].at(h=28), found.shape[3]) == (14, -1)


X = np.zeros((2, 3, 8, 8), "float32")
W = np.zeros((4, 3, 3, 3), "float32")


@pytest.mark.parametrize(
    ("x", "weight", "settings", "told"),
    [
        (X[0], W, {}, "expected images of shape [images, channels, height, width], found shape [3, 8, 8]"),
        (X, W[0], {}, "a weight of shape [outputs, channels of a group, height, width], found shape [3, 3, 3]"),
        (X[:, :2], W, {}, "takes images of 3 channels, found 2 channels in float32[2, 2, 8, 8]"),
        (X, W, {"groups": 2}, "takes images of 3 * 2 groups channels, found 3 channels"),
        (X, W, {"groups": 3}, "groups must divide the 4 outputs of the weight, found 3"),
        (X[:, :, :2], W, {}, "a window over 3 elements does not fit into an axis of 2"),
        (X, W, {"dilation": 4, "padding": [0, 0, 0, 0]}, "a window over 9 elements does not fit into an axis of 8"),
        (X, W, {"dilation": 5, "padding": 1}, "does not fit into an axis of 8 with 1 + 1 of padding"),
    ],
)
def test_what_cannot_be_convolved_is_said(x: np.ndarray, weight: np.ndarray, settings: Any, told: str):
    with pytest.raises(ShapeError) as caught:
        functional.conv2d(app.to_tensor(x), app.to_tensor(weight), **settings)
    assert told in str(caught.value)
    assert "conv2d" in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"stride": 0}, "conv2d: stride must be a whole number of at least 1, or two of them (height, width), found 0"),
        ({"stride": (1, 2, 3)}, "conv2d: stride must be a whole number of at least 1"),
        ({"dilation": 1.5}, "conv2d: dilation must be a whole number of at least 1"),
        ({"padding": -1}, "conv2d: padding must not be negative, found -1"),
        ({"padding": "full"}, 'conv2d: padding must be "same", "valid", a whole number'),
        ({"padding": [[0, 0], [1, 1], [2, 2], [2, 2]]}, "conv2d: only height and width can have padding"),
    ],
)
def test_settings_that_mean_nothing_are_named(settings: Any, told: str):
    with pytest.raises(ShapeError) as caught:
        functional.conv2d(app.to_tensor(X), app.to_tensor(W), **settings)
    assert told in str(caught.value)


def test_another_order_of_axes_is_refused_with_a_way_out():
    with pytest.raises(OperatorError, match=r"data_format must be 'NCHW', found 'NHWC'; transpose the images first"):
        functional.conv2d(app.to_tensor(X), app.to_tensor(W), data_format="NHWC")


def test_an_operator_itself_refuses_types_that_differ():
    with pytest.raises(DtypeError, match="expected values of one floating type, found float32 and float64"):
        conv2d.infer_outputs([Spec((1, 1, 4, 4), "float32"), Spec((1, 1, 2, 2), "float64")], conv2d.attributes)
