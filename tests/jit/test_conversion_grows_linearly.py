"""Converted source, and the work of tracing it, grow with the depth of a function's control flow, and no faster."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import app
from app.jit import to_static

TICKS = [itertools.count()]
"""Counts how often the innermost body is run; Python's own containers would be set back when a body is traced again."""


def written(folder: Path, lines: list[str]) -> Any:
    """The function `f` of a module with these lines."""
    path = folder / f"module_{abs(hash(tuple(lines)))}.py"
    path.write_text("\n".join(lines) + "\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__dict__["TICKS"] = TICKS[0]
    spec.loader.exec_module(module)
    return module.__dict__["f"]


def guard_clauses(depth: int) -> list[str]:
    body = [
        f"    if x.sum() > {100 - k}:\n        next(TICKS)\n        return x * {k}\n    x = x + 1" for k in range(depth)
    ]
    return ["def f(x):", *body, "    return x"]


def nested_returns(depth: int) -> list[str]:
    """An early return in each branch, after which control may reach the end of every branch around it."""
    lines = ["def f(x):"]
    for k in range(depth):
        lines.append(f"{'    ' * (k + 1)}if x.sum() > {k}:")
    inner = "    " * (depth + 1)
    lines += [f"{inner}next(TICKS)", f"{inner}if x.max() > 9:", f"{inner}    return x * 100"]
    for k in reversed(range(depth)):
        lines.append(f"{'    ' * (k + 2)}x = x + {k}")
        lines.append(f"{'    ' * (k + 2)}if x.max() > {k + 20}:")
        lines.append(f"{'    ' * (k + 3)}return x * {k}")
    return [*lines, "    return x"]


def nested_ifs(depth: int) -> list[str]:
    lines = ["def f(x):"]
    for k in range(depth):
        lines.append(f"{'    ' * (k + 1)}if x.sum() > {k}:")
    lines += [f"{'    ' * (depth + 1)}next(TICKS)", f"{'    ' * (depth + 1)}x = x * 2"]
    for k in reversed(range(depth)):
        lines += [f"{'    ' * (k + 1)}else:", f"{'    ' * (k + 2)}x = x - {k + 1}"]
    return [*lines, "    return x"]


def nested_whiles(depth: int) -> list[str]:
    lines = ["def f(x):"]
    for k in range(depth):
        pad = "    " * (k + 1)
        lines += [f"{pad}i{k} = 0", f"{pad}while i{k} < 2 + 0 * x.sum():", f"{pad}    i{k} = i{k} + 1"]
    lines += [f"{'    ' * (depth + 1)}next(TICKS)", f"{'    ' * (depth + 1)}x = x + 1"]
    return [*lines, "    return x"]


def nested_breaks(depth: int) -> list[str]:
    lines = ["def f(x):"]
    for k in range(depth):
        pad = "    " * (k + 1)
        lines += [
            f"{pad}while x.sum() < {10 * (depth - k)}:",
            f"{pad}    if x.max() > 50:",
            f"{pad}        break",
            f"{pad}    x = x + 1",
        ]
    lines += [f"{'    ' * (depth + 1)}next(TICKS)", f"{'    ' * (depth + 1)}x = x + 1"]
    return [*lines, "    return x"]


def nested_ranges(depth: int) -> list[str]:
    lines = ["def f(x):"]
    for k in range(depth):
        pad = "    " * (k + 1)
        lines += [f"{pad}for i{k} in range(3):", f"{pad}    if x.max() > {50 - k}:", f"{pad}        break"]
    lines += [f"{'    ' * (depth + 1)}next(TICKS)", f"{'    ' * (depth + 1)}x = x + 1"]
    return [*lines, "    return x"]


FORMS = {
    "nested ranges": (nested_ranges, 6),
    "guard clauses": (guard_clauses, 12),
    "nested returns": (nested_returns, 12),
    "nested ifs": (nested_ifs, 12),
    "nested whiles": (nested_whiles, 6),
    "nested breaks": (nested_breaks, 6),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_source_grows_linearly(form: str, tmp_path: Path) -> None:
    make, deepest = FORMS[form]
    depths = range(2, deepest + 1)
    words = [len(to_static(written(tmp_path, make(depth))).code.split()) for depth in depths]
    steps = [after - before for before, after in itertools.pairwise(words)]
    assert max(steps) <= 2 * steps[0], (words, steps)


@pytest.mark.parametrize("form", FORMS)
def test_the_innermost_body_is_traced_a_few_times(form: str, tmp_path: Path) -> None:
    make, deepest = FORMS[form]
    for depth in (2, min(deepest, 5)):
        TICKS[0] = itertools.count()
        f = to_static(written(tmp_path, make(depth)), backend="reference")
        f(app.to_tensor(np.ones(2, "float32")))
        assert 0 < next(TICKS[0]) <= 2 * depth + 2


@pytest.mark.parametrize("form", FORMS)
def test_deep_functions_give_what_they_give_eagerly(form: str, tmp_path: Path) -> None:
    function = written(tmp_path, FORMS[form][0](3))
    traced = to_static(function, backend="reference")
    for start in (-3.0, 0.4, 5.0, 30.0):
        found = []
        for run in (function, traced):
            x = app.to_tensor([start, start / 2], stop_gradient=False)
            y = run(x)
            y.sum().backward()
            found.append((y.numpy(), x.grad.numpy()))
        np.testing.assert_allclose(found[1], found[0], err_msg=f"from {start}")
