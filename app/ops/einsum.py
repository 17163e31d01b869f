"""Einstein's sums: products of values whose axes are named by letters."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.errors import ShapeError
from app.ops.linear import matmul
from app.ops.matrix import diagonal
from app.ops.public import public
from app.ops.reduction import sum_
from app.ops.shaping import reshape, transpose, unsqueeze
from app.ops.spec import UNKNOWN
from app.ops.values import Applied


@public()
def einsum(equation: str, *operands: Any) -> Applied:
    """Einstein's sums: axes with one letter run together, and those that the result does not name are summed."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    letters = inputs.split(",")
    if "." in equation or len(letters) != len(operands):
        raise ShapeError(f"einsum {equation!r} must name the axes of each of {len(operands)} values by letters")
    if not arrow:
        every = "".join(letters)
        output = "".join(sorted(c for c in set(every) if every.count(c) == 1))
    terms = [_without_repeats(value, names, equation) for value, names in zip(operands, letters, strict=True)]
    value, names = terms[0]
    for position, (other, more) in enumerate(terms[1:], 2):
        later = output + "".join(n for _, n in terms[position:])
        value, names = _contract(value, names, other, more, later)
    gone = tuple(i for i, c in enumerate(names) if c not in output)
    if gone:
        value, names = sum_(value, axis=gone), "".join(c for c in names if c in output)
    if sorted(names) != sorted(output):
        raise ShapeError(f"einsum {equation!r}: the result names axes that no value has, or one of them twice")
    return value if names == output else transpose(value, perm=[names.index(c) for c in output])


def _without_repeats(value: Any, names: str, equation: str) -> tuple[Any, str]:
    """The value with each letter on one axis: of axes that share one, the diagonal."""
    if len(names) != len(value.shape):
        raise ShapeError(f"einsum {equation!r}: {names!r} does not name the {len(value.shape)} axes of a value")
    for letter in dict.fromkeys(names):
        while names.count(letter) > 1:
            first, second = names.index(letter), names.rindex(letter)
            value = diagonal(value, axis1=first, axis2=second)
            names = names[:first] + names[first + 1 : second] + names[second + 1 :] + letter
    return value, names


def _contract(x: Any, left: str, y: Any, right: str, later: str) -> tuple[Any, str]:
    """The product of two values, summed over the letters that they share and nothing later needs."""
    batch = [c for c in left if c in right and c in later]
    summed = [c for c in left if c in right and c not in later]
    rows, columns = [c for c in left if c not in right], [c for c in right if c not in left]
    if not summed:
        names = "".join([*batch, *rows, *columns])
        return _spread_to(x, left, names) * _spread_to(y, right, names), names
    a = transpose(x, perm=[left.index(c) for c in (*batch, *rows, *summed)])
    b = transpose(y, perm=[right.index(c) for c in (*batch, *columns, *summed)])
    sizes = dict(zip(left, x.shape, strict=True)) | dict(zip(right, y.shape, strict=True))
    shared = [sizes[c] for c in batch]
    inner_size = _size(sizes, summed)
    product = matmul(
        reshape(a, [*shared, _size(sizes, rows), inner_size]),
        reshape(b, [*shared, _size(sizes, columns), inner_size]),
        transpose_y=True,
    )
    return reshape(product, [sizes[c] for c in (*batch, *rows, *columns)]), "".join([*batch, *rows, *columns])


def _size(sizes: dict[str, int], names: list[str]) -> int:
    parts = [sizes[c] for c in names]
    return UNKNOWN if UNKNOWN in parts else int(np.prod(parts, dtype=int))


def _spread_to(value: Any, names: str, target: str) -> Any:
    """The value with its axes in the order of `target`, and axes of size 1 for the letters that it does not have."""
    ordered = transpose(value, perm=[names.index(c) for c in target if c in names])
    for place, letter in enumerate(target):
        if letter not in names:
            ordered = unsqueeze(ordered, axis=place)
    return ordered
