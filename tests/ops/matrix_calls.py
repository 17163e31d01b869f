"""Calls of the operators of linear algebra: matrices that can be inverted, alone or stacked, and others."""

from __future__ import annotations

from typing import Any

import numpy as np
from draws import Call, numbers
from hypothesis import strategies as st

from app.ops.dtype import FLOATS

stacks = st.lists(st.integers(0, 2), max_size=2).map(tuple)


def _square(draw: st.DrawFn, stack: tuple[int, ...], size: int, dtype: str) -> np.ndarray:
    """Positive, symmetric matrices, far from having no inverse."""
    x = numbers(draw, (*stack, size, size), "float64", -1, 1)
    return (x @ np.swapaxes(x, -1, -2) + 2 * np.eye(size)).astype(dtype)


@st.composite
def square_matrices(draw: st.DrawFn, **attributes: st.SearchStrategy[Any]) -> Call:
    x = _square(draw, draw(stacks), draw(st.integers(1, 3)), draw(st.sampled_from(FLOATS)))
    return Call([x], {name: draw(strategy) for name, strategy in attributes.items()})


@st.composite
def any_matrices(draw: st.DrawFn, **attributes: st.SearchStrategy[Any]) -> Call:
    shape = (*draw(stacks), draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    x = numbers(draw, shape, draw(st.sampled_from(FLOATS)))
    return Call([x], {name: draw(strategy) for name, strategy in attributes.items()})


@st.composite
def equations(draw: st.DrawFn) -> Call:
    size, dtype = draw(st.integers(1, 3)), draw(st.sampled_from(FLOATS))
    x = _square(draw, draw(st.sampled_from([(), (2,), (1,)])), size, dtype)
    return Call([x, numbers(draw, (*draw(st.sampled_from([(), (2,)])), size, draw(st.integers(1, 3))), dtype)])
