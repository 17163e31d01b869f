"""Reads assignments: to names, to elements and parts of arrays, and where a mask is true."""

from __future__ import annotations

import ast
from typing import Any

from app.derivative.arrays.core import (
    Assign,
    Expr,
    If,
    Variable,
    load,
    loads_of,
    named_in,
    names_of,
    renamed,
    text_of,
    walk,
)
from app.derivative.arrays.expressions import ExpressionReader
from app.derivative.arrays.values import Array, Items, Number, Object, Value, bases_in, broadcast, is_one, wider
from app.derivative.terms import name, number


class AssignmentReader(ExpressionReader):
    """Reads the assignments of a function."""

    def __init__(self, function: Any):
        super().__init__(function)
        self._made_in: dict[tuple[int, str], int] = {}
        """The block in which a name got a value that is not a number."""
        self._views: set[str] = set()
        """Arrays of which there are views, or other names."""

    def assign(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            values = [self.value(part) for part in value.elts]
            exchanges = sorted(map(ast.unparse, target.elts)) == sorted(map(ast.unparse, value.elts))
            for place, (each, part) in enumerate(zip(values, value.elts, strict=True)):
                if isinstance(each, Array) and each.base and each.base not in {*self.unnamed, *self.inputs}:
                    if exchanges and self.is_whole(each) and each.base not in self._views | self.perhaps_same:
                        values[place] = self.new(self.materialise(each, "t"))
                        continue
                    self.refuse(
                        part, "gives an array another name, together with others; write one assignment for each"
                    )
            values = [self._lasting(each) for each in values]
            for one, each in zip(target.elts, values, strict=True):
                self._to(one, each, node)
            return
        if isinstance(target, ast.Subscript) and self._assigned_by_mask(target, value, node, None):
            return
        result = self.value(value)
        if not isinstance(target, ast.Tuple):
            self._to(target, result, node)
            return
        if isinstance(result, Array):
            self.agree(result.dims[0], number(len(target.elts)), node)
            rows = self.in_memory(result)
            result = Items([self.indexed(rows, [Number(number(k), "int")], node) for k in range(len(target.elts))])
        if not isinstance(result, Items) or len(result.parts) != len(target.elts):
            self.refuse(node, f"unpacks something other than {len(target.elts)} values")
        for one, each in zip(target.elts, [self._lasting(each) for each in result.parts], strict=True):
            self._to(one, each, node)

    def _lasting(self, value: Value) -> Value:
        """A value that later assignments do not change."""
        if isinstance(value, Items):
            return Items([self._lasting(part) for part in value.parts])
        if isinstance(value, Number):
            changing = names_of(value.expr) - self.unchanging
            if changing or loads_of(value.expr):
                return Number(self.temporary(value.expr, value.kind), value.kind)
        if isinstance(value, Array) and not value.base:
            return self.new(self.materialise(value, "t"))
        return value

    def _to(self, target: ast.expr, value: Value, node: ast.stmt) -> None:
        if isinstance(target, ast.Name):
            self._bind(target, value)
        elif isinstance(target, ast.Subscript):
            self._element(target, value, node)
        else:
            self.refuse(target, "is neither a variable nor an element of an array")

    def _bind(self, target: ast.Name, value: Value) -> None:
        text = target.id
        before = self.names.values.get(text)
        if isinstance(before, (Items, Object)) and self._is_made_here(text):
            before = None  # as if it were another name
        if isinstance(value, Array):
            self._bind_array(target, value, before)
        elif isinstance(value, Number):
            self._bind_number(target, value, before)
        elif before is not None:
            self.refuse(target, "gets a tuple, a function or a type, and had another value; use another name")
        else:
            self.names.values[text] = lasting = self._lasting(value)
            self._made_in[id(self.names), text] = self.block_number
            self._views |= bases_in(lasting)

    def _bind_number(self, target: ast.Name, value: Number, before: Value | None) -> None:
        text = target.id
        if isinstance(before, Number) and isinstance(before.expr, ast.Name):
            key = before.expr.id
            if key in self.loops:
                self.refuse(target, "is the variable of a loop, and is assigned inside of it; use another name")
        elif before is not None:
            self.refuse(target, "gets a number, and was something else; use another name")
        else:
            key = text if self.names.scope is self.scope and text not in self.variables else self.fresh(text)
            self.all_names.add(key)
            if self.names.stores.get(text, 0) == 1 and not self.block_number:
                self.steady.add(key)
                if not loads_of(value.expr) and names_of(value.expr) <= {*self.settings, *self.definitions}:
                    self.definitions[key] = value.expr
        kind = wider(self.variables[key].kind, value.kind) if key in self.variables else value.kind
        self.variables[key] = Variable(0, kind)
        self.names.values[text] = Number(name(key), kind)
        self.emit(Assign(key, value.expr))

    def _bind_array(self, target: ast.Name, value: Array, before: Value | None) -> None:
        text = target.id
        if before is not None and not isinstance(before, Array):
            self.refuse(target, "gets an array, and was something else; use another name")
        new = value.base in self.unnamed
        if before is None or self._is_made_here(text):
            if value.base and not new:
                self._views.add(value.base)
                self.names.values[text] = value
            else:
                self.names.values[text] = self._named(value, text)
            self._made_in[id(self.names), text] = self.block_number
            return
        key = before.base
        if key in self.inputs:
            self.refuse(target, "gets another array in a loop or a branch; use another name before it")
        if key in self._views or not self.is_whole(before):
            self.refuse(target, "gets another array while views of the former exist; write to its elements instead")
        if before.rank != value.rank:
            self.refuse(target, f"has {before.rank} dimensions, and gets {value.rank}; use another name")
        if value.base not in {"", key} and not new and not self._is_last_use(value.base):
            self.refuse(target, "becomes another name of an array; write `.copy()` after it")
        for one, other in zip(self.dims[key], value.dims, strict=True):
            self.agree(one, other, target)
        place = self.plain(key)
        source = value
        if value.base in {"", key} and self._overlaps(place, value):
            source = self.plain(self.materialise(value, f"{text}_next"))
        self.fill(place, lambda at: source.element(broadcast(at, source.dims)))

    def _is_made_here(self, text: str) -> bool:
        """Whether a name of the function that is read got its array in the block that is read."""
        return self._made_in.get((id(self.names), text)) == self.block_number

    def _named(self, value: Array, text: str) -> Array:
        """An array that an expression made, under the name of the variable that it is assigned to."""
        wish = text if self.names.scope is self.scope and text not in self.variables else self.fresh(text)
        if not self.is_whole(value):  # it is computed, or a part of an array that has no name
            self.all_names.discard(wish)
            return self.plain(self.materialise(value, wish))
        self.all_names.add(wish)
        old = value.base
        if old in self.perhaps_same:
            self.perhaps_same.add(wish)
        self.unnamed.discard(old)
        self.all_names.discard(old)
        self.variables[wish], self.dims[wish] = self.variables.pop(old), self.dims.pop(old)
        for position, statement in enumerate(self.out):
            if any(old in named_in(s) for s in walk([statement])):
                self.out[position] = renamed(statement, {old: wish})
        return self.plain(wish)

    def _is_last_use(self, base: str) -> bool:
        """Whether an array was made in this block, and is used by nothing after this statement."""
        owners = [key for key, value in self.names.values.items() if isinstance(value, Array) and value.base == base]
        if len(owners) != 1 or base in self._views or not self._is_made_here(owners[0]):
            return False
        key = owners[0]
        uses = [n for n in ast.walk(self.names.scope.tree) if isinstance(n, ast.Name) and n.id == key]
        lines = [n.lineno for n in uses]
        first = min(uses, key=lambda n: (n.lineno, n.col_offset))
        return max(lines) <= self.line and isinstance(first.ctx, ast.Store)

    def _element(self, target: ast.Subscript, value: Value, node: ast.stmt, op: ast.operator | None = None) -> None:
        owner = self.value(target.value)
        if not isinstance(owner, Array) or not owner.base:
            self.refuse(target, "is no element of an array that can be written to")
        self._writable(owner, node)
        mask = None if isinstance(target.slice, (ast.Slice, ast.Tuple)) else self.value(target.slice)
        if isinstance(mask, Array) and mask.kind == "bool":
            if not isinstance(value, Number):
                self.refuse(node, "assigns an array where a mask is true; write np.where")
            return self._masked(owner, mask, value, node, op)
        place = self.indexed(owner, self.index(target, owner.rank), target, changing=op is not None)
        if isinstance(place, Array) and not place.base and isinstance(value, Array):
            value = self.plain(self.materialise(value, "t"))
        if isinstance(place, Array):
            return self._section(place, value, node, op)
        if not isinstance(value, Number):
            self.refuse(node, "assigns something other than a number to an element")
        self.refuse_sum_of_tests(op, [place, value], node)
        return self.store(place.expr, value, op)

    def _assigned_by_mask(self, target: ast.Subscript, value: ast.expr, node: ast.AST, op: ast.operator | None) -> bool:
        """Read `y[mask] = f(x[mask])`, in which the elements that the mask chooses get values from such elements."""
        text = ast.unparse(target.slice)
        if not any(isinstance(n, ast.Subscript) and ast.unparse(n.slice) == text for n in ast.walk(value)):
            return False
        masked = self.mask_in(target)
        if masked is None or masked[0] is not target.slice:
            return False
        index, mask = masked
        owner = self.array(target.value)
        self._writable(owner, node)
        chosen = self.chosen(value, index)
        if not owner.rank == mask.rank == chosen.rank:
            self.refuse(node, "takes rows by a mask; write np.where")
        if self._overlaps(owner, chosen):
            chosen = self.plain(self.materialise(chosen, "t"))
        self._masked(owner, mask, chosen, node, op)
        return True

    def _masked(self, owner: Array, mask: Array, value: Number | Array, node: ast.AST, op: ast.operator | None) -> None:
        """The assignment of a number, or of elements of the same places, to the elements that a mask chooses."""
        self.refuse_sum_of_tests(op, [owner, value], node)
        if mask.rank > owner.rank:
            self.refuse(node, f"has a mask with {mask.rank} dimensions for an array with {owner.rank}")
        for size, other in zip(owner.dims, mask.dims, strict=False):
            self.agree(size, other, node)
        if mask.rank < owner.rank or self._overlaps(owner, mask):
            mask = self.plain(self.materialise(mask, "mask"))
        if isinstance(value, Array):
            for size, other in zip(owner.dims, value.dims, strict=True):
                self.agree(size, other, node)
        fixed = Number(self.temporary(value.expr, value.kind), value.kind) if isinstance(value, Number) else value

        def assign(at: list[Expr]) -> None:
            with self.collected() as inside:
                each = Number(fixed.element(at), fixed.kind) if isinstance(fixed, Array) else fixed
                self.store(owner.element(at), each, op)
            self.emit(If(mask.element(at[: mask.rank]), inside))

        self.nest(owner.dims, assign)

    def _writable(self, owner: Array, node: ast.AST) -> None:
        if owner.base in self.inputs:
            self.refuse(node, "changes an input in place; write to a copy")
        if owner.base in self.perhaps_same:
            self.refuse(node, "changes an array that may have another name; write `.copy()` where it gets it")

    def _section(self, place: Array, value: Value, node: ast.AST, op: ast.operator | None) -> None:
        self.refuse_sum_of_tests(op, [place, value], node)
        if isinstance(value, Number):
            expr = value.expr if isinstance(value.expr, ast.Constant) else self.temporary(value.expr, value.kind)
            self.fill(place, lambda _: expr, value.kind, op)
            return
        if not isinstance(value, Array):
            self.refuse(node, "assigns something other than numbers")
        offset = place.rank - value.rank
        if offset < 0:
            self.refuse(node, f"assigns {value.rank} dimensions to {place.rank}")
        source = self.plain(self.materialise(value, "t")) if self._overlaps(place, value) else value
        for axis, size in enumerate(value.dims):
            if not is_one(size):
                self.agree(place.dims[offset + axis], size, node)
        self.fill(place, lambda at: source.element(broadcast(at[offset:], source.dims)), value.kind, op)

    def _overlaps(self, place: Array, value: Array) -> bool:
        """Whether an expression reads elements of the array that it is assigned to, other than the assigned one."""
        probe: list[Expr] = [name(f"_{axis}") for axis in range(place.rank)]
        target = text_of(place.element(probe))
        reads = loads_of(value.element(broadcast(probe[place.rank - value.rank :], value.dims)))
        return any(array == place.base and text_of(load(array, index)) != target for array, index in reads)

    def augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Subscript):
            if self._assigned_by_mask(target, node.value, node, node.op):
                return None
            return self._element(target, self.value(node.value), node, node.op)
        if not isinstance(target, ast.Name):
            self.refuse(target, "is neither a variable nor an element of an array")
        before = self.value(ast.copy_location(ast.Name(target.id, ast.Load()), target))
        value = self.value(node.value)
        if isinstance(before, Array):
            if not before.base:
                self.refuse(node, "changes something that is no array")
            self._writable(before, node)
            return self._section(before, value, node, node.op)
        return self._bind(target, self.arithmetic(node.op, before, value, node))
