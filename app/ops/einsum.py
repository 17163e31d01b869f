"""Einstein summation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.errors import ShapeError
from app.ops.linear import matmul
from app.ops.logic import where
from app.ops.public import public
from app.ops.reduction import sum_
from app.ops.shaping import reshape, squeeze, transpose, unsqueeze
from app.ops.spec import UNKNOWN
from app.ops.values import Applied, Value


@public()
def einsum(equation: str, *operands: Value) -> Applied:
    """Einstein summation: products of values over axes named by letters; axes missing in the result are summed."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    letters = inputs.split(",")
    if "." in equation or len(letters) != len(operands):
        raise ShapeError(f"einsum {equation!r} must name the axes of each of {len(operands)} values by letters")
    if not arrow:
        every = "".join(letters)
        output = "".join(sorted(c for c in set(every) if every.count(c) == 1))
    terms = [_without_repeats(value, names, equation) for value, names in zip(operands, letters, strict=True)]
    terms = _broadcast(terms, equation)
    value, names = terms[0]
    for position, (other, more) in enumerate(terms[1:], 2):
        later = output + "".join(n for _, n in terms[position:])
        value, names = _contract(value, names, other, more, later)
    summed_axes = tuple(i for i, c in enumerate(names) if c not in output)
    if summed_axes:
        value, names = sum_(value, axis=summed_axes), "".join(c for c in names if c in output)
    if sorted(names) != sorted(output):
        raise ShapeError(f"einsum {equation!r}: the result has a letter twice, or one that no value has")
    return value if names == output else transpose(value, perm=[names.index(c) for c in output])


def _without_repeats(value: Value, names: str, equation: str) -> tuple[Value, str]:
    """The value with repeated letters removed by taking diagonals."""
    if len(names) != len(value.shape):
        raise ShapeError(f"einsum {equation!r}: {names!r} does not name the {len(value.shape)} axes of a value")
    for letter in dict.fromkeys(names):
        while names.count(letter) > 1:
            first, second = names.index(letter), names.rindex(letter)
            size = value.shape[first]
            if size == UNKNOWN or size != value.shape[second]:
                raise ShapeError(f"einsum {equation!r}: the axes {letter!r} need one known size, found {value.shape}")
            places = [size if axis in (first, second) else 1 for axis in range(len(names))]
            diagonal = np.eye(size, dtype=bool).reshape(places)
            value = sum_(where(diagonal, value, 0), axis=second, dtype=value.dtype)
            names = names[:second] + names[second + 1 :]
    return value, names


def _broadcast(terms: Sequence[tuple[Value, str]], equation: str) -> list[tuple[Value, str]]:
    """The terms without axes of size 1 that another term has longer; a letter of several sizes is an error."""
    kept = list(terms)
    for letter in dict.fromkeys("".join(names for _, names in terms)):
        sizes = {value.shape[names.index(letter)] for value, names in terms if letter in names}
        if len(sizes - {1, UNKNOWN}) > 1:
            found = " and ".join(map(str, sorted(sizes - {1, UNKNOWN})))
            raise ShapeError(f"einsum {equation!r}: the axes {letter!r} have the sizes {found}")
        for place, (value, names) in enumerate(kept if len(sizes) > 1 else ()):
            if letter in names and value.shape[names.index(letter)] == 1:
                kept[place] = squeeze(value, axis=names.index(letter)), names.replace(letter, "")
    return kept


def _contract(x: Value, left: str, y: Value, right: str, later: str) -> tuple[Applied, str]:
    """The product of two values, summed over shared letters that are not in `later`."""
    batch = [c for c in left if c in right and c in later]
    summed = [c for c in left if c in right and c not in later]
    rows, columns = [c for c in left if c not in right], [c for c in right if c not in left]
    if not summed:
        names = "".join([*batch, *rows, *columns])
        return _aligned_to(x, left, names) * _aligned_to(y, right, names), names
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


def _aligned_to(value: Value, names: str, target: str) -> Applied:
    """The value with its axes in the order of `target`, and axes of size 1 for missing letters."""
    ordered = transpose(value, perm=[names.index(c) for c in target if c in names])
    for place, letter in enumerate(target):
        if letter not in names:
            ordered = unsqueeze(ordered, axis=place)
    return ordered
