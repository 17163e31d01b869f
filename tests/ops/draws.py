"""How inputs of operators are drawn: arrays of any shape and type, alone, broadcasting, or to be reduced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from app.ops.dtype import FLOATS, INTEGERS, NAMES

NUMBERS = (*INTEGERS, *FLOATS)
ANY = NAMES
Setting = st.SearchStrategy[Any] | Callable[[np.ndarray], st.SearchStrategy[Any]]
"""The values of a setting, which may depend on the input."""


@dataclass
class Call:
    """What an operator is called with."""

    inputs: list[np.ndarray]
    attributes: dict[str, Any] = field(default_factory=dict)


def numbers(draw: st.DrawFn, shape: Sequence[int], dtype: str, low: int = -3, high: int = 3) -> np.ndarray:
    """Numbers from `low` to `high`, whole ones among them, so that equal elements and zeros turn up."""
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    if dtype == "bool":
        return np.asarray(rng.integers(0 if low < 1 else 1, 2, shape)).astype(bool)
    low = max(low, 0) if dtype == "uint8" else low
    if dtype in INTEGERS or draw(st.booleans()):
        return np.asarray(rng.integers(low, high + 1, shape)).astype(dtype)
    return np.asarray(rng.uniform(low, high, shape)).astype(dtype)


def sized(min_dims: int = 0, max_dims: int = 3, least: int = 0, most: int = 4) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes, by the number of their axes and the sizes of these."""
    return hnp.array_shapes(min_dims=min_dims, max_dims=max_dims, min_side=least, max_side=most)


shapes = sized()


def an_axis(rank: int) -> st.SearchStrategy[int]:
    return st.integers(-max(rank, 1), max(rank, 1) - 1)


def axis_of(x: np.ndarray) -> st.SearchStrategy[int]:
    return an_axis(x.ndim)


@st.composite
def one(
    draw: st.DrawFn,
    dtypes: Sequence[str] = ANY,
    low: int = -3,
    high: int = 3,
    of: st.SearchStrategy[tuple[int, ...]] = shapes,
    **settings: Setting,
) -> Call:
    """One value, of a shape of `of`, with settings."""
    x = numbers(draw, draw(of), draw(st.sampled_from(dtypes)), low, high)
    chosen = {name: draw(s if isinstance(s, st.SearchStrategy) else s(x)) for name, s in settings.items()}
    return Call([x], chosen)


@st.composite
def broadcasting(
    draw: st.DrawFn, count: int = 2, dtypes: Sequence[str] = ANY, ranges: Sequence[tuple[int, int]] = ((-3, 3),) * 3
) -> Call:
    broadcastable = draw(hnp.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, min_side=0, max_side=3))
    pairs = zip(broadcastable.input_shapes, ranges, strict=False)
    return Call([numbers(draw, shape, draw(st.sampled_from(dtypes)), *bounds) for shape, bounds in pairs])


@st.composite
def reducing(
    draw: st.DrawFn,
    dtypes: Sequence[str] = ANY,
    empty: bool = True,
    several: bool = True,
    **settings: st.SearchStrategy[Any],
) -> Call:
    """A value, and an axis, several or all of them; without `empty` these have elements."""
    shape = list(draw(shapes))
    axes = st.none() | an_axis(len(shape))
    if several:
        some = st.sets(st.sampled_from(range(len(shape))), min_size=1) if shape else st.just(())
        axes |= some.map(sorted).map(tuple)
    axis = draw(axes)
    reduced = np.arange(len(shape))[list(axis) if isinstance(axis, tuple) else axis] if shape else []
    for i in [] if empty else np.ravel(reduced).astype(int):
        shape[i] = max(shape[i], 1)
    x = numbers(draw, shape, draw(st.sampled_from(dtypes)))
    chosen = {name: draw(strategy) for name, strategy in settings.items()}
    return Call([x], {"axis": axis, "keepdim": draw(st.booleans()), **chosen})


@st.composite
def spreading(draw: st.DrawFn) -> Call:
    call = draw(reducing(FLOATS, share=st.booleans()))
    y = np.sum(call.inputs[0], axis=call.attributes["axis"], keepdims=call.attributes["keepdim"])
    return Call([y, *call.inputs], call.attributes)


@st.composite
def stretched(draw: st.DrawFn, as_shape: bool, sums: bool) -> Call:
    """A small value and a larger one that it broadcasts to; summed back or stretched out."""
    small = draw(shapes)
    large = tuple(draw(st.integers(0, 3)) if n == 1 and draw(st.booleans()) else n for n in small)
    large = (*draw(sized(max_dims=2, most=3)), *large)
    dtype = draw(st.sampled_from(FLOATS))
    source, target = (large, small) if sums else (small, large)
    x = numbers(draw, source, dtype)
    if not as_shape:
        return Call([x, numbers(draw, target, draw(st.sampled_from(FLOATS)))])
    if not sums:
        extra = len(target) - len(source)
        keep = [i >= extra and source[i - extra] == n and draw(st.booleans()) for i, n in enumerate(target)]
        target = tuple(-1 if k else n for n, k in zip(target, keep, strict=True))
    return Call([x], {"shape": list(target)})
