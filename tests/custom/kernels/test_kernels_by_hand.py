"""The kernels are smooth where they are tried, and the backward functions that were written by hand are right."""

from __future__ import annotations

import numpy as np
import pytest
from custom.array_slopes import central_differences, gradient_arguments, largest_difference, weights_for
from custom.kernels import KERNELS

BY_HAND = [name for name, one in KERNELS.items() if one.by_hand is not None]


def test_there_are_enough_to_judge_by():
    assert len(KERNELS) >= 40
    assert len(BY_HAND) >= 20


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_has_no_kink_where_it_is_tried(name: str):
    kernel = KERNELS[name]
    arguments = kernel.small()
    slopes = central_differences(kernel.function, arguments, weights_for(kernel.function, arguments))
    assert all(np.isfinite(slope).all() for slope in slopes)
    assert any(slope.any() for slope in slopes)


@pytest.mark.parametrize("name", BY_HAND)
def test_a_backward_by_hand_agrees_with_differences(name: str):
    kernel = KERNELS[name]
    arguments = kernel.small()
    weights = weights_for(kernel.function, arguments)
    gradients = kernel.by_hand(*gradient_arguments(kernel.by_hand, kernel.function, arguments, weights))
    assert largest_difference(gradients, central_differences(kernel.function, arguments, weights)) < 1e-7
