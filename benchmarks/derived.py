"""Derived gradients of functions on arrays: right, and how fast beside those written by hand. For docs/derived.md.

python -m benchmarks.derived [KERNEL ...] (some ten minutes for all of tests/derivative/kernels)
"""

from __future__ import annotations

import argparse
import ast
import inspect
import statistics
import sys
import textwrap
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from app.derivative.arrays import derive
from app.errors import AppError
from benchmarks import machine, report
from benchmarks.process import ROOT

sys.path.append(str(ROOT / "tests"))
from derivative.array_slopes import (
    central_differences,
    gradient_arguments,
    is_float_array,
    largest_difference,
    listed,
    weights_for,
)
from derivative.kernels import KERNELS, Kernel, compiled

PAGE = ROOT / "docs" / "derived.md"
NEAR = 1e-5
SECONDS = 0.5
"""How long each pair is timed."""


@dataclass
class Row:
    """What was found of one kernel."""

    name: str
    first: bool = False
    second: bool | None = None
    """None: refused."""
    problem: str = ""
    lines: int = 0
    by_forward: float = 0.0
    by_hand: float = 0.0
    memory: int = 0
    memory_by_hand: int | None = None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.derived", description=__doc__)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="some of them; then nothing is written")
    names = parser.parse_args().kernels
    rows = []
    for name in names or KERNELS:
        rows.append(measured(name, KERNELS[name]))
        print(_line(rows[-1]), flush=True)
    print("\n" + _summary(rows))
    if not names:
        about = report.machine_text(machine.describe(), sample=False)
        texts = {"machine": about, "summary": _summary(rows), "kernels": _table(rows)}
        for name, text in texts.items():
            if report.replace_between(PAGE, f"derived: {name}", text):
                print(f"Written: {name}, in {PAGE.relative_to(ROOT)}")
    return 0


def measured(name: str, kernel: Kernel) -> Row:
    row = Row(name)
    try:
        derived, values = _checked(row, kernel)
    except AppError as error:
        row.problem = str(error)
        return row
    row.lines = len(derived.source.splitlines())
    row.second = _second(derived, values)
    _time(row, kernel, derived)
    return row


def _checked(row: Row, kernel: Kernel) -> tuple[Any, list[Any]]:
    derived = kernel.derived
    values = kernel.arguments_of(derived.function)
    row.first = largest_difference(derived.function(*values), kernel.slopes) < NEAR
    return derived, values


def _second(derived: Any, values: Sequence[Any]) -> bool | None:
    try:
        second = derive(derived.function, *values)
    except AppError:
        return None
    weights = weights_for(derived.function, values, seed=1)
    gradients = second.function(*gradient_arguments(second.function, derived.function, values, weights))
    return largest_difference(gradients, central_differences(derived.function, values, weights)) < NEAR


def _time(row: Row, kernel: Kernel, derived: Any) -> None:
    """The times in float32, as networks have it, and the memory beside the gradients."""
    arguments = [a.astype("float32") if is_float_array(a) else a for a in kernel.large()]
    results = listed(kernel.compiled(*arguments))
    weights = [np.ones_like(y) for y in results]
    values = gradient_arguments(derived.function, kernel.function, arguments, weights)
    gradient = compiled(derived.function)
    row.by_forward = _ratio(lambda: gradient(*values), lambda: kernel.compiled(*arguments))
    row.memory = _memory(derived.function, values)
    if kernel.by_hand is not None:
        by_hand = compiled(kernel.by_hand)
        given = gradient_arguments(kernel.by_hand, kernel.function, arguments, weights)
        row.by_hand = _ratio(lambda: gradient(*values), lambda: by_hand(*given))
        row.memory_by_hand = _memory(kernel.by_hand, given)


def _ratio(one: Callable[[], Any], other: Callable[[], Any]) -> float:
    """The ratio of the shortest times of two functions, called in turn: other processes only add to a time."""
    one(), other()
    times: list[tuple[float, float]] = []
    start = time.perf_counter()
    while time.perf_counter() - start < SECONDS or len(times) < 15:
        first = time.perf_counter()
        one()
        second = time.perf_counter()
        other()
        times.append((second - first, time.perf_counter() - second))
    return min(t for t, _ in times) / min(t for _, t in times)


def _memory(function: Callable[..., Any], values: Sequence[Any]) -> int:
    """The bytes of the arrays that a function makes, at the highest, apart from those of what it returns."""
    numpy = _Counting()
    results = FunctionType(function.__code__, {**function.__globals__, "np": numpy}, None, function.__defaults__)(
        *values
    )
    return max(0, numpy.most - sum(g.nbytes for g in listed(results)))


class _Counting:
    """NumPy, whose arrays are counted as long as they live."""

    def __init__(self) -> None:
        self._bytes = self.most = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        return partial(self._made, found) if name in ("copy", "empty", "full", "ones", "zeros", *_LIKE) else found

    def _made(self, make: Callable[..., np.ndarray], *arguments: Any) -> np.ndarray:
        array = make(*arguments)
        self._bytes += array.nbytes
        self.most = max(self.most, self._bytes)
        weakref.finalize(array, self._gone, array.nbytes)
        return array

    def _gone(self, size: int) -> None:
        self._bytes -= size


_LIKE = ("empty_like", "full_like", "ones_like", "zeros_like")


def _line(row: Row) -> str:
    if row.problem:
        return f"{row.name:20} refused: {row.problem}"
    words = f"{row.name:20} first {_word(row.first):8} second {_word(row.second):8} {row.lines:4} lines"
    words += f"  {row.by_forward:6.2f} x forward  {row.memory:9,} bytes"
    by_hand = (
        "" if row.memory_by_hand is None else f"  {row.by_hand:5.2f} x by hand, which takes {row.memory_by_hand:,}"
    )
    return words + by_hand


def _word(right: bool | None) -> str:
    return "refused" if right is None else "right" if right else "WRONG"


def _summary(rows: Sequence[Row]) -> str:
    derived = [row for row in rows if not row.problem]
    first, second = sum(row.first for row in derived), sum(row.second is True for row in derived)
    ratios = [row.by_hand for row in derived if row.memory_by_hand is not None]
    wrong = sum(not row.first for row in derived) + sum(row.second is False for row in derived)
    words = f"Of {len(rows)} kernels, {len(derived)} are derived: {first} right, {second} also to second order, "
    words += f"{wrong} wrong."
    if not ratios:
        return words
    return (
        f"{words} Of {len(ratios)} with a backward written by hand, the derived one takes "
        f"{statistics.median(ratios):.2f} times as long in the median, and {max(ratios):.2f} times in the worst case."
    )


def _table(rows: Sequence[Row]) -> str:
    lines = [
        "| Kernel | First | Second | Time over by hand | Time over forward | Memory, KiB | By hand | Lines | By hand |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        if row.problem:
            lines.append(f"| `{row.name}` | refused | | | | | | | |")
            continue
        hand = row.memory_by_hand is not None
        cells = [_word(row.first), _word(row.second), f"{row.by_hand:.2f}" if hand else "", f"{row.by_forward:.2f}"]
        cells += [_kib(row.memory), _kib(row.memory_by_hand) if hand else "", str(row.lines)]
        cells += [str(_lines_of(KERNELS[row.name].by_hand)) if hand else ""]
        lines.append(f"| `{row.name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _kib(size: int | None) -> str:
    return f"{(size or 0) / 1024:,.0f}"


def _lines_of(function: Any) -> int:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return len(ast.unparse(tree.body[0]).splitlines()) - 1  # without the decorator


if __name__ == "__main__":
    sys.exit(main())
