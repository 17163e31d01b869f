"""Arithmetic on source: sums without zeros and products without ones. Expressions are never changed in place."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import is_
from typing import Any

Slope = ast.expr | None
"""A derivative as source; None if it is zero everywhere."""


def number(value: float) -> ast.expr:
    return ast.Constant(value)


def name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


def number_in(node: Slope) -> float | None:
    """The number that an expression is; None for any other expression."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) else None


def is_atom(node: ast.expr) -> bool:
    """Whether an expression is a variable or a constant, which can be repeated for free."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, (ast.Name, ast.Constant))


def negative(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return node.operand
    value = number_in(node)
    return ast.UnaryOp(ast.USub(), node) if value is None else number(-value)


def _without_sign(node: ast.expr) -> tuple[ast.expr, bool]:
    """An expression without its minus, and whether there was one."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return node.operand, True
    value = number_in(node)
    return (node, False) if value is None or not value < 0 else (number(-value), True)


def total(left: Slope, right: Slope) -> Slope:
    if left is None or number_in(left) == 0:
        return right
    if right is None or number_in(right) == 0:
        return left
    one, other = number_in(left), number_in(right)
    if one is not None and other is not None:
        return number(one + other)
    plain, negated = _without_sign(right)
    return ast.BinOp(left, ast.Sub() if negated else ast.Add(), plain)


def difference(left: Slope, right: Slope) -> Slope:
    return total(left, None if right is None else negative(right))


def product(left: Slope, right: Slope) -> Slope:
    """The product. It is zero if a factor is zero, even beside NaN; conditional expressions are multiplied inside."""
    if left is None or right is None:
        return None
    (left, minus), (right, also) = _without_sign(left), _without_sign(right)
    result = _product(left, right)
    return negative(result) if minus != also and number_in(result) != 0 else result


def _product(left: ast.expr, right: ast.expr) -> ast.expr:
    one, other = number_in(left), number_in(right)
    if one == 0 or other == 0:
        return number(0.0)
    if one == 1:
        return right
    if other == 1:
        return left
    if one is not None and other is not None:
        return number(one * other)
    for choice, factor in ((left, right), (right, left)):
        if isinstance(choice, ast.IfExp) and is_atom(factor):
            body, orelse = (product(part, factor) for part in (choice.body, choice.orelse))
            return ast.IfExp(choice.test, body or number(0.0), orelse or number(0.0))
    if other is not None:
        left, right, one = right, left, other
    inner = number_in(right.left) if isinstance(right, ast.BinOp) and isinstance(right.op, ast.Mult) else None
    if one is not None and inner is not None and isinstance(right, ast.BinOp):
        return _product(number(one * inner), right.right)
    return ast.BinOp(left, ast.Mult(), right)


def quotient(left: Slope, right: ast.expr) -> Slope:
    if left is None or number_in(left) == 0 or number_in(right) == 1:
        return left
    plain, negated = _without_sign(left)
    result = ast.BinOp(plain, ast.Div(), right)
    return negative(result) if negated else result


def filled(template: str, parts: Mapping[str, ast.expr]) -> ast.expr:
    """A template with expressions in place of its names."""
    return with_names(_parsed(template), parts)


def names_in_template(template: str) -> set[str]:
    return names_in(_parsed(template))


@lru_cache
def _parsed(template: str) -> ast.expr:
    return ast.parse(template, mode="eval").body


def with_names(node: ast.expr, parts: Mapping[str, ast.expr]) -> ast.expr:
    """An expression with others in place of its names."""
    if isinstance(node, ast.Name):
        return parts.get(node.id, node)
    return with_parts(node, lambda part: with_names(part, parts))


def with_parts(node: ast.expr, of: Callable[[ast.expr], ast.expr]) -> ast.expr:
    """An expression with what a function gives for each of its direct parts in place of it."""
    fields: dict[str, Any] = {}
    for key, value in ast.iter_fields(node):
        if isinstance(value, ast.expr):
            fields[key] = of(value)
        elif isinstance(value, list):
            parts = [of(each) if isinstance(each, ast.expr) else each for each in value]
            fields[key] = value if all(map(is_, parts, value)) else parts
        else:
            fields[key] = value
    return node if all(value is getattr(node, key) for key, value in fields.items()) else type(node)(**fields)


def names_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
