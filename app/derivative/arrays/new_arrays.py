"""Reads what makes arrays: np.empty and the like, np.array of lists, copies, and types."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np

from app.derivative.arrays.core import Copied, Expr, Variable, call, load, loads_of, names_of
from app.derivative.arrays.indexing import Indexing
from app.derivative.arrays.values import TYPES, Array, Items, Number, Object, Value, kind_of, wider
from app.derivative.terms import name, number


class NewArrays(Indexing):
    """Reads new arrays."""

    def copied(self, source: Array) -> Array:
        if not self.is_whole(source):
            return self.new(self.materialise(source, "t"))
        text = self.fresh("t")
        self.variables[text], self.dims[text] = Variable(source.rank, source.kind, source.dtype), list(source.dims)
        self.emit(Copied(text, "copy", source.base))
        return self.new(text)

    def maker(self, how: str, node: ast.Call) -> Array:
        """np.empty, np.zeros, np.ones, np.full, what is like them, and np.copy."""
        arguments = list(node.args)
        keywords = {str(k.arg): k.value for k in node.keywords}
        base, _, like = how.partition("_")
        dtype: Expr | None = None
        kind = "float"
        if how == "copy" or like:
            source = self.array(arguments.pop(0) if arguments else keywords.pop("a"))
            dims, dtype, kind = source.dims, source.dtype, source.kind
            if how == "copy":
                return self.copied(source)
        else:
            shape = self.value(arguments.pop(0) if arguments else keywords.pop("shape"))
            parts = shape.parts if isinstance(shape, Items) else [shape]
            dims = []
            for part in parts:
                if not isinstance(part, Number):
                    self.refuse(node, "has a shape that is no tuple of integers")
                dims.append(part.expr)
        fill: Expr | None = None
        filling: Number | None = None
        if base == "full":
            filling = self.number(arguments.pop(0) if arguments else keywords.pop("fill_value"))
            if not like and filling.kind != "float":  # NumPy's array has the type of the number
                kind, type_text = filling.kind, "int64" if filling.kind == "int" else "bool_"
                dtype = ast.Attribute(name("np"), type_text, ast.Load())
            if not names_of(filling.expr) and not loads_of(filling.expr):
                fill, filling = filling.expr, None
            else:
                base = "empty"
        elif base == "ones":
            base, fill = "full", number(1.0)
        type_node = arguments.pop(0) if arguments else keywords.pop("dtype", None)
        if type_node is not None:
            dtype, kind = self.type_in(self.value(type_node), type_node)
        if arguments or keywords:
            self.refuse(node, "has arguments that cannot be derived")
        if base == "full" and isinstance(fill, ast.Constant) and kind == "float":
            fill = number(float(ast.literal_eval(fill)))
        text = self.allocate("t", dims, kind, dtype, base, fill)
        if filling is not None:
            value = self.temporary(filling.expr, filling.kind)
            self.fill(self.plain(text), lambda _: value, filling.kind)
        return self.new(text)

    def as_array(self, node: ast.Call, copies: bool, changes_order: bool) -> Value:
        """np.array, or a function that gives the array itself where it can."""
        value = self.value(node.args[0])
        type_node = node.args[1] if len(node.args) == 2 else node.keywords[0].value if node.keywords else None
        result = self._listed(value, node) if copies or isinstance(value, Items) else value
        if isinstance(result, Array) and (type_node is not None or changes_order):
            result = self.copy_or_view(result, node, "is the array itself or a copy of it; write `.astype(...)`")
        if type_node is None:
            return result
        dtype = self.value(type_node)
        if isinstance(result, Number):
            kind = self.type_in(dtype, type_node)[1]
            return result if kind == result.kind else Number(call(kind, result.expr), kind)
        return self._astype(node, result, dtype)

    def _listed(self, value: Value, node: ast.AST) -> Array:
        """np.array of a list of numbers, of a list of such lists, or of an array."""
        if isinstance(value, Array):
            return self.copied(value)
        if not isinstance(value, Items):
            self.refuse(node, "makes an array of something other than a list of numbers")
        if value.parts and all(isinstance(part, Array) for part in value.parts):
            return self._stack(node, value)
        rows = [part.parts for part in value.parts if isinstance(part, Items)]
        if rows and len(rows) == len(value.parts):
            return self._matrix(rows, node)
        numbers = [part for part in value.parts if isinstance(part, Number)]
        if len(numbers) < len(value.parts):
            self.refuse(node, "makes an array of something other than a list of numbers; write np.empty and a loop")
        kind = wider(*(part.kind for part in numbers)) if numbers else "float"
        text = self.allocate("t", [number(len(numbers))], kind, None, "empty")
        for position, part in enumerate(numbers):
            self.store(load(text, [number(position)]), part, None)
        return self.new(text)

    def _matrix(self, rows: Sequence[Sequence[Value]], node: ast.AST) -> Array:
        """np.array of lists of numbers, or of other lists."""
        numbers = [part for row in rows for part in row if isinstance(part, Number)]
        if len(numbers) < sum(map(len, rows)) or len(numbers) != len(rows) * len(rows[0]):
            return self._stack(node, Items([self._listed(Items([*row]), node) for row in rows]))
        kind = wider(*(part.kind for part in numbers)) if numbers else "float"
        text = self.allocate("t", [number(len(rows)), number(len(rows[0]))], kind, None, "empty")
        for position, part in enumerate(numbers):
            index = [number(each) for each in divmod(position, len(rows[0]))]
            self.store(load(text, index), part, None)
        return self.new(text)

    def type_in(self, value: Value, node: ast.AST) -> tuple[Expr | None, str]:
        """The type that a value is, and the kind of its numbers."""
        if not isinstance(value, Object):
            self.refuse(node, "is expected to be a type")
        if isinstance(value.value, ast.expr):
            owner = (
                value.value.value.id
                if isinstance(value.value, ast.Attribute) and isinstance(value.value.value, ast.Name)
                else ""
            )
            kind = self.variables[owner].kind if owner in self.variables else _kind_of(value.value)
            return value.value, kind
        try:
            dtype = np.dtype(value.value)
        except TypeError:
            self.refuse(node, "is expected to be a type")
        kind_of_dtype = kind_of(dtype)
        if kind_of_dtype is None:
            self.refuse(node, f"is {dtype}; {TYPES}")
        text = "bool_" if dtype.kind == "b" else dtype.name
        return ast.Attribute(name("np"), text, ast.Load()), kind_of_dtype


MAKERS = {
    np.empty: "empty",
    np.zeros: "zeros",
    np.ones: "ones",
    np.full: "full",
    np.empty_like: "empty_like",
    np.zeros_like: "zeros_like",
    np.ones_like: "ones_like",
    np.full_like: "full_like",
    np.copy: "copy",
}


def _kind_of(dtype: ast.expr) -> str:
    text = dtype.attr if isinstance(dtype, ast.Attribute) else ""
    return "int" if "int" in text else "bool" if "bool" in text else "float"
