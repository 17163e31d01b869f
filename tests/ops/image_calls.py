"""Strategies of the calls that convolution, pooling and what their gradients are made of accept."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from draws import Call, numbers
from hypothesis import strategies as st

from app.ops import REGISTRY
from app.ops.dtype import FLOATS

pairs = st.tuples(st.integers(1, 3), st.integers(1, 3))


def _paddings(most: tuple[int, int]) -> st.SearchStrategy[Any]:
    height, width = (st.tuples(st.integers(0, size), st.integers(0, size)) for size in most)
    return st.just("same") | st.tuples(height, width)


@st.composite
def convolving(draw: st.DrawFn, gives: Literal["y", "x", "weight"] = "y") -> Call:
    """Odd sizes, few channels, no images at all, strides over the kernel, padding on one side."""
    groups, inner, outer = draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(st.integers(1, 2))
    kernel, dilation = draw(pairs), draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (1, 2)]))
    sizes = [d * (k - 1) + 1 + draw(st.integers(0, 3)) for k, d in zip(kernel, dilation, strict=True)]
    settings = {
        "stride": draw(pairs), "padding": draw(_paddings((2, 2))), "dilation": dilation, "groups": groups,
    }  # fmt: skip
    dtype = draw(st.sampled_from(FLOATS))
    x = numbers(draw, (draw(st.integers(0, 3)), groups * inner, *sizes), dtype)
    weight = numbers(draw, (groups * outer, inner, *kernel), dtype)
    if gives == "y":
        return Call([x, weight], settings)
    y = numbers(draw, np.shape(REGISTRY["conv2d"](x, weight, **settings)), dtype)
    return Call([y, weight, x] if gives == "x" else [x, y, weight], settings)


@st.composite
def pooling(draw: st.DrawFn, pooled_first: bool = False, images_twice: bool = False, mean: bool = False) -> Call:
    """Windows that overlap, leave gaps or reach over the end."""
    kernel = draw(pairs)
    sizes = [k + draw(st.integers(0, 4)) for k in kernel]
    settings: dict[str, Any] = {
        "kernel": kernel,
        "stride": draw(pairs),
        "padding": draw(_paddings((kernel[0] - 1, kernel[1] - 1))),
        "ceil_mode": draw(st.booleans()),
    }
    if mean:
        settings["exclusive"] = draw(st.booleans())
    dtype = draw(st.sampled_from(FLOATS))
    x = numbers(draw, (draw(st.integers(0, 2)), draw(st.integers(1, 2)), *sizes), dtype)
    if images_twice:
        return Call([numbers(draw, x.shape, dtype), x], settings)
    if not pooled_first:
        return Call([x], settings)
    pooled = REGISTRY["avg_pool2d"](x, **settings)
    return Call([numbers(draw, np.shape(pooled), dtype), x], settings)
