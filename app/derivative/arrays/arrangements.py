"""NumPy's functions that put the elements of arrays into other places, or make arrays of their indices."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from app.derivative.arrays.core import Assign, Expr, binary, call, compare, load, minus, plus
from app.derivative.arrays.reductions import Reductions
from app.derivative.arrays.values import (
    Array,
    Items,
    Number,
    Object,
    Value,
    broadcast,
    constant_int,
    is_one,
    wider,
    with_axis,
)
from app.derivative.terms import name, number

Element = Callable[[list[Expr]], Expr]


class Arrangements(Reductions):
    """What a function arranges. Each method has NumPy's parameters, after the node of the call."""

    def arranged(self, how: str, values: Sequence[Value], named: Mapping[str, Value], node: ast.AST) -> Value:
        """What one of these functions gives."""
        method = getattr(self, f"_{how}")
        try:
            bound = inspect.signature(method).bind(node, *values, **named)
        except TypeError:
            self.refuse(node, "has arguments that cannot be derived; write a loop")
        result: Value = method(*bound.args, **bound.kwargs)
        return result

    # Arguments

    def _array_in(self, node: ast.AST, value: Value) -> Array:
        if not isinstance(value, Array):
            self.refuse(node, "gets a number where an array is expected; make one with np.full or np.array")
        return value

    def _arrays_in(self, node: ast.AST, value: Value) -> list[Array]:
        if not isinstance(value, Items) or not value.parts:
            self.refuse(node, "takes a list or a tuple of arrays, written in the call")
        return [
            self._listed(part, node) if isinstance(part, Items) else self._array_in(node, part) for part in value.parts
        ]

    def _listed(self, value: Value, node: ast.AST) -> Array:
        raise NotImplementedError

    def _sizes_in(self, node: ast.AST, value: Value) -> list[Expr]:
        """The integers of a tuple, or one alone."""
        sizes: list[Expr] = []
        for part in value.parts if isinstance(value, Items) else [value]:
            if not isinstance(part, Number) or part.kind != "int":
                self.refuse(node, "takes something other than integers where they are expected")
            sizes.append(part.expr)
        return sizes

    def _axis_or_only(self, node: ast.AST, a: Array, axis: Value | None) -> int:
        """An axis, which may be left out for an array that has no other."""
        if axis is None and a.rank > 1:
            self.refuse(node, "needs an axis; write a loop")
        return 0 if axis is None else self.axis_in(node, axis, a.rank)

    # The same elements in another order

    def _permuted(self, a: Array, order: Sequence[int]) -> Array:
        """The axes of an array in another order."""

        def element(at: list[Expr]) -> Expr:
            return a.element([at[order.index(axis)] for axis in range(a.rank)])

        return Array([a.dims[axis] for axis in order], element, a.kind, a.dtype, a.base)

    def _transpose(self, node: ast.AST, a: Value, axes: Value | None = None) -> Array:
        array = self._array_in(node, a)
        if axes is None or (isinstance(axes, Object) and axes.value is None):
            return self._permuted(array, range(array.rank)[::-1])
        if not isinstance(axes, Items) or len(axes.parts) != array.rank:
            self.refuse(node, "needs a tuple of all axes")
        order = [self.axis_in(node, part, array.rank) for part in axes.parts]
        if len(set(order)) < array.rank:
            self.refuse(node, "has an axis twice")
        return self._permuted(array, order)

    def _swapaxes(self, node: ast.AST, a: Value, axis1: Value, axis2: Value) -> Array:
        array = self._array_in(node, a)
        one, other = (self.axis_in(node, axis, array.rank) for axis in (axis1, axis2))
        order = [*range(array.rank)]
        order[one], order[other] = other, one
        return self._permuted(array, order)

    def _moveaxis(self, node: ast.AST, a: Value, source: Value, destination: Value) -> Array:
        array = self._array_in(node, a)
        start, end = (self.axis_in(node, axis, array.rank) for axis in (source, destination))
        order = [axis for axis in range(array.rank) if axis != start]
        return self._permuted(array, [*order[:end], start, *order[end:]])

    def _flip(self, node: ast.AST, m: Value, axis: Value | None = None) -> Array:
        a = self._array_in(node, m)
        flipped = {*range(a.rank)}
        if axis is not None and not (isinstance(axis, Object) and axis.value is None):
            flipped = {self.axis_in(node, each, a.rank) for each in (axis.parts if isinstance(axis, Items) else [axis])}

        def element(at: list[Expr]) -> Expr:
            return a.element([minus(minus(a.dims[i], 1), each) if i in flipped else each for i, each in enumerate(at)])

        return Array(list(a.dims), element, a.kind, a.dtype, a.base)

    def _flipud(self, node: ast.AST, m: Value) -> Array:
        return self._flip(node, m, Number(number(0), "int"))

    def _fliplr(self, node: ast.AST, m: Value) -> Array:
        return self._flip(node, m, Number(number(1), "int"))

    def _roll(self, node: ast.AST, a: Value, shift: Value, axis: Value | None = None) -> Array:
        array = self._array_in(node, a)
        along = self._axis_or_only(node, array, axis)
        (by,) = self._sizes_in(node, shift)
        size = array.dims[along]

        def element(at: list[Expr]) -> Expr:
            moved = binary(minus(at[along], by), ast.Mod(), size)
            return array.element([*at[:along], moved, *at[along + 1 :]])

        return self._computed(array, array.dims, element)

    def _computed(self, a: Array, dims: Sequence[Expr], element: Element) -> Array:
        """A copy of elements of an array, which is not stored unless it gets a name."""
        return Array(list(dims), element, a.kind, a.dtype)

    # Other shapes

    def _expand_dims(self, node: ast.AST, a: Value, axis: Value) -> Array:
        array = self._array_in(node, a)
        return with_axis(array, self.axis_in(node, axis, array.rank + 1))

    def _squeeze(self, node: ast.AST, a: Value, axis: Value | None = None) -> Array:
        array = self._array_in(node, a)
        if axis is None:
            self.refuse(node, "needs the axis that it removes")
        removed = self.axis_in(node, axis, array.rank)
        if not is_one(array.dims[removed]):
            self.guard(compare(array.dims[removed], ast.Eq(), number(1)), f"{self.place(node)}: no axis of size 1")
        dims = [size for place, size in enumerate(array.dims) if place != removed]

        def element(at: list[Expr]) -> Expr:
            return array.element([*at[:removed], number(0), *at[removed:]])

        return Array(dims, element, array.kind, array.dtype, array.base)

    def _atleast_2d(self, node: ast.AST, a: Value) -> Array:
        array = self._array_in(node, a)
        return with_axis(array, 0) if array.rank == 1 else array

    def _broadcast_to(self, node: ast.AST, array: Value, shape: Value) -> Array:
        a, sizes = self._array_in(node, array), [self.fixed(size) for size in self._sizes_in(node, shape)]
        offset = len(sizes) - a.rank
        if offset < 0:
            self.refuse(node, f"has {a.rank} dimensions already")
        for axis, size in enumerate(a.dims):
            if not is_one(size):
                self.agree(size, sizes[offset + axis], node)
        return Array(sizes, lambda at: a.element(broadcast(at[offset:], a.dims)), a.kind, a.dtype, a.base)

    def _reshape(self, node: ast.AST, a: Value, shape: Value) -> Array:
        array, sizes = self._array_in(node, a), self._sizes_in(node, shape)
        total = _product(array.dims)
        unknown = [axis for axis, size in enumerate(sizes) if constant_int(size) == -1]
        if len(unknown) > 1:
            self.refuse(node, "has more than one size of -1")
        for axis in unknown:
            others = [size for place, size in enumerate(sizes) if place != axis]
            sizes[axis] = self._quotient(array.dims, others)
        sizes = [self.fixed(size) for size in sizes]
        self.agree(total, _product(sizes), node)
        if array.base and not self.is_whole(array):
            array = self.copy_or_view(array, node, "gives a part of an array another shape; write `.copy()` before it")
        dims = [self.fixed(size) for size in array.dims]

        def element(at: list[Expr]) -> Expr:
            return array.element(_unravelled(_ravelled(at, sizes), dims))

        return Array(sizes, element, array.kind, array.dtype, array.base)

    def _quotient(self, dims: Sequence[Expr], others: Sequence[Expr]) -> Expr:
        """The product of some sizes by that of others, without those that are in both."""
        above, below = list(dims), []
        for size in others:
            same = next((one for one in above if self.canonical(one) == self.canonical(size)), None)
            if same is None:
                below.append(size)
            else:
                above.remove(same)
        total = _product(above)
        return binary(total, ast.FloorDiv(), _product(below)) if any(not is_one(size) for size in below) else total

    def _ravel(self, node: ast.AST, a: Value) -> Array:
        return self._reshape(node, a, Number(number(-1), "int"))

    def _flatten(self, node: ast.AST, a: Value) -> Array:
        flat = self._ravel(node, a)
        return self._computed(flat, flat.dims, flat.element)

    def _astype(self, node: ast.AST, a: Value, dtype: Value) -> Array:
        array = self._array_in(node, a)
        type_of, kind = self.type_in(dtype, node)

        def element(at: list[Expr]) -> Expr:
            value = array.element(at)
            if kind == array.kind:
                return value
            return ast.IfExp(value, _one(kind), _zero(kind)) if array.kind == "bool" else call(kind, value)

        return Array(list(array.dims), element, kind, type_of)

    def type_in(self, value: Value, node: ast.AST) -> tuple[Expr | None, str]:
        raise NotImplementedError

    # Some of the elements

    def _take(self, node: ast.AST, a: Value, indices: Value, axis: Value | None = None) -> Value:
        array = self._array_in(node, a)
        along = self._axis_or_only(node, array, axis)
        index: list[Any] = [ast.Slice()] * along
        taken = self.indexed(array, [*index, self.index_in(indices, node)], node)
        return self._computed(taken, taken.dims, taken.element) if isinstance(taken, Array) else taken

    def indexed(self, owner: Array, index: Sequence[Any], node: ast.AST, changing: bool = False) -> Number | Array:
        raise NotImplementedError

    def index_in(self, value: Value, node: ast.AST) -> Any:
        raise NotImplementedError

    def _split(self, node: ast.AST, ary: Value, indices_or_sections: Value, axis: Value | None = None) -> Items:
        array = self._array_in(node, ary)
        along = 0 if axis is None else self.axis_in(node, axis, array.rank)
        parts = self.constant_in(node, indices_or_sections, "number of parts")
        whole = array.dims[along]
        size = self.fixed(binary(whole, ast.FloorDiv(), number(parts)))
        even = compare(binary(size, ast.Mult(), number(parts)), ast.Eq(), whole)
        self.guard(even, f"{self.place(node)}: these parts are not of one size")
        return Items([self._part(array, along, binary(number(k), ast.Mult(), size), size) for k in range(parts)])

    def _part(self, a: Array, along: int, start: Expr, size: Expr) -> Array:
        """So many elements along an axis."""

        def element(at: list[Expr]) -> Expr:
            return a.element([*at[:along], plus(start, at[along]), *at[along + 1 :]])

        return Array([*a.dims[:along], size, *a.dims[along + 1 :]], element, a.kind, a.dtype, a.base)

    def _diag(self, node: ast.AST, v: Value) -> Array:
        a = self._array_in(node, v)
        if a.rank == 1:
            size, zero = a.dims[0], _zero(a.kind)
            return self._computed(a, [size, size], lambda at: ast.IfExp(_equal(*at), a.element(at[:1]), zero))
        if a.rank != 2:
            self.refuse(node, f"has {a.rank} dimensions, and no diagonal; write a loop")
        self.agree(a.dims[0], a.dims[1], node)
        return Array(a.dims[:1], lambda at: a.element([at[0], at[0]]), a.kind, a.dtype, a.base)

    def _tril(self, node: ast.AST, m: Value, k: Value | None = None) -> Array:
        return self._triangle(node, m, k, ast.LtE())

    def _triu(self, node: ast.AST, m: Value, k: Value | None = None) -> Array:
        return self._triangle(node, m, k, ast.GtE())

    def _triangle(self, node: ast.AST, m: Value, k: Value | None, side: ast.cmpop) -> Array:
        a = self._array_in(node, m)
        offset = number(0) if k is None else self._sizes_in(node, k)[0]
        if a.rank < 2:
            self.refuse(node, "needs a matrix; make one of a vector with np.broadcast_to")

        def element(at: list[Expr]) -> Expr:
            test = compare(at[-1], side, plus(at[-2], offset))
            return ast.IfExp(test, a.element(at), _zero(a.kind))

        return self._computed(a, a.dims, element)

    # Elements more than once, and several arrays in one

    def _repeat(self, node: ast.AST, a: Value, repeats: Value, axis: Value | None = None) -> Array:
        array = self._array_in(node, a)
        along = self._axis_or_only(node, array, axis)
        (times,) = self._sizes_in(node, repeats)

        def element(at: list[Expr]) -> Expr:
            return array.element([*at[:along], binary(at[along], ast.FloorDiv(), times), *at[along + 1 :]])

        dims = list(array.dims)
        dims[along] = binary(dims[along], ast.Mult(), times)
        return self._computed(array, dims, element)

    def _tile(self, node: ast.AST, A: Value, reps: Value) -> Array:  # noqa: N803
        a, times = self._array_in(node, A), self._sizes_in(node, reps)
        rank = max(a.rank, len(times))
        dims: list[Expr] = [*[number(1)] * (rank - a.rank), *a.dims]
        times = [*[number(1)] * (rank - len(times)), *times]

        def element(at: list[Expr]) -> Expr:
            wrapped = [
                each if is_one(count) else number(0) if is_one(size) else binary(each, ast.Mod(), size)
                for each, size, count in zip(at, dims, times, strict=True)
            ]
            return a.element(wrapped[rank - a.rank :])

        return self._computed(a, [_product([s, t]) for s, t in zip(dims, times, strict=True)], element)

    def _concatenate(self, node: ast.AST, arrays: Value, axis: Value | None = None) -> Array:
        parts = self._arrays_in(node, arrays)
        rank = parts[0].rank
        if any(part.rank != rank for part in parts):
            self.refuse(node, "joins arrays with different numbers of dimensions")
        return self._joined(parts, 0 if axis is None else self.axis_in(node, axis, rank), node)

    def _joined(self, parts: Sequence[Array], axis: int, node: ast.AST) -> Array:
        """Arrays one after the other along an axis."""
        first, total = parts[0], parts[0].dims[axis]
        for part in parts[1:]:
            for place, (size, other) in enumerate(zip(first.dims, part.dims, strict=True)):
                if place != axis:
                    self.agree(size, other, node)
            total = plus(total, part.dims[axis])
        kind = wider(*(part.kind for part in parts))
        dtype = next((part.dtype for part in parts if part.kind == kind == "float"), None)
        dims = [*first.dims[:axis], total, *first.dims[axis + 1 :]]
        text, start = self.allocate("t", dims, kind, dtype, "empty"), number(0)
        for part in parts:
            size = self.fixed(part.dims[axis])
            self.fill(self._part(self.plain(text), axis, start, size), part.element, part.kind)
            start = plus(start, size)
        return self.new(text)

    def _stack(self, node: ast.AST, arrays: Value, axis: Value | None = None) -> Array:
        parts = self._arrays_in(node, arrays)
        along = 0 if axis is None else self.axis_in(node, axis, parts[0].rank + 1)
        if any(part.rank != parts[0].rank for part in parts):
            self.refuse(node, "joins arrays with different numbers of dimensions")
        return self._joined([with_axis(part, along) for part in parts], along, node)

    def _vstack(self, node: ast.AST, tup: Value) -> Array:
        return self._joined([self._atleast_2d(node, part) for part in self._arrays_in(node, tup)], 0, node)

    def _hstack(self, node: ast.AST, tup: Value) -> Array:
        listed = [Items([part]) if isinstance(part, Number) else part for part in getattr(tup, "parts", [])]
        parts = self._arrays_in(node, Items(listed))
        return self._joined(parts, min(parts[0].rank - 1, 1), node)

    def _column_stack(self, node: ast.AST, tup: Value) -> Array:
        parts = self._arrays_in(node, tup)
        return self._joined([with_axis(part, 1) if part.rank == 1 else part for part in parts], 1, node)

    def _pad(
        self,
        node: ast.AST,
        array: Value,
        pad_width: Value,
        mode: Value | None = None,
        constant_values: Value | None = None,
    ) -> Array:
        """Zeros around an array."""
        is_zero = constant_values is None or (isinstance(constant_values, Number) and _is_zero(constant_values.expr))
        if not is_zero or not (mode is None or (isinstance(mode, Object) and mode.value == "constant")):
            self.refuse(node, "pads with something other than zeros; write np.concatenate, or a loop")
        a, pairs = self._array_in(node, array), []
        listed = pad_width.parts if isinstance(pad_width, Items) else [pad_width]
        if not any(isinstance(part, Items) for part in listed):
            listed = [pad_width] * a.rank
        for part in listed:
            sizes = self._sizes_in(node, part)
            pairs.append((sizes[0], sizes[-1]))
        if len(pairs) != a.rank or any(isinstance(p, Items) and len(p.parts) > 2 for p in listed):
            self.refuse(node, "needs a number, or a pair for each axis")
        dims = [plus(plus(size, one), other) for size, (one, other) in zip(a.dims, pairs, strict=True)]
        text = self.allocate("t", dims, a.kind, a.dtype, "zeros")
        place = self.plain(text)
        for axis, ((before, _), size) in enumerate(zip(pairs, a.dims, strict=True)):
            place = self._part(place, axis, before, size)
        self.fill(place, a.element, a.kind)
        return self.new(text)

    # Arrays made of their indices

    def _arange(self, node: ast.AST, start: Value, stop: Value | None = None, step: Value | None = None) -> Array:
        bounds = [start] if stop is None else [start, stop] if step is None else [start, stop, step]
        if any(not isinstance(bound, Number) or bound.kind != "int" for bound in bounds):
            self.refuse(node, "counts by something other than integers; use np.linspace, or write a loop")
        sizes = [bound.expr for bound in bounds if isinstance(bound, Number)]
        first, end = (number(0), sizes[0]) if len(sizes) == 1 else (sizes[0], sizes[1])
        by = constant_int(sizes[2]) if len(sizes) == 3 else 1
        if not by:
            self.refuse(node, "needs a constant step other than 0")
        length = minus(end, first) if by > 0 else minus(first, end)
        if abs(by) > 1:
            length = binary(plus(length, abs(by) - 1), ast.FloorDiv(), number(abs(by)))
        first = self.fixed(first)
        size = self.fixed(length if constant_int(length) is not None else call("max", length, number(0)))

        def element(at: list[Expr]) -> Expr:
            return plus(first, at[0] if by == 1 else binary(at[0], ast.Mult(), number(by)))

        return Array([size], element, "int", None)

    def _linspace(self, node: ast.AST, start: Value, stop: Value, num: Value | None = None) -> Array:
        if not isinstance(start, Number) or not isinstance(stop, Number):
            self.refuse(node, "goes from something other than a number to another")
        (size,) = [number(50)] if num is None else self._sizes_in(node, num)
        first, last = self.temporary(start.expr, start.kind), self.temporary(stop.expr, stop.kind)
        steps = call("max", minus(size, 1), number(1))
        step = self.temporary(binary(binary(last, ast.Sub(), first), ast.Div(), steps), "float")

        def element(at: list[Expr]) -> Expr:
            is_last = ast.BoolOp(ast.And(), [compare(at[0], ast.Gt(), number(0)), _equal(at[0], minus(size, 1))])
            return ast.IfExp(is_last, last, binary(first, ast.Add(), binary(at[0], ast.Mult(), step)))

        return Array([size], element, "float", None)

    def _eye(
        self,
        node: ast.AST,
        N: Value,  # noqa: N803
        M: Value | None = None,  # noqa: N803
        k: Value | None = None,
        dtype: Value | None = None,
    ) -> Array:
        (rows,) = self._sizes_in(node, N)
        columns = rows if M is None else self._sizes_in(node, M)[0]
        offset = number(0) if k is None else self._sizes_in(node, k)[0]

        type_of, kind = (None, "float") if dtype is None else self.type_in(dtype, node)

        def element(at: list[Expr]) -> Expr:
            is_one = _equal(plus(at[0], offset), at[1])
            return is_one if kind == "bool" else ast.IfExp(is_one, _one(kind), _zero(kind))

        return Array([rows, columns], element, kind, type_of)

    def _identity(self, node: ast.AST, n: Value, dtype: Value | None = None) -> Array:
        return self._eye(node, n, dtype=dtype)

    # Choices, running totals and products by letters

    def _select(self, node: ast.AST, condlist: Value, choicelist: Value, default: Value | None = None) -> Value:
        lists = [value.parts for value in (condlist, choicelist) if isinstance(value, Items)]
        if len(lists) < 2 or len(lists[0]) != len(lists[1]):
            self.refuse(node, "needs lists of as many conditions as choices, written in the call")
        result = Number(number(0), "int") if default is None else default
        for condition, choice in zip(*(each[::-1] for each in lists), strict=True):
            result = self.where([condition, choice, result], node)
        return result

    def where(self, values: Sequence[Value], node: ast.AST) -> Value:
        raise NotImplementedError

    def _cumsum(self, node: ast.AST, a: Value, axis: Value | None = None) -> Array:
        return self._running(node, a, axis, ast.Add())

    def _cumprod(self, node: ast.AST, a: Value, axis: Value | None = None) -> Array:
        return self._running(node, a, axis, ast.Mult())

    def _running(self, node: ast.AST, a: Value, axis: Value | None, op: ast.operator) -> Array:
        """Running totals along an axis."""
        array = self._array_in(node, a)
        array = self._ravel(node, array) if axis is None else array
        along = 0 if axis is None else self.axis_in(node, axis, array.rank)
        kind = wider("int", array.kind)
        text = self.allocate("t", array.dims, kind, array.dtype if kind == "float" else None, "empty")
        wish, start = ("total", _zero(kind)) if isinstance(op, ast.Add) else ("product", _one(kind))

        def run(index: list[Expr]) -> None:
            total = self.number_variable(wish, kind)
            self.emit(Assign(total, start))

            def step(at: list[Expr]) -> None:
                place = [*index[:along], at[0], *index[along:]]
                element = call("int", array.element(place)) if kind == "int" else array.element(place)
                self.emit(Assign(total, binary(name(total), op, element)))
                self.store(load(text, place), Number(name(total), kind), None)

            self.nest([array.dims[along]], step)

        self.nest([size for place, size in enumerate(array.dims) if place != along], run)
        return self.new(text)

    def _einsum(self, node: ast.AST, subscripts: Value, *operands: Value) -> Value:
        """Products of elements by letters, summed over those that the result does not have."""
        text = subscripts.value if isinstance(subscripts, Object) else None
        if not isinstance(text, str) or "." in text:
            self.refuse(node, "needs the letters of all axes as text")
        inputs, arrow, output = text.replace(" ", "").partition("->")
        letters = inputs.split(",")
        if not arrow:
            output = "".join(sorted(c for c in {*inputs} - {","} if inputs.count(c) == 1))
        arrays = [self.in_memory(self._array_in(node, operand)) for operand in operands]
        if [len(each) for each in letters] != [array.rank for array in arrays] or {*output} - {*inputs}:
            self.refuse(node, "has letters that do not fit its arrays")
        self.refuse_sum_of_tests(ast.MatMult(), arrays, node)
        sizes: dict[str, Expr] = {}
        for each, array in zip(letters, arrays, strict=True):
            for letter, size in zip(each, array.dims, strict=True):
                if letter in sizes and not is_one(size) and not is_one(sizes[letter]):
                    self.agree(sizes[letter], size, node)
                sizes[letter] = size if letter not in sizes or is_one(sizes[letter]) else sizes[letter]
        summed = [letter for letter in sizes if letter not in output]
        kind = wider("int", *(array.kind for array in arrays))

        def entry(index: list[Expr]) -> Number:
            total = self.number_variable("total", kind)
            self.emit(Assign(total, _zero(kind)))

            def add(at: list[Expr]) -> None:
                places = {**dict(zip(output, index, strict=True)), **dict(zip(summed, at, strict=True))}
                parts = [
                    array.element(broadcast([places[letter] for letter in each], array.dims))
                    for each, array in zip(letters, arrays, strict=True)
                ]
                product = parts[0]
                for part in parts[1:]:
                    product = binary(product, ast.Mult(), part)
                self.emit(Assign(total, binary(name(total), ast.Add(), product)))

            self.nest([sizes[letter] for letter in summed], add)
            return Number(name(total), kind)

        if not output:
            return entry([])
        dtype = next((array.dtype for array in arrays if array.kind == kind == "float"), None)
        result = self.allocate("t", [sizes[letter] for letter in output], kind, dtype, "empty")
        self.nest(self.dims[result], lambda index: self.store(load(result, index), entry(index), None))
        return self.new(result)


def _zero(kind: str) -> Expr:
    return number(0.0) if kind == "float" else number(0)


def _is_zero(value: Expr) -> bool:
    return isinstance(value, ast.Constant) and value.value == 0


def _one(kind: str) -> Expr:
    return number(1.0) if kind == "float" else number(1)


def _equal(one: Expr, other: Expr) -> Expr:
    return compare(one, ast.Eq(), other)


def _product(sizes: Sequence[Expr]) -> Expr:
    constants = [constant for size in sizes if (constant := constant_int(size)) is not None]
    others = [size for size in sizes if constant_int(size) is None]
    if math.prod(constants) != 1 or not others:
        others = [*others, number(math.prod(constants))]
    result = others[0]
    for size in others[1:]:
        result = binary(result, ast.Mult(), size)
    return result


def _ravelled(at: Sequence[Expr], sizes: Sequence[Expr]) -> Expr:
    """The place of an element in the order of memory."""
    place: Expr = number(0)
    for index, size in zip(at, sizes, strict=True):
        if not is_one(size):
            place = index if constant_int(place) == 0 else plus(binary(place, ast.Mult(), size), index)
    return place


def _unravelled(place: Expr, sizes: Sequence[Expr]) -> list[Expr]:
    """The indices of an element in the order of memory."""
    wide = [axis for axis, size in enumerate(sizes) if not is_one(size)]
    result: list[Expr] = [number(0)] * len(sizes)
    for axis in wide:
        after = [sizes[each] for each in wide if each > axis]
        index = binary(place, ast.FloorDiv(), _product(after)) if after else place
        result[axis] = index if axis == wide[0] else binary(index, ast.Mod(), sizes[axis])
    return result


ARRANGEMENTS = {
    getattr(np, how): how
    for how in (
        "transpose", "swapaxes", "moveaxis", "flip", "flipud", "fliplr", "roll", "expand_dims", "squeeze",
        "atleast_2d", "broadcast_to", "reshape", "ravel", "take", "split", "diag", "tril", "triu", "repeat", "tile",
        "concatenate", "stack", "vstack", "hstack", "column_stack", "pad", "arange", "linspace", "eye", "identity",
        "select", "cumsum", "cumprod", "einsum",
    )
}  # fmt: skip
METHODS = (
    "transpose",
    "swapaxes",
    "squeeze",
    "reshape",
    "ravel",
    "flatten",
    "astype",
    "take",
    "repeat",
    "cumsum",
    "cumprod",
)
"""Those that are methods of arrays."""
