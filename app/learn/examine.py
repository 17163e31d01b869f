"""Examining a learner's file: what it computes on inputs that it does not show, then the checks of `opsmith check`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from app.checking.checks import examine
from app.checking.examples import inputs_for
from app.checking.operators import UserOperator, find
from app.checking.subject import Subject
from app.checking.verdict import FAILED, OK, Verdict
from app.errors import AppError
from app.learn.exercises import Exercise
from app.listed import as_list
from app.ops.definition import REGISTRY

_WAYS = "custom_op, autograd.PyLayer or autograd.Function"


def examined(exercise: Exercise, path: Path) -> Verdict:
    """The first failure of a learner's file; what it solved if there is none."""
    try:
        return next(_failures(exercise, path), Verdict(OK, f"{exercise.operator} is right", "solved"))
    except AppError as error:
        return Verdict(FAILED, str(error), "runs")


def _failures(exercise: Exercise, path: Path) -> Iterator[Verdict]:
    [operator] = find(f"{path}:{exercise.operator}")
    yield from _borrowed(exercise, path)
    for settings in exercise.settings:
        for shapes in exercise.shapes:
            inputs = [(shape, "float64") for shape in shapes]
            subject = inputs_for(operator, inputs, settings)
            for factor in exercise.numbers:
                yield from _differences(exercise, subject, factor)
            if exercise.slope:
                yield from _other_slope(exercise, subject)
        yield from _checked(exercise, operator, settings)


def _borrowed(exercise: Exercise, path: Path) -> Iterator[Verdict]:
    """A built-in operator where the learner should write one."""
    tree = ast.parse(path.read_bytes(), str(path))
    homes: dict[str, str] = {}  # what names of the file stand for, as in `from opsmith import softmax as s`
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            homes |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            homes |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    named = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Name)):
            first, dot, rest = ast.unparse(node).partition(".")
            named.append((node.lineno, homes.get(first, first) + dot + rest))
    names = {name for _, name in named} | {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    if not exercise.derived and not any(name.endswith("backward") for name in names):
        yield Verdict(FAILED, "it has no backward of its own: write it, that is the exercise", "your own")
    for line, name in named:
        if not name.startswith("opsmith."):
            continue
        last = name.rpartition(".")[2]
        if (last in REGISTRY and last not in exercise.may_use) or ".nn." in name:
            message = f"line {line} uses {name}, which is built in: write it yourself, with {_WAYS}"
            yield Verdict(FAILED, message, "your own")


def _differences(exercise: Exercise, subject: Subject, factor: float) -> Iterator[Verdict]:
    arrays = [array * factor for array in subject.arrays(seed=7)]
    with np.errstate(all="ignore"):
        expected = as_list(exercise.expected(*arrays, **subject.settings))
        actual = subject.outputs([array.copy() for array in arrays])
    if len(actual) != len(expected):
        yield Verdict(FAILED, f"it returns {len(actual)} results, expected {len(expected)}", "result")
    for result, right in zip(actual, expected, strict=False):
        yield from _compared(subject, arrays, result, right, "result")


def _other_slope(exercise: Exercise, subject: Subject) -> Iterator[Verdict]:
    assert exercise.slope is not None
    arrays = subject.arrays(seed=7)
    result = subject.run(arrays, [np.ones_like(o) for o in subject.outputs(arrays)])
    yield from _compared(subject, arrays, result.gradients[0], exercise.slope(*arrays), "gradient")


def _compared(subject: Subject, arrays: Any, actual: Any, expected: Any, what: str) -> Iterator[Verdict]:
    """A failure that names the worst element."""
    arguments = ", ".join(f"{i.name} {a.dtype}{list(a.shape)}" for i, a in zip(subject.inputs, arrays, strict=True))
    if subject.settings:
        arguments += f", {', '.join(f'{k}={v}' for k, v in subject.settings.items())}"
    if actual is None or np.shape(actual) != np.shape(expected):
        shape = "none" if actual is None else list(actual.shape)
        yield Verdict(FAILED, f"for {arguments} its shape is {shape}, expected {list(np.shape(expected))}", what)
        return
    wrong = ~np.isclose(actual, expected, rtol=1e-6, atol=1e-9, equal_nan=True)
    if not wrong.any():
        return
    with np.errstate(all="ignore"):
        error = np.where(wrong, np.nan_to_num(abs(actual - expected), nan=np.inf), -1)
    place = np.unravel_index(int(np.argmax(error)), wrong.shape)
    at = f"[{', '.join(map(str, place))}]"
    message = (
        f"for {arguments} it is wrong in {wrong.sum()} of {wrong.size} elements; at {at} it is {actual[place]:.6g}"
    )
    largest = max(float(abs(array).max()) for array in arrays)
    if largest > 10:
        message += f" (inputs are as large as {largest:.4g})"
    yield Verdict(FAILED, f"{message}, expected {expected[place]:.6g}", what)


def _checked(exercise: Exercise, operator: UserOperator, settings: dict[str, Any]) -> Iterator[Verdict]:
    inputs = [(shape, "float64") for shape in exercise.shapes[0]]
    for verdict in examine(inputs_for(operator, inputs, settings), exercise.only):
        slow = verdict.check == "inlined" and (
            (exercise.native == "inlined" and verdict.state != OK)
            or (exercise.native == "compiled" and "Python call" in verdict.words)
        )
        if verdict.failed or slow:
            yield Verdict(FAILED, verdict.words, verdict.check)
