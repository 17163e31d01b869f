"""Indices outside of arrays, which compiled code does not check: it reads or overwrites whatever lies there.

Numba functions run as Python in a forked process, and stay compiled in this one, where other threads may call them.
"""

from __future__ import annotations

import dis
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from inspect import getclosurevars
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any

import numpy as np

from app.checking.processes import End
from app.checking.subject import Arrays, Result, Subject
from app.checking.verdict import Verdict, failed, note, ok
from app.custom.numba_functions import interpreted
from app.custom.operator import CustomOperator
from app.errors import BoundsError
from app.functions import python_function


class BackwardBoundsError(BoundsError):
    """A backward function indexes outside of an array, on inputs on which forward runs."""


@dataclass
class _Run:
    """What a run as Python gives."""

    outside: str = ""
    """The message about an index outside of an array; '' if there was none."""
    backward: bool = False
    """Whether it was in the backward pass."""
    calls: int = 0
    """How many Numba functions ran as Python."""
    end: End = field(default_factory=End)
    """Why there was none."""
    result: Result | None = None
    """Its result, if asked for, and if a second run gives the same."""


def bounds(subject: Subject) -> Iterator[Verdict]:
    """Numba functions, run as Python on a few rows and on one, index inside their arrays, forward and backward."""
    run = _run_as_python(subject, more=True)
    if run is None:
        return
    if run.end.crashed:
        yield failed(f"run as Python, {run.end.problem}")
    elif run.end.problem:
        yield note(f"not checked: run as Python, {run.end.problem}")
    elif run.outside:
        yield failed(run.outside)
    elif run.calls:
        other = _differs_from_python(subject, run)
        yield (
            failed(
                f"compiled by Numba it gives another {other} than run as Python: an index may be outside of its array "
                "(negative ones are not checked in x.flat), or an element is not written"
            )
            if other
            else ok("both passes index inside their arrays")
        )


def _differs_from_python(subject: Subject, python: _Run) -> str:
    """What compiled code gives differently, if Python always gives the same; '' if nothing or if it raises."""
    try:
        return "" if python.result is None else python.result.far_from(subject.run(subject.arrays()), 1e-6)
    except Exception:  # another check reports it
        return ""


def index_outside(subject: Subject, arrays: Arrays | None = None) -> BoundsError | None:
    """The error for an index outside of an array, found by running an operator's functions as Python; None if none.

    Other errors are left to checks that run the compiled functions: some code that Numba compiles is not valid Python.
    """
    run = _run_as_python(subject, arrays)
    if run is not None and run.end.crashed:
        return BoundsError(f"run as Python, {run.end.problem}")
    if run is None or not run.outside:
        return None
    return (BackwardBoundsError if run.backward else BoundsError)(run.outside)


def _run_as_python(subject: Subject, arrays: Arrays | None = None, more: bool = False) -> _Run | None:
    """A run of an operator whose Numba functions run as Python, an empty one if they index nothing; None if there is no
    process for it. With `more` it is also run again, for its result, and on one row.

    Operators of other frameworks have none, and a framework that has threads cannot run in a forked process.
    """
    if subject.operator.foreign is not None:
        return None
    if _indexes_nothing(subject.operator.call):  # most functions on numbers, for which a process would take most time
        return _Run()
    if interpreted.on:  # in such a process already
        return _interpreted(subject, arrays, more)
    run = subject.operator.python_process.ask(_interpreted, subject, arrays, more)
    return _Run(end=run) if isinstance(run, End) else run


def _interpreted(subject: Subject, arrays: Arrays | None = None, more: bool = False) -> _Run:
    name, run, before = "forward", _Run(), interpreted.calls
    try:
        tensors = subject.tensors(subject.arrays() if arrays is None else arrays)
        outputs = subject.applied(tensors)
        name = "backward"
        subject.gradients(tensors, outputs)
        if more:
            first, second = (subject.run(subject.arrays()).copy() for _ in range(2))
            run.result = None if first.differs_from(second) else first
    except Exception as error:
        if interpreted.calls > before and _is_of_an_index(error):
            message = str(error).partition("\n")[0]
            run.outside = (
                f"{name} indexes outside of its arrays, given {', '.join(map(str, subject.inputs))}: {message}"
            )
            run.backward = name == "backward"
    run.calls = interpreted.calls - before
    if more and not run.outside and subject.inputs[0].shape:
        run.outside = _interpreted(subject.with_batch(1)).outside
    return run


def _indexes_nothing(operator: Any) -> bool:
    """Whether the functions of an operator get single numbers, and hold nothing that could be indexed."""
    if not (isinstance(operator, CustomOperator) and operator.elementwise):
        return False
    functions = [operator.function, operator.backward_function]
    return all(_is_arithmetic(function, set()) for function in functions if function is not None)


def _is_arithmetic(function: Any, seen: set[int]) -> bool:
    """Whether a function, and those that it calls, have no subscripts, and refer to numbers and functions alone."""
    function = python_function(function)
    if id(function) in seen:
        return True
    seen.add(id(function))
    if not isinstance(function, FunctionType):
        return False
    code = function.__code__
    if any("SUBSCR" in one.opname or "SLICE" in one.opname or "[" in one.argrepr for one in dis.get_instructions(code)):
        return False
    if any(isinstance(constant, (CodeType, tuple)) for constant in code.co_consts):
        return False
    try:
        variables = getclosurevars(function)
    except ValueError:  # a variable of a function around it has no value yet
        return False
    plain = (int, float, np.number, np.ufunc, BuiltinFunctionType)
    values = (*variables.nonlocals.values(), *variables.globals.values())
    return all(isinstance(v, plain) or v is math or v is np or _is_arithmetic(v, seen) for v in values)


def _is_of_an_index(error: BaseException | None) -> bool:
    """Whether an error is, or explains, that of an index outside of an array."""
    return error is not None and (isinstance(error, IndexError) or _is_of_an_index(error.__cause__))
