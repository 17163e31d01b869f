"""Kernels are smooth where they are tried, and their derivatives, derived and by hand, agree with differences."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from derivative.array_slopes import copied, is_float_array, largest_difference, listed
from derivative.kernels import KERNELS, compiled, interpreted
from derivative.slopes_of_arrays import agrees

NEAR = 1e-6
BY_HAND = [name for name, one in KERNELS.items() if one.by_hand is not None]
NEAR_OF = {"float64": 1e-9, "float32": 2e-3}
COMPILED = {"gather": "float64", "newton_sqrt": "float32"}
"""Kernels whose gradients are compiled by each run of the tests; a long one compiles all for both types."""
TWICE = ("bubble_sort", "conv1d", "cosine", "gather", "glu_whole", "newton_sqrt", "softmax", "topk")
"""Kernels whose second derivatives are derived by each run of the tests; a long one derives those of all."""


def gradient_of(name: str) -> tuple[Any, list[Any]]:
    """A derived gradient and arguments for it."""
    derived = KERNELS[name].derived
    return derived, KERNELS[name].arguments_of(derived.function)


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_has_no_kink_where_it_is_tried(name: str):
    assert all(np.isfinite(slope).all() for slope in KERNELS[name].slopes)
    assert any(slope.any() for slope in KERNELS[name].slopes)


@pytest.mark.parametrize("name", BY_HAND)
def test_a_backward_by_hand_agrees_with_differences(name: str):
    kernel = KERNELS[name]
    gradients = interpreted(kernel.by_hand)(*kernel.arguments_of(kernel.by_hand))
    assert largest_difference(gradients, kernel.slopes) < 1e-7


@pytest.mark.parametrize("name", KERNELS)
def test_a_derived_gradient_agrees_with_differences_and_changes_no_argument(name: str):
    derived, values = gradient_of(name)
    after = copied(values)
    assert largest_difference(derived.function(*after), KERNELS[name].slopes) < NEAR
    assert all(map(np.array_equal, values, after))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in TWICE else pytest.mark.soak) for name in KERNELS]
)
def test_a_second_derivative_agrees_with_differences(name: str):
    derived, values = gradient_of(name)
    assert agrees(derived.function, *values, orders=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(name, dtype, marks=() if COMPILED.get(name) == dtype else pytest.mark.soak)
        for name in KERNELS
        for dtype in NEAR_OF
    ],
)
def test_numba_compiles_a_derived_gradient_for_both_float_types(name: str, dtype: str):
    derived, values = gradient_of(name)
    of_type = [value.astype(dtype) if is_float_array(value) else value for value in values]
    gradients, near = listed(compiled(derived.function)(*of_type)), NEAR_OF[dtype]
    for gradient, expected in zip(gradients, listed(derived.function(*values)), strict=True):
        assert np.allclose(gradient, expected, rtol=near, atol=near * (1 + np.abs(expected).max()))
        assert gradient.dtype == dtype


@pytest.mark.parametrize("name", KERNELS)
def test_a_derived_gradient_reads_as_if_it_was_written(name: str):
    source = gradient_of(name)[0].source
    assert source.startswith(f"def {name}_gradient(")
    assigned = re.findall(r"^ *(\w+) = .*$", source, re.MULTILINE)
    assert all(len(re.findall(rf"\b{variable}\b", source)) > 1 for variable in assigned), "a variable that is not used"
    assert all(len(line) <= 160 for line in source.splitlines() if "raise " not in line)
