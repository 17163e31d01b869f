"""Reductions of arrays and products of vectors and matrices, as loops over their elements."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from app.derivative.arrays.core import (
    Assign,
    Expr,
    For,
    If,
    Stmt,
    Store,
    binary,
    call,
    compare,
    element_of,
    load,
    loads_of,
    names_of,
    same,
    transposed,
)
from app.derivative.arrays.values import Array, Builder, Items, Number, Object, Value, constant_int, wider, with_axis
from app.derivative.terms import name, number

REDUCTIONS = ("sum", "mean", "max", "min", "argmax", "argmin", "prod")


class Reductions(Builder):
    """What a function reduces and multiplies."""

    def reduced(self, owner: Array, how: str, node: ast.Call, rest: Sequence[ast.expr]) -> Value:
        """sum, mean, prod, max, min, argmax or argmin of an array, whole or along an axis."""
        keywords = {str(k.arg): k.value for k in node.keywords}
        axis_node = rest[0] if rest else keywords.pop("axis", None)
        keep_node = keywords.pop("keepdims", None)
        keeps = self.value(keep_node) if keep_node is not None else Number(ast.Constant(False), "bool")
        if len(rest) > 1 or keywords or not (isinstance(keeps, Number) and isinstance(keeps.expr, ast.Constant)):
            self.refuse(node, "has arguments that cannot be derived; write a loop")
        keep = bool(keeps.expr.value)
        chosen = Object(None) if axis_node is None else self.value(axis_node)
        if isinstance(chosen, Object) and chosen.value is None:
            return self._reduced_along(owner, how, None, keep, node)
        parts = chosen.parts if isinstance(chosen, Items) else [chosen]
        axes = [self.axis_in(node, part, owner.rank) for part in parts]
        if not axes or (len(axes) > 1 and how.startswith("arg")) or len(set(axes)) < len(axes):
            self.refuse(node, "has axes that cannot be derived; write a loop")
        result: Value = owner
        for axis in sorted(axes, reverse=True):
            assert isinstance(result, Array)
            result = self._reduced_along(result, how, axis, keep, node)
        return result

    def value(self, node: ast.expr) -> Value:
        raise NotImplementedError

    def arranged(self, how: str, values: Sequence[Value], named: Mapping[str, Value], node: ast.AST) -> Value:
        raise NotImplementedError

    def constant_in(self, node: ast.AST, value: Value, what: str) -> int:
        """A constant integer."""
        constant = constant_int(value.expr) if isinstance(value, Number) else None
        if constant is None:
            self.refuse(node, f"needs a constant {what}; write a loop")
        return constant

    def axis_in(self, node: ast.AST, value: Value, rank: int) -> int:
        """An axis of an array with so many."""
        axis = self.constant_in(node, value, "axis")
        if not -rank <= axis < rank:
            self.refuse(node, f"has axis {axis} of an array with {rank} dimensions")
        return axis % rank

    def _reduced_along(self, owner: Array, how: str, axis: int | None, keep: bool, node: ast.AST) -> Value:
        owner = owner if how in ("sum", "mean", "prod") else self.in_memory(owner)
        if axis is None or owner.rank == 1:
            number_of_all = self._folded(owner, how, node)
            if not keep:
                return number_of_all
            element = self.temporary(number_of_all.expr, number_of_all.kind)
            return Array([number(1)] * owner.rank, lambda _: element, *self._type_of(owner, how))
        result = self._along(owner, how, axis, node)
        return with_axis(result, axis) if keep else result

    def _along(self, owner: Array, how: str, axis: int, node: ast.AST) -> Array:
        """A reduction along one axis of several."""
        outer = [size for position, size in enumerate(owner.dims) if position != axis]
        if how in ("sum", "mean") and axis < owner.rank - 1:
            return self._added_up(owner, how, axis, outer)
        text = self.allocate("t", outer, *self._type_of(owner, how), "empty")

        def one(index: list[Expr]) -> None:
            line = Array(
                [owner.dims[axis]],
                lambda at: owner.element([*index[:axis], at[0], *index[axis:]]),
                owner.kind,
                owner.dtype,
                owner.base,
            )
            self.store(load(text, index), self._folded(line, how, node), None)

        self.nest(outer, one)
        return self.new(text)

    def _added_up(self, owner: Array, how: str, axis: int, outer: list[Expr]) -> Array:
        """A sum or mean along an axis that is not the last, in the order of the elements in memory."""
        kind, dtype = self._type_of(owner, how)
        text = self.allocate("t", outer, kind, dtype, "zeros")

        def add(index: list[Expr]) -> None:
            value = owner.element(index)
            value = binary(value, ast.Div(), owner.dims[axis]) if how == "mean" else value
            self.store(load(text, [*index[:axis], *index[axis + 1 :]]), Number(value, kind), ast.Add())

        self.nest(owner.dims, add)
        return self.new(text)

    def _type_of(self, owner: Array, how: str) -> tuple[str, Expr | None]:
        """The kind and type of the results of a reduction. NumPy counts truth values, and adds integers as int64."""
        if how in ("max", "min"):
            return owner.kind, owner.dtype
        if how.startswith("arg"):
            return "int", None
        kind = "float" if how == "mean" else wider("int", owner.kind)
        return kind, owner.dtype if owner.kind == "float" else None

    def _folded(self, owner: Array, how: str, node: ast.AST) -> Number:
        """A number from all elements of an array."""
        if how in ("sum", "mean", "prod"):
            kind, _ = self._type_of(owner, how)
            start = number(1.0 if how == "prod" else 0.0) if kind == "float" else number(int(how == "prod"))
            text = self.number_variable({"sum": "total", "mean": "mean", "prod": "product"}[how], kind)
            self.emit(Assign(text, start))
            op = ast.Mult() if how == "prod" else ast.Add()
            is_narrow = kind == "int" and owner.dtype is not None  # perhaps int32, which would overflow

            def add(at: list[Expr]) -> None:
                element = owner.element(at)
                self.emit(Assign(text, binary(name(text), op, call("int", element) if is_narrow else element)))

            self.nest(owner.dims, add)
            if how == "mean":
                size: Expr = owner.dims[0]
                for each in owner.dims[1:]:
                    size = binary(size, ast.Mult(), each)
                self.emit(Assign(text, binary(name(text), ast.Div(), size)))
            return Number(name(text), kind)
        if owner.rank == 1:
            at = self._extreme(owner, "argmax" if how.endswith("max") else "argmin")
            return Number(at, "int") if how.startswith("arg") else Number(owner.element([at]), owner.kind)
        if how.startswith("arg"):
            self.refuse(node, "needs an axis, or an array of one dimension; write a loop")
        flat = self._flat_extreme(owner, how)
        return Number(flat, owner.kind)

    def _extreme(self, owner: Array, how: str) -> Expr:
        """The index of the largest element of a line of an array."""
        probe = name("_0")
        element = element_of(owner.element([probe]))
        assert element is not None
        array, index = element
        whole = [each for each in index if "_0" in names_of(each)]
        text = self.number_variable("at", "int")
        if len(whole) == 1 and same(whole[0], probe) and not any(loads_of(each) for each in index):
            section = [ast.Slice() if "_0" in names_of(each) else each for each in index]
            self.emit(Assign(text, call(f"np.{how}", load(array, section))))
            return name(text)
        op = ast.Gt() if how == "argmax" else ast.Lt()
        self.emit(Assign(text, number(0)))
        variable = self.loop_name()
        test = self.exceeds(owner.element([name(variable)]), op, owner.element([name(text)]), owner.kind)
        self.emit(
            For(
                variable,
                number(1),
                self.fixed(owner.dims[0]),
                1,
                [If(test, [Assign(text, name(variable), self.line)], [], self.line)],
            )
        )
        return name(text)

    def exceeds(self, element: Expr, op: ast.cmpop, best: Expr, kind: str) -> Expr:
        """Whether an element takes the place of the largest or smallest one so far."""
        return compare(element, op, best)

    def _flat_extreme(self, owner: Array, how: str) -> Expr:
        """The largest element of an array of several dimensions, found by its indices."""
        at = [self.number_variable("at", "int") for _ in owner.dims]
        for text in at:
            self.emit(Assign(text, number(0)))
        op = ast.Gt() if how == "max" else ast.Lt()
        best = owner.element([name(text) for text in at])

        def look(index: list[Expr]) -> None:
            choose: list[Stmt] = [Assign(text, each, self.line) for text, each in zip(at, index, strict=True)]
            self.emit(If(self.exceeds(owner.element(index), op, best, owner.kind), choose))

        self.nest(owner.dims, look)
        return best

    def _whole_section(self, value: Array) -> Expr | None:
        """An array as a section of one, or its transpose, if that is contiguous."""
        probe: list[Expr] = [name(f"_{axis}") for axis in range(value.rank)]
        element = element_of(value.element(probe))
        if element is None or not value.base:
            return None
        array, index = element
        ends = [part.id if isinstance(part, ast.Name) else "" for part in index[len(index) - value.rank :]]
        free = [n for part in index[: len(index) - value.rank] for n in names_of(part) if n in {"_0", "_1"}]
        sizes = self.dims[array][len(index) - value.rank :]
        order = [int(each[1:]) if each in {"_0", "_1"} else -1 for each in ends]
        if free or sorted(order) != [*range(value.rank)]:
            return None
        if any(not same(value.dims[axis], size) for axis, size in zip(order, sizes, strict=True)):
            return None
        section = load(array, [*index[: len(index) - value.rank], *(ast.Slice() for _ in order)])
        return transposed(section) if order == [1, 0] else section

    def _have_the_type_of_inputs(self, *arrays: Array) -> bool:
        """Whether arrays have the type of all inputs, which gradients have, too: Numba multiplies no others by `@`."""
        types = {*self.float_types.values()}
        for array in arrays:
            dtype = array.dtype
            owner = dtype.value if isinstance(dtype, ast.Attribute) else None
            text = dtype.attr if isinstance(dtype, ast.Attribute) else "float64"
            key = owner.id if isinstance(owner, ast.Name) else ""
            types.add(self.float_types.get(key, "?") if text == "dtype" else text)
        return len(types) == 1 and all(array.kind == "float" for array in arrays)

    def product(self, left: Value, right: Value, node: ast.AST) -> Value:
        """The product of vectors, matrices and stacks of matrices."""
        if not isinstance(left, Array) or not isinstance(right, Array):
            self.refuse(node, "is a product of something other than arrays; multiply numbers by *")
        stack = "abcdefghijklm"[: max(left.rank, right.rank, 2) - 2]
        if stack:
            rows, columns = "xy"[-left.rank :], "yz"[: right.rank]
            first, second = (stack[len(stack) - max(array.rank - 2, 0) :] for array in (left, right))
            text = f"{first}{rows},{second}{columns}->{stack}{rows[:-1]}{columns[1:]}"
            return self.arranged("einsum", [Object(text), left, right], {}, node)
        self.refuse_sum_of_tests(ast.MatMult(), [left, right], node)
        one, other = self.in_memory(left), self.in_memory(right)
        inner = one.dims[-1]
        self.agree(inner, other.dims[0], node)
        kind = wider("int", one.kind, other.kind)
        sections = [self._whole_section(each) for each in (one, other)]
        if one.rank + other.rank > 2 and self._have_the_type_of_inputs(one, other) and None not in sections:
            text = self.allocate("t", [*one.dims[:-1], *other.dims[1:]], kind, one.dtype, "empty")
            value = binary(*(sections[0], ast.MatMult(), sections[1]))  # type: ignore[arg-type]
            self.emit(Store(text, tuple(ast.Slice() for _ in self.dims[text]), value))
            return self.new(text)
        zero = number(0.0) if kind == "float" else number(0)

        def entry(index: list[Expr]) -> Number:
            rows, columns = index[: one.rank - 1], index[one.rank - 1 :]
            text = self.number_variable("total", kind)
            self.emit(Assign(text, zero))

            def add(at: list[Expr]) -> None:
                term = binary(one.element([*rows, at[0]]), ast.Mult(), other.element([at[0], *columns]))
                self.emit(Assign(text, binary(name(text), ast.Add(), term)))

            self.nest([inner], add)
            return Number(name(text), kind)

        dims = [*one.dims[:-1], *other.dims[1:]]
        if not dims:
            return entry([])
        dtype = one.dtype if one.kind == "float" else other.dtype if other.kind == "float" else None
        text = self.allocate("t", dims, kind, dtype, "empty")
        self.nest(dims, lambda index: self.store(load(text, index), entry(index), None))
        return self.new(text)
