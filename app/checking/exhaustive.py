"""`check --exhaustive`: an elementwise operator of one input at every number that a type has.

Results and gradients at the 2 ** 32 numbers of float32 are compared with those in float64. So are those at all numbers
of float16 and bfloat16, which are computed in float32 and rounded. A certificate says how accurate they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from threading import Event, Lock
from typing import Any

import numpy as np

from app import machine, static
from app.checking.certificate import Accuracy, Certificate, Inaccuracy, keep, source_of
from app.checking.examination import (
    Inputs,
    Part,
    Question,
    failed_in,
    in_process_of_its_own,
    refusal,
    subject_of,
)
from app.checking.examples import inputs_for
from app.checking.findings import one_of
from app.checking.operators import UserOperator, equivalent
from app.checking.processes import End
from app.checking.subject import FLOAT32, Subject
from app.engine import Executor
from app.errors import AppError, ConfigError
from app.graph.scope import Scope
from app.version import __version__

ROWS, WIDTH = 1 << 5, 1 << 10
"""The shape of the numbers that are computed at once: the compiled engine vectorises along rows, and a core's own cache
holds the numbers and all that is computed from them."""
WINDOW = ROWS * WIDTH


@dataclass(frozen=True)
class Numbers:
    """All numbers of a type, in the order of their bits."""

    name: str
    bits: int
    digits: int
    """The binary digits after the first."""
    smallest: int
    """The exponent of the smallest normal number."""
    end: float
    """Twice the largest power of 2."""

    def at(self, start: int, count: int) -> np.ndarray:
        """The numbers whose bits begin with `start`, as float32."""
        bits = np.arange(start, start + count, dtype=np.uint32)
        if self.name == "float16":
            return bits.astype(np.uint16).view(np.float16).astype(np.float32)
        return (bits << np.uint32(32 - self.bits)).view(np.float32)

    def rounded(self, results: np.ndarray) -> np.ndarray:
        """Results in float32, rounded to the type."""
        if self.name == "float16":
            return results.astype(np.float16).astype(np.float32)
        if self.name == "bfloat16":
            bits = np.ascontiguousarray(results).view(np.uint32)
            half_up = (bits >> np.uint32(16)) & np.uint32(1)
            near = ((bits + np.uint32(0x7FFF) + half_up) & np.uint32(0xFFFF0000)).view(np.float32)
            return np.where(np.isnan(results), results, near)
        return results


TYPES = {
    one.name: one
    for one in (
        Numbers("float16", 16, 10, -14, 2.0**16),
        Numbers("bfloat16", 16, 7, -126, 2.0**128),
        Numbers("float32", 32, 23, -126, 2.0**128),
    )
}
"""The types by name, the quick ones first."""


def certify(
    operator: str | Callable[..., Any], *, like: str = "", types: Sequence[str] = tuple(TYPES), **settings: Any
) -> Certificate:
    """Compare an elementwise operator of one input, and its gradient, at every number with exact results.

    Exact is the same operator in float64, or `like`. float32, with 2 ** 32 numbers, takes half a minute
    to two minutes on two cores if the operator is inlined.

    >>> opsmith.certify("custom.tanh", types=["float16"]).ok
    True

    Args:
        operator: A custom operator, or the name of one.
        like: An operator that computes the same, to be evaluated in float64 instead.
        types: Of float16, bfloat16 and float32; the first two are computed in float32 and rounded.
        **settings: Settings of the operator.
    """
    types = [types] if isinstance(types, str) else types
    if not types or not set(types) <= set(TYPES):
        raise ConfigError(f"types is {types!r}: expected some of {', '.join(TYPES)}")
    return certificate(inputs_for(one_of(operator), (), settings, like), types)


def every_number(one: UserOperator, question: Question) -> Iterator[Part | Certificate]:
    """The inputs of an operator, and its certificate or why there is none. A ConfigError refuses the question.

    An operator of another framework is examined in a process of its own, which shows its progress.
    """
    for part in in_process_of_its_own(one, partial(_certified, one, question), None, is_silent=False):
        if not isinstance(part, End):
            yield part
        elif part.problem:
            yield failed_in("runs", part.problem)


def _certified(one: UserOperator, question: Question) -> Iterator[Part | Certificate]:
    try:
        subject = subject_of(one, question)
        yield Inputs(f"at every number of {', '.join(TYPES)}")
        yield certificate(subject)
    except ConfigError:
        raise
    except AppError as error:
        yield refusal(error)


def certificate(subject: Subject, types: Sequence[str] = tuple(TYPES)) -> Certificate:
    """Compare an operator at every number of some types with exact results, with a progress bar on a terminal."""
    _refuse_others(subject)
    start = time.monotonic()
    other = equivalent(subject.like) if subject.like else None
    if other is None and subject.precision is FLOAT32:
        raise _inexact(subject)
    programs = _Program(subject, "float32"), _Program(subject, "float64", other)
    _refuse_inexact(subject, programs[1])
    accuracies = [accuracy for name in types for accuracy in _over_all(TYPES[name], *programs)]
    result = Certificate(
        operator=subject.name,
        settings=subject.settings,
        message=_message(accuracies),
        source=source_of(subject.operator.call),
        against=f"{subject.like} in float64" if subject.like else "its evaluation in float64",
        accuracies=accuracies,
        seconds=round(time.monotonic() - start, 1),
        date=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        machine=machine.describe(),
        opsmith=__version__,
    )
    keep(result)
    return result


def _message(accuracies: Sequence[Accuracy]) -> str:
    if wrong := {accuracy.type: None for accuracy in accuracies if accuracy.verdict.failed}:
        return f"wrong in {', '.join(wrong)}"
    widest = accuracies[-1]
    return f"within {max(a.worst_ulp for a in accuracies if a.type == widest.type):.2g} ULP in {widest.type}"


def _refuse_others(subject: Subject) -> None:
    """Refuse an operator that has several inputs, or whose results depend on other numbers than their own."""
    if len(subject.inputs) != 1 or not subject.inputs[0].is_float:
        raise ConfigError(
            f"every number can be tried as the only input of an operator; {subject.name} takes "
            f"{', '.join(map(str, subject.inputs))}"
        )
    numbers = np.linspace(0.5, 1.5, WINDOW, dtype=np.float32)
    order = np.random.default_rng(0).permutation(WINDOW)
    among_others = numbers[order]
    among_others[::2] += 1
    try:
        evaluation = _Program(subject, "float32").evaluation()
        results, elsewhere = evaluation(numbers)[0].copy(), evaluation(among_others)[0]
    except AppError as error:
        raise ConfigError(f"every number is tried in a matrix, on which {subject.name} fails: {error}") from error
    if results.shape != numbers.shape or not np.array_equal(results[order][1::2], elsewhere[1::2], equal_nan=True):
        raise ConfigError(
            f"every number can be tried for an operator that treats each number by itself; a result of {subject.name} "
            "depends on other numbers, too"
        )


Evaluation = Callable[[np.ndarray], list[np.ndarray]]
"""Gives the results, and the gradients if there are any, at WINDOW numbers, in memory that the next call may reuse."""


def _refuse_inexact(subject: Subject, exact: _Program) -> None:
    """Refuse to take for exact what is computed in float32: then results do not change with the digits of float64."""
    x = np.random.default_rng(0).uniform(0.5, 1.5, WINDOW)
    near, evaluation = x.astype(np.float32).astype(float), exact.evaluation()
    results, rounded, others = (evaluation(numbers)[0].copy() for numbers in (x, near, near * 1.001))
    is_constant = np.count_nonzero(rounded != others) < WINDOW // 2  # between jumps, as floor is
    if results.dtype != np.float64 or (np.array_equal(results, rounded) and not is_constant):
        raise _inexact(subject)


def _inexact(subject: Subject) -> ConfigError:
    return ConfigError(
        f"{subject.like or subject.name} computes in float32 whatever it is given, so its results are not exact ones "
        "to compare with: give --like NAME, an operator that computes the same in float64, such as --like silu"
    )


class _Program:
    """A compiled Program of the operator, or of another one, and its gradient."""

    def __init__(self, subject: Subject, dtype: str, other: Callable[..., Any] | None = None):
        has_gradient = subject.has_gradient
        if other is not None:
            subject = replace(subject, operator=replace(subject.operator, call=other), settings={})
        with subject.in_program([[None, WIDTH]], dtype) as (self._program, data, outputs):
            gradients = static.gradients(outputs[:1], data) if has_gradient else []
        self._name, self._dtype = data[0].name, dtype
        self._fetched = [variable.name for variable in [outputs[0], *gradients] if variable is not None]

    def evaluation(self) -> Evaluation:
        """A function of its own for each thread."""
        numbers, scope = np.zeros((ROWS, WIDTH), self._dtype), Scope()
        calls, results = self._native(numbers, scope) or ([], [])
        executor = Executor(engine="compiled")

        def evaluate(values: np.ndarray) -> list[np.ndarray]:
            numbers[...] = values.reshape(numbers.shape)
            with suppress(Exception):  # the Executor repeats a call that fails, and says whose error it is
                if results and not any(call() for call in calls):
                    return results
            return [r.ravel() for r in executor.run(self._program, {self._name: numbers}, self._fetched, scope=scope)]

        return evaluate

    def _native(self, numbers: np.ndarray, scope: Scope) -> tuple[list[Callable[[], Any]], list[np.ndarray]] | None:
        """The native calls that compute the results, and where these are. None if that is not all that is needed.

        The Executor would take as long as they do: it makes memory for results, and looks at everything each time.
        """
        from numba.core import config  # imported late because Numba is slow to import

        from app.engine.compiled.program import CompiledProgram
        from app.engine.compiled.shapes import UnknownSizeError

        if config.DISABLE_JIT:  # type: ignore[attr-defined]
            return None
        try:
            native = CompiledProgram(self._program, self._fetched, whole=False)
        except UnknownSizeError:
            return None
        if any(step.in_python for step in native.lowered.steps):  # its results would stay what they are
            return None
        calls, values = native.calls({self._name: numbers}, scope)
        return calls, [values[name].reshape(-1) for name in self._fetched]


def _over_all(numbers: Numbers, actual: _Program, exact: _Program) -> Iterator[Accuracy]:
    """The accuracy of results, and of gradients if there are any, at all numbers of a type."""
    from tqdm import tqdm  # imported late: nothing else of a check needs it

    from app.checking import ulp  # imported late: it needs Numba

    half, step = 1 << (numbers.bits - 1), WINDOW - 2 * ulp.NEIGHBOURS
    starts, stop, counting = (
        iter([(sign, start) for sign in (0, half) for start in range(0, half, step)]),
        Event(),
        Lock(),
    )
    limits = numbers.digits, numbers.smallest, numbers.end
    bar = tqdm(total=2 * half, desc=numbers.name, unit="", unit_scale=True, leave=False, disable=None)

    def add_windows() -> list[np.ndarray]:
        records = [ulp.empty_record() for _ in ("result", "gradient")]
        evaluations = actual.evaluation(), exact.evaluation()
        wide = np.empty(WINDOW)
        with np.errstate(all="ignore"):
            while not stop.is_set() and (place := next(starts, None)):
                sign, start = place
                end, first = min(start + step, half), min(max(start - ulp.NEIGHBOURS, 0), half - WINDOW)
                x = numbers.at(sign + first, WINDOW)
                wide[...] = x
                pairs = zip(evaluations[0](x), evaluations[1](wide), records, strict=False)
                for result, expected, record in pairs:
                    ulp.compare(wide, numbers.rounded(result), expected, start - first, end - first, *limits, record)
                with counting:
                    bar.update(end - start)
        return records

    with bar, ThreadPoolExecutor(machine.cores()) as pool:
        jobs = [pool.submit(add_windows) for _ in range(machine.cores())]
        try:
            parts = [job.result() for job in jobs]
        finally:
            stop.set()  # after Ctrl-C, too
    for of, records in zip(("result", "gradient"), zip(*parts, strict=True), strict=True):
        *kinds, every = ulp.merged(list(records)).tolist()
        inaccurate = {
            kind: Inaccuracy(int(count), low, high, *worst)
            for kind, (count, low, high, _, *worst) in zip(ulp.KINDS, kinds, strict=False)
            if count
        }
        if every[ulp.COUNT]:
            yield Accuracy(of, numbers.name, 2 * half, every[ulp.WORST], every[ulp.WORST_AT], inaccurate)
