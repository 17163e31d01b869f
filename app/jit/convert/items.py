"""`x[i] = v`, `x[i] += v` and `x.shape`: of a Tensor, a new value under the old name, and sizes that may be open."""

from __future__ import annotations

import ast
from typing import Any

from app.errors import ProgramError
from app.graph.variable import Variable
from app.jit.convert.build import expression, name, statements
from app.jit.convert.state import is_value, tracer
from app.ops.spec import UNKNOWN
from app.tensor import Tensor

# Rewriting


def rewrite_assign(rewriter: Any, node: ast.Assign) -> Any:
    """`x[i] = v` as `x = _jit.with_item(x, i, v)`."""
    target = node.targets[0]
    owner = _name_of(target.value) if isinstance(target, ast.Subscript) else None
    rewriter.generic_visit(node)
    if owner is None or len(node.targets) > 1 or not isinstance(target, ast.Subscript):
        return node
    return _with_item(owner, _index(target.slice), node.value, node)


def rewrite_change(rewriter: Any, node: ast.AugAssign) -> Any:
    """`x[i] += v` in the same way, where computing `i` twice changes nothing."""
    target = node.target
    owner = _name_of(target.value) if isinstance(target, ast.Subscript) else None
    simple = isinstance(target, ast.Subscript) and not any(isinstance(n, ast.Call) for n in ast.walk(target.slice))
    rewriter.generic_visit(node)
    if owner is None or not simple or not isinstance(target, ast.Subscript):
        return node
    here = ast.copy_location(ast.Subscript(name(owner, node), target.slice, ast.Load()), node)
    value = ast.copy_location(ast.BinOp(here, node.op, node.value), node)
    return _with_item(owner, _index(target.slice), value, node)


def _with_item(owner: str, index: ast.expr, value: ast.expr, at: ast.AST) -> list[ast.stmt]:
    new = statements("x = _jit.with_item(old, index, value)", at, old=name(owner, at), index=index, value=value)
    new[0].targets = [name(owner, at, store=True)]  # type: ignore[attr-defined]
    return new


def _name_of(node: ast.expr) -> str | None:
    """`x`, or `self.x`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return None


def _index(node: ast.expr) -> ast.expr:
    """What stands between brackets as an expression: slices written out."""
    if isinstance(node, ast.Slice):
        parts = [part or ast.copy_location(ast.Constant(None), node) for part in (node.lower, node.upper, node.step)]
        return expression("slice(a, b, c)", node, **dict(zip("abc", parts, strict=True)))
    if isinstance(node, ast.Tuple):
        node.elts = [_index(part) for part in node.elts]
    return node


def rewrite_shape(rewriter: Any, node: ast.Attribute) -> ast.expr:
    """`x.shape` as `_jit.shape(x)`."""
    rewriter.generic_visit(node)
    if node.attr != "shape" or not isinstance(node.ctx, ast.Load):
        return node
    return expression("_jit.shape(x)", node, x=node.value)


# Meaning


def with_item(old: Any, index: Any, value: Any) -> Any:
    """A container in which an item was set; of a Tensor, a new one."""
    if is_value(old) and not (isinstance(old, Tensor)):
        return tracer().with_item(old, index, value)
    old[index] = value
    return old


def shape(value: Any) -> Any:
    """The shape of a value. The size of a batch that was left open cannot be computed with: it raises."""
    if isinstance(value, Variable) and UNKNOWN in value.shape:
        return [OpenSize(value.name) if size == UNKNOWN else size for size in value.shape]
    return list(value.shape) if isinstance(value, Variable) else value.shape


class OpenSize:
    """The size of an axis that differs from call to call. The function is then traced for each size."""

    def __init__(self, owner: str):
        self.owner = owner

    def _refuse(self, *_: Any) -> Any:
        raise ProgramError(f"the first size of {self.owner} is open, and not known while the function is traced")

    __int__ = __index__ = __float__ = __bool__ = __hash__ = __eq__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __ne__ = __str__ = __repr__ = __getattr__ = _refuse
