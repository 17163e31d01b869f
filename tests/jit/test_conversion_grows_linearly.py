"""Converted source, and the work of tracing it, grow with the depth of a function's control flow, and no faster."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import app
from app.jit import to_static

TICKS = [itertools.count()]
"""Counts how often the innermost body is run; Python's own containers would be set back when a body is traced again."""


def written(lines: list[str]) -> Any:
    """The function `f` with this source, which can be read."""
    file, text = f"<{abs(hash(tuple(lines)))}>", [line + "\n" for line in lines]
    linecache.cache[file] = len(text), None, text, file
    known: dict[str, Any] = {"next_tick": lambda: next(TICKS[0])}
    exec(compile("".join(text), file, "exec"), known)
    return known["f"]


def guard_clauses(depth: int) -> list[str]:
    body = [
        [f"    if x.sum() > {100 - k}:", "        next_tick()", f"        return x * {k}", "    x = x + 1"]
        for k in range(depth)
    ]
    return ["def f(x):", *itertools.chain(*body), "    return x"]


def nested(opening: str, inside: str = "x = x + 1", closing: str = "") -> Callable[[int], list[str]]:
    """A function with one statement inside another; what is written after the body may begin an `else`, too."""

    def indented(text: str, k: int, depth: int) -> list[str]:
        return ["    " * (k + 1) + line.format(k=k, left=depth - k) for line in text.splitlines()]

    def lines(depth: int) -> list[str]:
        opened = [indented(opening, k, depth) for k in range(depth)]
        closed = [indented(closing, k, depth) for k in reversed(range(depth))]
        innermost = indented(f"next_tick()\n{inside}", depth, depth)
        return ["def f(x):", *itertools.chain(*opened, innermost, *closed), "    return x"]

    return lines


RETURN_AFTER = "    x = x + {k}\n    if x.max() > {k} + 20:\n        return x * {k}"
FORMS = {
    "nested ranges": (nested("for i{k} in range(3):\n    if x.max() > 50 - {k}:\n        break"), 6),
    "guard clauses": (guard_clauses, 12),
    "nested returns": (nested("if x.sum() > {k}:", "if x.max() > 9:\n    return x * 100", RETURN_AFTER), 12),
    "nested ifs": (nested("if x.sum() > {k}:", "x = x * 2", "else:\n    x = x - {k} - 1"), 12),
    "nested whiles": (nested("i{k} = 0\nwhile i{k} < 2 + 0 * x.sum():\n    i{k} = i{k} + 1"), 6),
    "nested breaks": (
        nested("while x.sum() < 10 * {left}:\n    if x.max() > 50:\n        break\n    x = x + 1"),
        6,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_source_grows_linearly(form: str) -> None:
    make, deepest = FORMS[form]
    depths = range(2, deepest + 1)
    words = [len(to_static(written(make(depth))).code.split()) for depth in depths]
    steps = [after - before for before, after in itertools.pairwise(words)]
    assert max(steps) <= 2 * steps[0], (words, steps)


@pytest.mark.parametrize("form", FORMS)
def test_the_innermost_body_is_traced_a_few_times(form: str) -> None:
    make, deepest = FORMS[form]
    for depth in (2, min(deepest, 5)):
        TICKS[0] = itertools.count()
        f = to_static(written(make(depth)), backend="reference")
        f(app.to_tensor(np.ones(2, "float32")))
        assert 0 < next(TICKS[0]) <= 2 * depth + 2


@pytest.mark.parametrize("form", FORMS)
def test_deep_functions_give_what_they_give_eagerly(form: str) -> None:
    function = written(FORMS[form][0](3))
    traced = to_static(function, backend="reference")
    for start in (-3.0, 0.4, 5.0, 30.0):
        found = []
        for run in (function, traced):
            x = app.to_tensor([start, start / 2], stop_gradient=False)
            y = run(x)
            y.sum().backward()
            found.append((y.numpy(), x.grad.numpy()))
        np.testing.assert_allclose(found[1], found[0], err_msg=f"from {start}")
