"""Convolution and pooling as users write them. The numbers were recorded from Paddle 3.3.1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import app
from app import nn
from app.errors import ShapeError
from app.nn import functional as F  # noqa: N812 - the name that it has everywhere

X = app.arange(25, dtype="float32").reshape([1, 1, 5, 5])
ONES = app.ones([1, 1, 2, 2])


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: F.conv2d(X, ONES, padding="SAME", stride=2), [[12, 20, 13], [52, 60, 33], [41, 45, 24]]),
        (lambda: F.max_pool2d(X, 2, 2, ceil_mode=True), [[6, 8, 9], [16, 18, 19], [21, 23, 24]]),
        (lambda: F.max_pool2d(X, 3, 2, padding="SAME"), [[6, 8, 9], [16, 18, 19], [21, 23, 24]]),
        (lambda: F.avg_pool2d(X, 2, 2, padding="SAME"), [[3, 5, 6.5], [13, 15, 16.5], [20.5, 22.5, 24]]),
        (lambda: F.avg_pool2d(X, 3, 2, 1, exclusive=False), [[4 / 3, 3, 8 / 3], [7, 12, 9], [8, 13, 28 / 3]]),
        (lambda: F.avg_pool2d(X, 3, 2, padding=1), [[3, 4.5, 6], [10.5, 12, 13.5], [18, 19.5, 21]]),
        (lambda: F.avg_pool2d(X, 2, 2, 0, True, False), [[3, 5, 6.5], [13, 15, 16.5], [20.5, 22.5, 24]]),
    ],
)
def test_functions_give_the_numbers_of_paddle(call: Any, expected: Any):
    np.testing.assert_allclose(np.squeeze(call().numpy()), expected, rtol=1e-6)


@pytest.mark.parametrize("padding", [[1, 0, 2, 0], [[1, 0], [2, 0]], [[0, 0], [0, 0], [1, 0], [2, 0]]])
def test_padding_can_be_written_in_several_ways(padding: Any):
    assert F.conv2d(X, ONES, padding=padding).shape == [1, 1, 5, 6]


@pytest.mark.parametrize(
    ("layer", "printed"),
    [
        (lambda: nn.Conv2D(1, 6, 5, padding=2, stride=2),
         "Conv2D(1, 6, kernel_size=[5, 5], stride=[2, 2], padding=2)"),
        (lambda: nn.MaxPool2D(2, 2), "MaxPool2D(kernel_size=2, stride=2, padding=0)"),
        (lambda: nn.AvgPool2D(3), "AvgPool2D(kernel_size=3, stride=None, padding=0)"),
        (lambda: nn.BatchNorm2D(4), "BatchNorm2D(num_features=4, momentum=0.9, epsilon=1e-05)"),
    ],
)  # fmt: skip
def test_layers_print_as_in_paddle(layer: Any, printed: str):
    assert repr(layer()) == printed


def test_a_convolution_layer_is_the_function_with_its_weight_and_bias():
    layer = nn.Conv2D(4, 6, (3, 2), stride=2, padding="same", groups=2)
    x = app.randn([2, 4, 7, 6])
    assert (layer.weight.shape, layer.bias.shape) == ([6, 2, 3, 2], [6])
    expected = F.conv2d(x, layer.weight, layer.bias, 2, "same", 1, 2)
    assert (layer(x) == expected).all()
    assert nn.Conv2D(4, 6, 3, bias_attr=False).bias is None


def test_a_convolution_begins_with_normal_weights_and_zero_biases():
    app.seed(0)
    layer = nn.Conv2D(3, 64, 5)
    assert layer.weight.numpy().std() == pytest.approx(math.sqrt(2 / (3 * 25)), rel=0.05)
    assert not layer.bias.numpy().any()


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: nn.Conv2D(3, 4, 3, groups=2), ShapeError, "found 2 groups of 3 and 4 channels"),
        (lambda: nn.Conv2D(3, 4, "3"), ShapeError, "Conv2D: kernel_size must be a whole number of at least 1"),
    ],
)
def test_wrong_arguments_are_errors(call: Any, kind: type[Exception], message: str):
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)
