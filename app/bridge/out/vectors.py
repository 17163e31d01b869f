"""What compiled loops compute in vectors: functions of numbers, and sums whose terms may be added in any order."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

TEMPLATE = "vectors.txt"
NAMES = tuple(
    re.findall(r"^(?:def )?(_\w+)", Path(__file__).with_name("templates").joinpath(TEMPLATE).read_text("utf-8"), re.M)
)
"""The names that the template defines."""
_SECTIONS = {
    "exp": ("power", "exp"),
    "tanh": ("power", "tanh"),
    "log": ("log",),
    "plus": ("plus",),
    "minus": ("minus",),
}
_FUNCTIONS: dict[Any, str] = {math.exp: "exp", math.log: "log", math.tanh: "tanh"}
"""Functions of one number. Those of NumPy may have arrays."""
_SUMS: dict[type[ast.operator], tuple[str, str]] = {ast.Add: ("+=", "plus"), ast.Sub: ("-=", "minus")}
_WIDTH = 118
Change = tuple[str, str]
"""A text, and what stands in its place."""


def sections_for(names: set[str]) -> list[str]:
    """The sections of the template that define these functions."""
    return [section for name in sorted(names) for section in _SECTIONS[name]]


def calls_in(tree: ast.AST, meaning: Callable[[ast.expr], Any]) -> dict[int, tuple[str, str]]:
    """The functions of numbers that are called, as they are written and as they are here, by the `id` of the name that
    they start with.
    """
    calls: dict[int, tuple[str, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
            called, start, text = meaning(node.func), node.func, ast.unparse(node.func)
            while isinstance(start, ast.Attribute):
                start = start.value
            on_one_line = (node.func.end_col_offset or 0) - node.func.col_offset == len(text)
            if getattr(called, "__module__", "") == "math" and called in _FUNCTIONS and on_one_line:
                calls[id(start)] = text, _FUNCTIONS[called]
    return calls


def sums_in(tree: ast.AST, rows: Sequence[str], first: int) -> Iterator[tuple[str, Mapping[tuple[int, int], Change]]]:
    """Sums of loops: the name of the function that adds a term, and how the text changes.

    A variable is one that starts as a number, of which the loop only adds or subtracts terms.
    """
    nodes = list(ast.walk(tree))
    stored = [n for n in nodes if isinstance(n, ast.Assign)]
    for loop in [n for n in nodes if isinstance(n, ast.For)]:
        inner = [n for part in loop.body for n in ast.walk(part)]
        if any(isinstance(n, (ast.For, ast.While)) for n in inner):
            continue
        for s in inner:
            if not (isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name) and type(s.op) in _SUMS):
                continue
            name, (sign, function) = s.target.id, _SUMS[type(s.op)]
            uses = sum(isinstance(n, ast.Name) and n.id == name for n in inner)
            starts = [a.value for a in stored if any(_names(t, name) for t in a.targets)]
            is_number = starts and all(isinstance(v, ast.Constant) and type(v.value) is float for v in starts)
            row = rows[s.lineno - first]
            at, end = row.find(sign, s.target.end_col_offset), s.end_col_offset or 0
            changes = {(s.lineno, at): (sign, f"= _{function}({name},"), (s.lineno, end): ("", ")")}
            fits = s.lineno == s.end_lineno and row.isascii() and len(row) + len(name) + 10 < _WIDTH
            if uses == 1 and is_number and fits and at >= 0:
                yield function, changes


def _names(target: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(target))
