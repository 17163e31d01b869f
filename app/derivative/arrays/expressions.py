"""Reads expressions: indexing, arithmetic, calls, and new arrays."""

from __future__ import annotations

import ast
import builtins
import math
import operator
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from app.derivative.arrays.arrangements import ARRANGEMENTS, METHODS
from app.derivative.arrays.core import Assign, Expr, If, binary, call, compare, loads_of, names_of
from app.derivative.arrays.definitions import DEFINITIONS
from app.derivative.arrays.new_arrays import MAKERS, NewArrays
from app.derivative.arrays.reductions import REDUCTIONS
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
from app.derivative.powers import as_float, float_if_negative, is_exact
from app.derivative.slopes import hashable, is_flat, row_of, slopes_of
from app.derivative.terms import name, number
from app.functions import function_name, python_function


class ExpressionReader(NewArrays):
    """Reads the expressions of a function."""

    def value(self, node: ast.expr) -> Value:
        """What an expression is."""
        reading: dict[type[ast.expr], Callable[[Any], Value]] = {
            ast.Constant: self._constant,
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Subscript: self._subscript,
            ast.BinOp: lambda n: self.arithmetic(n.op, self.value(n.left), self.value(n.right), n),
            ast.UnaryOp: self._unary,
            ast.BoolOp: self._boolean,
            ast.Compare: self._comparison,
            ast.IfExp: self._choice,
            ast.Call: self._call,
            ast.Tuple: lambda n: Items([self.value(part) for part in n.elts]),
            ast.List: lambda n: Items([self.value(part) for part in n.elts]),
        }
        if type(node) not in reading:
            self.refuse(node, "is an expression that cannot be derived; write a loop")
        return reading[type(node)](node)

    def _constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, bool):
            return Number(node, "bool")
        if isinstance(node.value, (int, float)):
            return Number(node, "int" if isinstance(node.value, int) else "float")
        return Object(node.value)

    def _name(self, node: ast.Name) -> Value:
        if node.id in self.names.values:
            return self.names.values[node.id]
        if node.id in self.names.scope.local:
            self.refuse(
                node,
                "has no value here: it is assigned in a branch or a loop, or is the variable of a loop before; "
                "give it a value before that",
            )
        return self._global(self.names.scope.meaning(node), node)

    def _global(self, value: Any, node: ast.AST) -> Value:
        if isinstance(value, (bool, int, float, np.number, np.bool_)):
            plain = value.item() if isinstance(value, np.generic) else value
            if isinstance(plain, float) and not math.isfinite(plain):
                text = "nan" if plain != plain else "inf"
                constant: Expr = ast.Attribute(name("np"), text, ast.Load())
                return Number(ast.UnaryOp(ast.USub(), constant) if plain < 0 else constant, "float")
            return Number(number(plain), "bool" if isinstance(plain, bool) else type(plain).__name__)
        if isinstance(value, np.ndarray):
            self.refuse(node, "is an array outside of the function; make it a parameter")
        return Object(value)

    def _attribute(self, node: ast.Attribute) -> Value:
        meaning = self.names.scope.meaning(node)
        if meaning is not None:
            return self._global(meaning, node)
        if node.attr == "newaxis" and self.names.scope.meaning(node.value) is np:
            return Object(np.newaxis)
        limits = self._limits(node.value)
        if limits is not None:
            return self._global(getattr(limits, node.attr, None), node)
        return self._attribute_of(self.value(node.value), node.attr, node)

    def _limits(self, node: ast.expr) -> Any:
        """What `np.finfo(float)` or another constant call like it gives."""
        called = self.names.scope.meaning(node.func) if isinstance(node, ast.Call) else None
        if called not in (np.finfo, np.iinfo) or not isinstance(node, ast.Call) or len(node.args) != 1:
            return None
        of = self.value(node.args[0])
        return called(of.value) if isinstance(of, Object) and isinstance(of.value, (type, str)) else None

    def _attribute_of(self, owner: Value, text: str, node: ast.AST) -> Value:
        if isinstance(owner, Number) and text in ("shape", "ndim"):
            return Items([]) if text == "shape" else Number(number(0), "int")
        if isinstance(owner, Array):
            if text == "shape":
                return Items([Number(size, "int") for size in owner.dims])
            if text == "size":
                sizes = [size for size in owner.dims if not is_one(size)] or [number(1)]
                result = sizes[0]
                for size in sizes[1:]:
                    result = binary(result, ast.Mult(), size)
                return Number(result, "int")
            if text == "ndim":
                return Number(number(owner.rank), "int")
            if text == "dtype":
                return Object(owner.dtype)
            if text == "T":
                return Array(
                    owner.dims[::-1], lambda index: owner.element(index[::-1]), owner.kind, owner.dtype, owner.base
                )
        return self.refuse(node, f"reads {text!r}, which cannot be derived; shape, size, ndim, dtype and T can")

    def _subscript(self, node: ast.Subscript) -> Value:
        owner = self.value(node.value)
        if isinstance(owner, Items):
            return self._item(owner, node)
        if not isinstance(owner, Array):
            self.refuse(node, "indexes something that is no array")
        return self.indexed(owner, self.index(node, owner.rank), node)

    def _item(self, owner: Items, node: ast.Subscript) -> Value:
        parts = node.slice
        if isinstance(parts, ast.Slice):
            bounds = [None if b is None else constant_int(b) for b in (parts.lower, parts.upper, parts.step)]
            return Items(owner.parts[slice(*bounds)])
        place = self.value(parts)
        position = constant_int(place.expr) if isinstance(place, Number) else None
        if position is None or not -len(owner.parts) <= position < len(owner.parts):
            self.refuse(node, "indexes a tuple with something other than a constant")
        return owner.parts[position]

    # Arithmetic

    def arithmetic(self, op: ast.operator, left: Value, right: Value, node: ast.AST) -> Value:
        if isinstance(op, ast.MatMult):
            return self.product(left, right, node)
        if type(op) in _TRUTHS and {getattr(value, "kind", "") for value in (left, right)} == {"bool"}:
            return self.elementwise(_TRUTHS[type(op)], [left, right], lambda *_: "bool", node)
        if isinstance(op, (ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor)):
            self.refuse(node, "works on bits, and cannot be derived")
        if isinstance(left, Items) and isinstance(right, Items) and isinstance(op, ast.Add):
            return Items([*left.parts, *right.parts])
        self.refuse_sum_of_tests(op, [left, right], node)
        is_power = isinstance(op, ast.Pow)
        if is_power and isinstance(right, Number):
            right = Number(float_if_negative(right.expr), right.kind)
        if is_power and "float" not in {getattr(value, "kind", "") for value in (left, right)}:
            if isinstance(left, Array) or isinstance(right, Array):  # NumPy's are integers, with 64 bits
                is_power = False
            else:
                left = self._base(left, right, node)

        def kind(a: str, b: str) -> str:
            if isinstance(op, ast.Mult):
                return wider(a, b)
            return "float" if is_power or isinstance(op, ast.Div) else wider("int", a, b)

        return self.elementwise(lambda a, b: binary(a, op, b), [left, right], kind, node)

    def _base(self, left: Value, right: Value, node: ast.AST) -> Value:
        """The base of a power of integers: a float, unless Numba's power is Python's."""
        base, exponent = (getattr(value, "expr", number(0)) for value in (left, right))
        if is_exact(base, exponent):
            return left
        return self.elementwise(as_float, [left], lambda _: "float", node)

    def elementwise(
        self, build: Callable[..., Expr], values: Sequence[Value], kind: Callable[..., str], node: ast.AST
    ) -> Number | Array:
        """A function of numbers, applied to numbers and to the elements of arrays."""
        parts: list[Number | Array] = []
        for value in values:
            if not isinstance(value, (Number, Array)):
                self.refuse(node, "computes with something other than numbers and arrays; write a loop")
            parts.append(value)
        result = kind(*(part.kind for part in parts))
        arrays = [part for part in parts if isinstance(part, Array)]
        if not arrays:
            return Number(build(*(part.expr for part in parts if isinstance(part, Number))), result)
        dims = self.broadcast([each.dims for each in arrays], node)
        operands = [part if isinstance(part, Array) else self._repeated(part) for part in parts]

        def element(index: list[Expr]) -> Expr:
            return build(
                *(
                    p.expr if isinstance(p, Number) else p.element(broadcast(index[len(dims) - p.rank :], p.dims))
                    for p in operands
                )
            )

        dtypes = [a.dtype for a in arrays if a.kind == "float"]
        dtype = dtypes[0] if dtypes and result == "float" else None
        return Array(dims, element, result, dtype)

    def _repeated(self, part: Number) -> Number:
        """A number that is computed before a loop in which it is used."""
        if isinstance(part.expr, (ast.Constant, ast.Name)) or (not names_of(part.expr) and not loads_of(part.expr)):
            return part
        return Number(self.temporary(part.expr, part.kind), part.kind)

    def broadcast(self, shapes: Sequence[list[Expr]], node: ast.AST) -> list[Expr]:
        """The shape of an expression of arrays. Sizes have to be equal, unless one is written as 1 or None."""
        rank = max(len(dims) for dims in shapes)
        result: list[Expr] = []
        for axis in range(rank):
            sizes = [dims[axis - rank + len(dims)] for dims in shapes if axis - rank + len(dims) >= 0]
            wide = [size for size in sizes if not is_one(size)]
            for size in wide[1:]:
                self.agree(wide[0], size, node)
            result.append(wide[0] if wide else number(1))
        return result

    def _unary(self, node: ast.UnaryOp) -> Value:
        operand = self.value(node.operand)
        if isinstance(node.op, ast.Invert):
            if getattr(operand, "kind", "") != "bool":
                self.refuse(node, "works on bits, and cannot be derived")
            return self.elementwise(lambda a: ast.UnaryOp(ast.Not(), a), [operand], lambda _: "bool", node)
        if isinstance(operand, Number) and isinstance(node.op, ast.USub):
            constant = constant_int(operand.expr)
            if constant is not None:
                return Number(ast.UnaryOp(ast.USub(), number(constant)) if constant >= 0 else number(-constant), "int")
        kind = "bool" if isinstance(node.op, ast.Not) else None
        return self.elementwise(lambda a: ast.UnaryOp(node.op, a), [operand], lambda k: kind or wider("int", k), node)

    def _boolean(self, node: ast.BoolOp) -> Value:
        values: list[Expr] = []
        decides = isinstance(node.op, ast.Or)
        for part in node.values:
            with self.collected() as before:
                value = self.number(part)
            if before and values:
                self.refuse(part, "calls a function after `and` or `or`; assign its result in a statement before")
            if value.kind != "bool":
                self.refuse(node, "chooses between numbers; write `a if test else b`")
            for statement in before:
                self.emit(statement)
            if not isinstance(value.expr, ast.Constant):
                values.append(value.expr)
            elif bool(ast.literal_eval(value.expr)) is decides:
                values.append(value.expr)
                break
        if len(values) < 2:
            return Number(values[0] if values else ast.Constant(not decides), "bool")
        return Number(ast.BoolOp(node.op, values), "bool")

    def _comparison(self, node: ast.Compare) -> Value:
        if any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops):
            self.refuse(node, "looks into a collection; write comparisons with ==")
        operands = [self.value(part) for part in (node.left, *node.comparators)]
        if any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            left, right = operands
            one, other = (each.value if isinstance(each, Object) else each for each in (left, right))
            if one is not None and other is not None:
                self.refuse(node, "compares identities; write ==")
            return Number(ast.Constant((one is other) == isinstance(node.ops[0], ast.Is)), "bool")
        constants = [self._constant_of(each) for each in operands]
        if (
            len(constants) == 2 and all(constants) and type(node.ops[0]) in _ORDERS
        ):  # numbers of axes or settings, for example
            (left,), (right,) = constants  # type: ignore[misc]
            if isinstance(node.ops[0], (ast.Eq, ast.NotEq)) or None not in (left, right):
                return Number(ast.Constant(_ORDERS[type(node.ops[0])](left, right)), "bool")
        return self.elementwise(lambda a, *rest: ast.Compare(a, node.ops, [*rest]), operands, lambda *_: "bool", node)

    def _constant_of(self, value: Value) -> tuple[Any] | None:
        """The value of a constant, alone in a tuple."""
        if isinstance(value, Object) and (value.value is None or isinstance(value.value, str)):
            return (value.value,)
        if isinstance(value, Number) and isinstance(value.expr, ast.Constant):
            return (value.expr.value,)
        constant = constant_int(value.expr) if isinstance(value, Number) else None
        return None if constant is None else (constant,)

    def test(self, node: ast.expr) -> Expr:
        value = self.number(node)
        return value.expr if value.kind == "bool" else compare(value.expr, ast.NotEq(), number(0))

    def _choice(self, node: ast.IfExp) -> Value:
        test = self.test(node.test)
        if isinstance(test, ast.Constant):
            return self.value(node.body if test.value else node.orelse)
        with self.collected() as first:
            yes = self.value(node.body)
        with self.collected() as second:
            no = self.value(node.orelse)
        if not isinstance(yes, Number) or not isinstance(no, Number):
            return self._choice_of_arrays(test, yes, no, bool(first or second), node)
        kind = wider(yes.kind, no.kind)
        if not first and not second:
            return Number(ast.IfExp(test, yes.expr, no.expr), kind)
        text = self.number_variable("t", kind)
        first.append(Assign(text, yes.expr, self.line))
        second.append(Assign(text, no.expr, self.line))
        self.emit(If(test, first, second))
        return Number(name(text), kind)

    def _choice_of_arrays(self, test: Expr, yes: Value, no: Value, computed: bool, node: ast.AST) -> Value:
        if not isinstance(yes, Array) or not isinstance(no, Array) or yes.rank != no.rank or computed:
            self.refuse(node, "chooses between arrays; assign them to elements of one array in an `if`")
        if any(each.base and each.base not in {*self.inputs, *self.unnamed} for each in (yes, no)):  # perhaps an alias
            self.refuse(node, "chooses between arrays; assign them to elements of one array in an `if`")
        for one, other in zip(yes.dims, no.dims, strict=True):
            self.agree(one, other, node)
        return self.where([Number(self.temporary(test, "bool"), "bool"), yes, no], node)

    # Calls

    def _call(self, node: ast.Call) -> Value:
        function = self.names.scope.meaning(node.func)
        if function is None and isinstance(node.func, ast.Attribute):
            if node.func.attr in REDUCTIONS and not node.args and not node.keywords:
                result = self._sum_of_chosen(node.func.attr, node.func.value, node)
                if result is not None:
                    return result
            owner = self.value(node.func.value)
            if isinstance(owner, Number) and node.func.attr == "item" and not node.args:
                return owner  # of an array without axes
            if isinstance(owner, Array):
                return self._method(owner, node.func.attr, node)
        if function is None and isinstance(node.func, ast.Name):
            value = self.names.values.get(node.func.id)
            function = value.value if isinstance(value, Object) else None
        return self._applied(function, node)

    # Elements that a mask chooses

    def chosen(self, node: ast.expr, mask: ast.expr) -> Array:
        """An expression of elements that a mask chooses, such as `np.exp(x[mask]) + 1`, computed for all elements."""
        value = self.value(self._unmasked(node, ast.unparse(mask)))
        if not isinstance(value, Array):
            self.refuse(node, "takes nothing of an array by the mask; write np.where")
        return value

    def _unmasked(self, node: ast.expr, mask: str) -> ast.expr:
        if isinstance(node, ast.Subscript) and ast.unparse(node.slice) == mask:
            return node.value
        function = self.names.scope.meaning(node.func) if isinstance(node, ast.Call) else None
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
            sides = [self._unmasked(part, mask) for part in (node.left, node.right)]
            result: ast.expr = ast.BinOp(sides[0], node.op, sides[1])
        elif isinstance(node, ast.UnaryOp):
            result = ast.UnaryOp(node.op, self._unmasked(node.operand, mask))
        elif isinstance(node, ast.Call) and not node.keywords and (row_of(function) or is_flat(function)):
            result = ast.Call(node.func, [self._unmasked(part, mask) for part in node.args], [])
        elif isinstance(self.value(node), Number):
            return node
        else:
            self.refuse(node, "stands beside elements that a mask chooses, and is not a number; write np.where")
        return ast.copy_location(result, node)

    def mask_in(self, node: ast.expr) -> tuple[ast.expr, Array] | None:
        """The first mask that chooses elements in an expression."""
        for part in ast.walk(node):
            if isinstance(part, ast.Subscript) and isinstance(
                part.slice, (ast.Name, ast.Compare, ast.BinOp, ast.UnaryOp)
            ):
                mask = self.value(part.slice)
                if isinstance(mask, Array) and mask.kind == "bool":
                    return part.slice, mask
        return None

    def _sum_of_chosen(self, how: str, part: ast.expr, node: ast.Call) -> Value | None:
        """The sum or the mean of elements that a mask chooses; None if no mask does."""
        masked = self.mask_in(part) if how in ("sum", "mean") else None
        if masked is None:
            return None
        index, mask = masked
        values = self.chosen(part, index)
        if values.rank != mask.rank:
            self.refuse(node, "takes rows by a mask; write np.where")
        terms = self.where([mask, values, Number(number(0), "int")], node)
        assert isinstance(terms, Array)
        total = self.reduced(terms, "sum", node, [])
        if how == "sum":
            return total
        count = self.reduced(self.in_memory(mask), "sum", node, [])
        return self.arithmetic(ast.Div(), total, count, node)

    def _applied(self, function: Any, node: ast.Call) -> Value:
        """The result of a function that is applied to the arguments of a call."""
        if function is len:
            measured = self.value(node.args[0])
            if isinstance(measured, Items):
                return Number(number(len(measured.parts)), "int")
            return Number(self.array(node.args[0]).dims[0], "int")
        key = hashable(function)
        if key in _REDUCERS and len(node.args) == 1 and not node.keywords:
            result = self._sum_of_chosen(_REDUCERS[key], node.args[0], node)
            if result is not None:
                return result
        if key in _OF_ROWS:
            rows = self.value(node.args[0]) if len(node.args) == 1 and not node.keywords else None
            if isinstance(rows, Array):
                return self.reduced(rows, _OF_ROWS[key], node, [number(0)])
        elif key in _REDUCERS:
            arguments = [self.value(part) for part in node.args[:1]]
            if isinstance(arguments[0], Array):
                return self.reduced(arguments[0], _REDUCERS[key], node, node.args[1:])
        if key in MAKERS:
            return self.maker(MAKERS[key], node)
        if key in _ARRAYS and 0 < len(node.args) < 3 and {k.arg for k in node.keywords} <= {"dtype"}:
            return self.as_array(node, function is np.array, function is np.ascontiguousarray)
        if key in _ATTRIBUTES and len(node.args) == 1 and not node.keywords:
            return self._attribute_of(self.value(node.args[0]), _ATTRIBUTES[key], node)
        if function in (np.dot, np.matmul):
            one, other = (self.value(part) for part in node.args)
            if function is np.dot and isinstance(other, Array) and other.rank > 2:
                self.refuse(node, "is np.dot of a stack of matrices; write np.matmul or np.einsum")
            return self.product(one, other, node)
        if function is pow and len(node.args) == 2 and not node.keywords:
            base, exponent = (self.value(part) for part in node.args)
            return self.arithmetic(ast.Pow(), base, exponent, node)
        if function is np.outer:
            left, right = (self.in_memory(self._ravel(node, self.array(part))) for part in node.args)
            return self.arithmetic(ast.Mult(), with_axis(left, 1), with_axis(right, 0), node)
        if key in ARRANGEMENTS:
            return self._arrangement(ARRANGEMENTS[key], [self.value(part) for part in node.args], node)
        if key in DEFINITIONS:
            return self._defined(DEFINITIONS[key], node)
        if row_of(function) or is_flat(function):
            return self._of_numbers(function, node)
        source = python_function(function)
        if isinstance(source, FunctionType) and getattr(function, "__module__", None) not in ("numpy", "math"):
            return self.helper(function, node)
        text = function_name(function) if function is not None else ast.unparse(node.func)
        return self.refuse(node, f"calls {text}, whose derivative is unknown; write a loop")

    def _arrangement(self, how: str, values: Sequence[Value], node: ast.Call) -> Value:
        return self.arranged(how, values, {str(k.arg): self.value(k.value) for k in node.keywords}, node)

    def _defined(self, definition: Any, node: ast.Call) -> Value:
        """A function of NumPy by its definition; what is refused or guarded there is so at the call."""
        outside, self.call_of_definition = self.call_of_definition, self.call_of_definition or (self.names, node)
        result = self.helper(definition, node)
        self.call_of_definition = outside
        return result

    def helper(self, function: Any, node: ast.Call, alone: bool = False) -> Value:
        raise NotImplementedError

    def _of_numbers(self, function: Any, node: ast.Call) -> Value:
        """A function of numbers in the table of slopes."""
        values = [self.value(part) for part in self.names.scope.numbers_of(node)]
        row = row_of(function)
        if row == "where":
            if len(values) != 3:
                self.refuse(node, "needs three arguments; write a loop")
            return self.where(values, node)
        if function is np.power and any(isinstance(value, Array) for value in values):
            return self.arithmetic(ast.Pow(), values[0], values[1], node)
        text, kind = self._spelled(function), _kind_of_results(function)
        if row in ("max", "min") and len(values) > 2:
            result = values[0]
            for value in values[1:]:
                result = self.elementwise(lambda a, b: call(text, a, b), [result, value], kind, node)
            return result
        if row not in ("", "power") and len(values) != len(slopes_of(row)):
            expected = len(slopes_of(row))
            self.refuse(node, f"gives {text} {len(values)} arguments, where {expected} can be derived; write a loop")
        return self.elementwise(lambda *parts: call(text, *parts), values, kind, node)

    def where(self, values: Sequence[Value], node: ast.AST) -> Number | Array:
        """np.where, in which a truth value beside a number becomes a number."""
        kinds = [getattr(value, "kind", "") for value in values[1:]]

        def as_number(part: Expr, kind: str) -> Expr:
            return call(wider(*kinds), part) if kind == "bool" != wider(*kinds) else part

        return self.elementwise(
            lambda c, a, b: ast.IfExp(c, as_number(a, kinds[0]), as_number(b, kinds[1])),
            values,
            lambda _, a, b: wider(a, b),
            node,
        )

    def _spelled(self, function: Any) -> str:
        """How the derived function calls a known one."""
        text = function_name(function)
        for prefix, module in (("", builtins), ("math.", math), ("np.", np)):
            if getattr(module, text, None) is function:
                return prefix + text
        raise AssertionError(text)

    def _method(self, owner: Array, text: str, node: ast.Call) -> Value:
        if text in REDUCTIONS:
            return self.reduced(owner, text, node, node.args)
        if text == "copy":
            return self.copied(owner)
        if text in METHODS:
            values = [self.value(part) for part in node.args]
            if text in ("reshape", "transpose") and len(values) != 1:  # the sizes, or the axes, one by one
                values = [Items(values)] if values else []
            return self._arrangement(text, [owner, *values], node)
        function = getattr(np, text, None) if text in _METHODS_OF_NUMPY else None
        if function is None:
            return self.refuse(node, f"calls the method {text!r} of an array, which cannot be derived; write a loop")
        self.names.values[_OWNER] = owner
        called: Any = ast.Call(node.func, [name(_OWNER), *node.args], node.keywords)
        called.written = node
        return self._applied(function, ast.copy_location(called, node))


_ORDERS: dict[type[ast.cmpop], Callable[..., bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_TRUTHS: dict[type[ast.operator], Callable[..., Expr]] = {
    ast.BitAnd: lambda a, b: ast.BoolOp(ast.And(), [a, b]),
    ast.BitOr: lambda a, b: ast.BoolOp(ast.Or(), [a, b]),
    ast.BitXor: lambda a, b: compare(a, ast.NotEq(), b),
}
"""What operators on bits do with truth values."""
_OWNER = "(the array)"
"""The name of the array whose method is called."""
_ARRAYS = {np.array, np.asarray, np.asanyarray, np.ascontiguousarray}
_ATTRIBUTES = {np.shape: "shape", np.size: "size", np.ndim: "ndim"}
"""Functions of NumPy that give an attribute of an array."""
_METHODS_OF_NUMPY = {"clip", "dot", "var", "std", "ptp", "any", "all", "trace"}
"""Other methods, which do what NumPy's functions of these names do."""
_REDUCERS = {
    **{getattr(np, how): how for how in REDUCTIONS},
    np.amax: "max",
    np.amin: "min",
    sum: "sum",
}
_OF_ROWS = {sum: "sum", max: "max", min: "min"}
"""Python's functions, which go over the first axis alone."""
_INTEGERS = {int, round, len, math.floor, math.ceil, math.trunc}
"""Functions that give integers."""
_FLOATS = {"sign", "floor", "ceil", "rint", "trunc", "fix"}
"""Functions of NumPy that give floats, even of integers."""
_TESTS = {"isnan", "isinf", "isfinite", "bool", "signbit"}
_TESTS |= {"greater", "less", "greater_equal", "less_equal", "equal", "not_equal"}
_CHOOSING = {"abs", "absolute", "clip", "max", "maximum", "min", "minimum"}
"""Functions with a slope that give integers of integers, and truth values of truth values."""
_COUNTING = {"mod", "negative", "remainder", "square"}
"""Those that give integers of both."""


def _kind_of_results(function: Any) -> Callable[..., str]:
    """The kind of what a function of numbers gives, by the kinds of its arguments."""
    row, text = row_of(function), function_name(function)
    if function in _INTEGERS:
        return lambda *_: "int"
    if not row and text in _TESTS:
        return lambda *_: "bool"
    if row in _COUNTING:
        return lambda *kinds: wider("int", *kinds)
    if text in _FLOATS or (row and row not in _CHOOSING):
        return lambda *_: "float"
    return wider
