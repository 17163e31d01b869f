"""Operators as functions of NumPy and SciPy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from op_calls import Call
from part_calls import np_items
from scipy import special


def over(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, axis, keepdim: function(x, axis=axis if x.ndim else None, keepdims=keepdim)


def expand_reduced(y: np.ndarray, like: np.ndarray, axis: Any, keepdim: bool, share: bool) -> np.ndarray:
    count = like.size / y.size if share and y.size else 1
    return np.broadcast_to(
        y.reshape(np.sum(like, axis if like.ndim else None, keepdims=True).shape) / count, like.shape
    )


def summed(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The sum over all that broadcasting `shape` would repeat, by adding one element after another."""
    out = np.zeros(shape, np.float64)
    for place in np.ndindex(x.shape):
        trailing = place[x.ndim - len(shape) :]
        out[tuple(0 if size == 1 else i for i, size in zip(trailing, shape, strict=True))] += x[place]
    return out


def product(x: np.ndarray, y: np.ndarray, transpose_x: bool, transpose_y: bool) -> np.ndarray:
    turned_x = np.swapaxes(x, -1, -2) if transpose_x and x.ndim > 1 else x
    return turned_x @ (np.swapaxes(y, -1, -2) if transpose_y and y.ndim > 1 else y)


def one_hot(x: np.ndarray, num_classes: int) -> np.ndarray:
    out = np.zeros((*x.shape, num_classes))
    for place in np.ndindex(x.shape):
        if 0 <= x[place] < num_classes:
            out[place][x[place]] = 1
    return out


def among_best(scores: np.ndarray, labels: np.ndarray, k: int) -> float:
    """The share of rows whose label comes among the first k when classes are ordered by score, then by number."""
    orders = [sorted(range(len(row)), key=lambda c, row=row: (-float(row[c]), c))[:k] for row in scores]
    return float(np.mean([label in order for label, order in zip(labels.ravel(), orders, strict=True)]))


def put_one_by_one(
    x: np.ndarray, y: np.ndarray, *arrays: np.ndarray, items: Any, accumulate: bool, onto_zeros: bool
) -> np.ndarray:
    out = np.zeros(x.shape, y.dtype) if onto_zeros else x.copy()
    places = np.arange(x.size).reshape(x.shape)[np_items(Call([x, *arrays], {"items": items}))]
    for place, number in zip(np.ravel(places), np.broadcast_to(y, np.shape(places)).ravel(), strict=True):
        out.flat[place] = out.flat[place] + number if accumulate else number
    return out


def last_writes(x: np.ndarray, *arrays: np.ndarray, items: Any) -> np.ndarray:
    places = np.arange(x.size).reshape(x.shape)[np_items(Call([x, *arrays], {"items": items}))]
    last = {place: number for number, place in enumerate(np.ravel(places).tolist())}
    return np.array([last[p] == number for number, p in enumerate(np.ravel(places).tolist())], bool).reshape(
        np.shape(places)
    )


def order(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """By sorting each line in Python, which keeps equal ones as they stood."""
    if not x.ndim:
        return np.zeros((), int)
    places = np.empty(x.shape, int)
    lines = np.moveaxis(x, axis, -1)
    orders = np.moveaxis(places, axis, -1)
    for place in np.ndindex(lines.shape[:-1]):
        line = lines[place].tolist()
        orders[place] = sorted(range(len(line)), key=lambda i, line=line: -line[i] if descending else line[i])
    return places


def reshaped(x: np.ndarray, shape: list[int]) -> np.ndarray:
    copied = shape.count(0)
    if -1 in shape:
        rest = math.prod(x.shape[copied:]) // -math.prod(shape[copied:])
        shape = [rest if size == -1 else size for size in shape]
    return x.reshape([x.shape[i] if size == 0 else size for i, size in enumerate(shape)])


def flattened(x: np.ndarray, start_axis: int, stop_axis: int) -> np.ndarray:
    sizes = x.shape or (1,)
    start, stop = range(len(sizes))[start_axis], range(len(sizes))[stop_axis]
    return x.reshape(*sizes[:start], math.prod(sizes[start : stop + 1]), *sizes[stop + 1 :])


def squeezed(x: np.ndarray, axis: Any) -> np.ndarray:
    axes = range(x.ndim) if axis is None else [range(max(x.ndim, 1))[a] for a in np.ravel(axis).astype(int)]
    return x[tuple(0 if size == 1 and i in axes else slice(None) for i, size in enumerate(x.shape))]


def cut(x: np.ndarray, num_or_sections: Any, axis: int) -> tuple[np.ndarray, ...]:
    if isinstance(num_or_sections, int):
        return tuple(np.split(x, num_or_sections, axis))
    rest = x.shape[axis] - sum(size for size in num_or_sections if size != -1)
    sizes = [rest if size == -1 else size for size in num_or_sections]
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


SAME = [
    *("negative", "exp", "log", "log1p", "sin", "cos", "tanh", "sqrt", "square", "abs", "sign", "floor", "ceil"),
    *("reciprocal", "isnan", "isinf", "isfinite", "isclose", "logical_not", "logical_and", "logical_or", "logical_xor"),
    *("equal", "not_equal", "less_equal", "greater_equal", "add", "subtract", "multiply", "divide", "floor_divide"),
    *("remainder", "maximum", "minimum", "where", "tan", "sinh", "cosh", "trunc", "expm1", "log2", "log10"),
    *("bitwise_and", "bitwise_or", "bitwise_xor"),
]
NUMPY: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in SAME},
    **{name: over(getattr(np, name)) for name in ("sum", "mean", "max", "min", "all", "any", "argmax", "argmin")},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh")},
    "less_than": np.less,
    "greater_than": np.greater,
    "pow": np.power,
    "bitwise_not": np.invert,
    "erf": special.erf,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "round": lambda x, decimals: (np.rint(x * 10.0**decimals) / 10.0**decimals).astype(x.dtype),
    "prod": lambda x, axis, keepdim: np.prod(x, axis if x.ndim else None, keepdims=keepdim, dtype=x.dtype),
    "clip": lambda x, min, max: np.clip(x, *(bound if bound is None else x.dtype.type(bound) for bound in (min, max))),
    "increment": lambda x, value: x + value,
    "full_like": lambda x, fill_value, dtype: np.full(x.shape, fill_value, dtype or x.dtype),
    "cast": lambda x, dtype: x.astype(dtype),
    "relu": lambda x: np.where(x <= 0, x.dtype.type(0), x),
    "leaky_relu": lambda x, negative_slope: np.where(x > 0, x, x * negative_slope),
    "sigmoid": special.expit,
    "softplus": lambda x: np.logaddexp(x, x.dtype.type(0)),
    "silu": lambda x: x * special.expit(x),
    "elu": lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x)),
    "softmax": lambda x, axis: special.softmax(x, axis=axis if x.ndim else None),
    "log_softmax": lambda x, axis: special.log_softmax(x, axis=axis if x.ndim else None),
    "expand_reduced": expand_reduced,
    "sum_to": lambda x, shape: summed(x, tuple(shape)),
    "sum_like": lambda x, like: summed(x, like.shape),
    "expand": lambda x, shape: np.ones([1 if size == -1 else size for size in shape]) * x,
    "expand_as": lambda x, like: np.broadcast_to(x, like.shape),
    "reshape_like": lambda x, like: x.reshape(like.shape),
    "reshape": reshaped,
    "flatten": flattened,
    "squeeze": squeezed,
    "unsqueeze": lambda x, axis: functools.reduce(np.expand_dims, np.ravel(axis).tolist(), x),
    "split": cut,
    "transpose": lambda x, perm: np.transpose(x, perm),
    "concat": lambda *x, axis: np.concatenate(x, axis),
    "gather": lambda x, index, axis: np.take(x, index, axis),
    "logsumexp": lambda x, axis, keepdim: (
        np.log(np.sum(np.exp(x, dtype=float), axis=axis, keepdims=keepdim))
        if x.ndim and (axis == () or not x.size)
        else special.logsumexp(x, axis=axis if x.ndim else None, keepdims=keepdim)
    ),
    "put_items": put_one_by_one,
    "last_writes": last_writes,
    "take_items": lambda *values, items: values[0][np_items(Call(list(values), {"items": items}))],
    "split_like": lambda *values, axis: tuple(values[1:]),
    "argsort": order,
    "shape": lambda x: np.array(x.shape),
    "numel": lambda x: np.array(x.size),
    "matmul": product,
    "matmul_step": lambda c, scale, x, y, **turned: c - scale * product(x, y, **turned),
    "one_hot": one_hot,
    "one_hot_like": lambda label, like: one_hot(label.reshape(-1), like.shape[1]),
    "index_sample": lambda x, label: np.take_along_axis(x, label.reshape(-1, 1).astype(int), axis=1),
    "softmax_with_cross_entropy": lambda x, label: (
        -np.take_along_axis(special.log_softmax(x, axis=1), label.reshape(-1, 1).astype(int), axis=1),
        special.softmax(x, axis=1),
    ),
    "accuracy": among_best,
}
