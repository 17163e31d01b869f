"""Powers as Python and NumPy compute them: in Numba, a negative power of an integer is an integer, which is 0."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import Any

from app.derivative.terms import number, number_in

_LARGEST = 2**63
_INTEGERS = ("int", "round", "len", "bool", "floor", "ceil", "trunc")
"""Functions that may give an integer of a float."""


def make_float_powers(tree: ast.AST, floats: Collection[str]) -> bool:
    """Make the base of a power a float, where it may be an integer and the exponent may be negative, and negative
    exponents floats.

    `floats` are the parameters of the function that are floats, or arrays of floats. Gives whether there is such a
    power.
    """
    if not any(isinstance(node, ast.Pow) or _is_pow(node) for node in ast.walk(tree)):
        return False
    powers = _FloatPowers(_floats_in(tree, floats))
    powers.visit(tree)
    return powers.changed


def is_exact(base: ast.expr, exponent: ast.expr) -> bool:
    """Whether a power of integers is the same in Numba: the exponent is no negative number, and nothing overflows."""
    if not isinstance(exponent, ast.Constant) or type(exponent.value) is not int:
        return False
    if not isinstance(base, ast.Constant) or not isinstance(base.value, int):
        return True
    return exponent.value < 64 and abs(base.value**exponent.value) < _LARGEST


def float_if_negative(exponent: ast.expr) -> ast.expr:
    """A negative number as a float, for which Numba has the power of NumPy: `x ** -1` raises at 0, even if divisions
    do not."""
    if not (isinstance(exponent, ast.UnaryOp) and isinstance(exponent.op, ast.USub)):
        return exponent
    positive = number_in(exponent.operand)
    return exponent if positive is None else ast.copy_location(number(-float(positive)), exponent)


def as_float(base: ast.expr) -> ast.expr:
    """A number as a float."""
    if isinstance(base, ast.Constant) and isinstance(base.value, int):
        return ast.copy_location(number(float(base.value)), base)
    return ast.copy_location(ast.BinOp(number(1.0), ast.Mult(), base), base)


def _is_pow(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "pow"


class _FloatPowers(ast.NodeTransformer):
    """Makes floats of the bases that are to be floats."""

    def __init__(self, floats: Collection[str]):
        self._floats = floats
        self.changed = False

    def _parts(self, base: ast.expr, exponent: ast.expr) -> tuple[ast.expr, ast.expr]:
        """Base and exponent of a power, as floats where they have to be."""
        is_known = _is_float(base, self._floats) or _is_float(exponent, self._floats) or is_exact(base, exponent)
        parts = base if is_known else as_float(base), float_if_negative(exponent)
        self.changed = self.changed or parts != (base, exponent)
        return parts

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        if isinstance(node.op, ast.Pow):
            node.left, node.right = self._parts(node.left, node.right)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Pow) or not isinstance(node.target, ast.Name):
            return node
        target = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        power = ast.copy_location(ast.BinOp(target, node.op, node.value), node)
        return ast.copy_location(ast.Assign([node.target], self.visit_BinOp(power)), node)

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "range":
            return node  # it takes integers only
        self.generic_visit(node)
        if _is_pow(node) and len(node.args) == 2:
            node.args = [*self._parts(*node.args)]
        return node


def _floats_in(tree: ast.AST, parameters: Collection[str]) -> set[str]:
    """The variables that are floats, whichever of their assignments is the latest."""
    assignments = [pair for node in ast.walk(tree) for pair in _assignments(node)]
    floats = {*parameters, *(target for target, _ in assignments)}
    while True:
        others = {target for target, value in assignments if value is None or not _is_float(value, floats)}
        if others.isdisjoint(floats):
            return floats
        floats -= others


def _assignments(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """The variables that a statement assigns, with the values, which are None if they are not known."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield node.target.id, ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
    elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        yield node.targets[0].id, node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id, node.value
    elif isinstance(node, (ast.Assign, ast.For)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = (part for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))
        yield from ((part.id, None) for part in names if isinstance(part.ctx, ast.Store))


def _is_float(node: ast.expr, floats: Collection[str]) -> bool:
    """Whether an expression is certainly a float."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float)
    if isinstance(node, ast.Name):
        return node.id in floats
    if isinstance(node, ast.UnaryOp):
        return not isinstance(node.op, ast.Not) and _is_float(node.operand, floats)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Div) or _is_float(node.left, floats) or _is_float(node.right, floats)
    if isinstance(node, ast.IfExp):
        return _is_float(node.body, floats) and _is_float(node.orelse, floats)
    if isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in ("T", "flat")):
        return _is_float(node.value, floats)
    if isinstance(node, ast.Call):
        text = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return text == "float" or (text not in _INTEGERS and any(_is_float(part, floats) for part in node.args))
    return False
