"""`check --exhaustive`: an elementwise operator of one input at every number that a type has.

Results and gradients at the 2 ** 32 numbers of float32 are compared with those in float64. So are those at all numbers
of float16 and bfloat16, which are computed in float32 and rounded. A certificate says how accurate they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timezone
from threading import Event, Lock
from typing import Any

import msgspec
import numpy as np

from app import __version__, machine, static
from app.checking.examples import inputs_for
from app.checking.finding import equivalent
from app.checking.findings import one_of
from app.checking.subject import Subject
from app.checking.verdict import FAILED, NOTE, OK, Verdict
from app.custom.foreign import parts_of
from app.engine import Executor
from app.engine.compiled.fingerprint import full_fingerprint
from app.errors import AppError, ConfigError
from app.graph.scope import Scope
from app.listed import as_list

Compute = Callable[[np.ndarray], list[np.ndarray]]
"""Returns the results, and the gradients if there are any, for an array of numbers."""
BLOCK, WIDTH = 1 << 15, 1 << 10
"""How many numbers are computed at once, and how many in a row: the compiled engine vectorises along rows. With larger
blocks, the system clears new memory for each of them, which takes as long as computing."""


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

    def at(self, start: int, stop: int) -> np.ndarray:
        """The numbers with these bits, as float32."""
        bits = np.arange(start, stop, dtype=np.uint32)
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


class Inaccuracy(msgspec.Struct, frozen=True):
    """The inputs at which results are inaccurate in one way."""

    count: int
    """How many there are."""
    low: float
    high: float
    worst_at: float
    exact: float
    """The exact result there."""
    actual: float


class Accuracy(msgspec.Struct, frozen=True):
    """How accurate the results, or the gradients, are over all numbers of a type."""

    of: str
    """ "result" or "gradient"."""
    type: str
    inputs: int
    worst_ulp: float
    """The largest error in units in the last place at a normal number."""
    worst_at: float
    inaccurate: dict[str, Inaccuracy]
    """By kind: the names in `ulp.KINDS`."""

    @property
    def verdict(self) -> Verdict:
        """The accuracy in words. It fails for NaN in the wrong places, and for results without a correct digit."""
        wrong = [self.inaccurate[kind] for kind in ("nan lost", "nan", "wrong") if kind in self.inaccurate]
        if wrong:
            most = max(wrong, key=lambda one: one.count)
            text = (
                f"{self.type}: it is wrong at {most.count:,} of {self.inputs:,} inputs, between {most.low:.9g} and "
                f"{most.high:.9g}; at {most.worst_at:.9g} it is {most.actual:.9g}, expected {most.exact:.9g}"
            )
            return Verdict(FAILED, text, self.of)
        text = f"{self.type}: at most {self.worst_ulp:.3g} ULP from exact at all {self.inputs:,} inputs"
        if far := self.inaccurate.get("far"):
            text += f", more than 16 at {far.count:,} of them, the most at {self.worst_at:.9g}"
        if lost := self.inaccurate.get("flushed"):
            text += f"; {lost.count:,} subnormal numbers are lost, between {lost.low:.6g} and {lost.high:.6g}"
        if back := self.inaccurate.get("steps back"):
            text += f"; it steps back where it should rise or fall at {back.count:,}"
        return Verdict(NOTE if far else OK, text, self.of)


class Certificate(msgspec.Struct, frozen=True):
    """The accuracy of an operator at every number, and what is needed to compute it again."""

    operator: str
    settings: dict[str, Any]
    message: str
    """The outcome in a few words, for a badge."""
    source: str
    """The hash of the operator's source."""
    against: str
    accuracies: list[Accuracy]
    seconds: float
    date: str
    machine: dict[str, str]
    opsmith: str
    """The version of this package."""

    @property
    def verdicts(self) -> list[Verdict]:
        """One for each type, for results and for gradients."""
        return [accuracy.verdict for accuracy in self.accuracies]

    @property
    def ok(self) -> bool:
        """Whether none failed."""
        return not any(verdict.failed for verdict in self.verdicts)

    def as_json(self) -> bytes:
        """The certificate as a JSON file has it; numbers that JSON does not have are null."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    def __str__(self) -> str:
        lines = [f"  {v.state:6}  {v.check:13}  {v.words}" for v in self.verdicts]
        return "\n".join([f"{self.operator} at every number, against {self.against}: {self.message}", *lines])


def certify(
    operator: str | Callable[..., Any], *, like: str = "", types: Sequence[str] = tuple(TYPES), **settings: Any
) -> Certificate:
    """Compare an elementwise operator of one input, and its gradient, at every number with exact results.

    Exact is the same operator in float64, or `like`. float32, with 2 ** 32 numbers, takes one to two minutes.

    >>> opsmith.certify("custom.tanh", types=["float16"]).ok
    True

    Args:
        operator: A custom operator, or the name of one.
        like: An operator that computes the same, to be evaluated in float64 instead.
        types: Of float16, bfloat16 and float32; the first two are computed in float32 and rounded.
        **settings: Settings of the operator.
    """
    if unknown := [name for name in types if name not in TYPES]:
        raise ConfigError(f"there are no numbers of {unknown[0]!r} to try; types are {', '.join(TYPES)}")
    return certificate(inputs_for(one_of(operator), (), settings, like), types)


def certificate(subject: Subject, types: Sequence[str] = tuple(TYPES)) -> Certificate:
    """Compare an operator at every number of some types with exact results, with a progress bar on a terminal."""
    _refuse_others(subject)
    start = time.monotonic()
    other = equivalent(subject.like) if subject.like else None
    threads = range(machine.cores())
    exact = [_program(subject, "float64", other) for _ in threads]
    actual = [_program(subject, "float32") for _ in threads]
    accuracies = [accuracy for name in types for accuracy in _over_all(TYPES[name], actual, exact)]
    return Certificate(
        operator=subject.name,
        settings=subject.settings,
        message=_message(accuracies),
        source=full_fingerprint(*parts_of(subject.found.call)),
        against=f"{subject.like} in float64" if subject.like else "its evaluation in float64",
        accuracies=accuracies,
        seconds=round(time.monotonic() - start, 1),
        date=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        machine=machine.describe(),
        opsmith=__version__,
    )


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
    numbers = np.linspace(0.5, 1.5, 4 * WIDTH, dtype=np.float32)
    order = np.random.default_rng(0).permutation(numbers.size)
    try:
        compute = _program(subject, "float32")
        results, elsewhere = compute(numbers)[0], compute(numbers[order])[0]
    except AppError as error:
        raise ConfigError(f"every number is tried in a matrix, on which {subject.name} fails: {error}") from error
    if results.shape != numbers.shape or not np.array_equal(results[order], elsewhere, equal_nan=True):
        raise ConfigError(
            f"every number can be tried for an operator that treats each number by itself; a result of {subject.name} "
            "depends on other numbers, too"
        )


def _program(subject: Subject, dtype: str, other: Callable[..., Any] | None = None) -> Compute:
    """A compiled Program of the operator, or of another one, and its gradient."""
    with subject.in_program([[None, WIDTH]], dtype) as (program, data, outputs):
        results = as_list(other(*data)) if other else outputs
        gradients = static.gradients(results[:1], data) if subject.has_gradient else []
    executor, scope, name = Executor(engine="compiled"), Scope(), data[0].name
    fetched = [variable for variable in [results[0], *gradients] if variable is not None]

    def compute(numbers: np.ndarray) -> list[np.ndarray]:
        results = executor.run(program, {name: numbers.reshape(-1, WIDTH)}, fetched, scope=scope)
        return [result.ravel() for result in results]

    return compute


def _over_all(numbers: Numbers, actual: Sequence[Compute], exact: Sequence[Compute]) -> Iterator[Accuracy]:
    """The accuracy of results, and of gradients if there are any, at all numbers of a type."""
    from tqdm import tqdm  # imported late: nothing else of a check needs it

    from app.checking import ulp  # imported late: it needs Numba

    half, stop, counting = 1 << (numbers.bits - 1), Event(), Lock()
    blocks = iter([(sign, start) for sign in (0, half) for start in range(0, half, BLOCK)])
    bar = tqdm(total=2 * half, desc=numbers.name, unit="", unit_scale=True, leave=False, disable=None)

    def add_block(thread: int, records: list[np.ndarray], sign: int, start: int) -> None:
        end = min(start + BLOCK, half)
        first, last = max(start - WIDTH, 0), min(end + WIDTH, half)  # with their neighbours
        x = numbers.at(sign + first, sign + last)
        wide = x.astype(np.float64)
        for result, expected, record in zip(actual[thread](x), exact[thread](wide), records, strict=False):
            limits = (start - first, end - first, numbers.digits, numbers.smallest, numbers.end)
            ulp.compare(wide, numbers.rounded(result), expected, *limits, record)

    def add_blocks(thread: int) -> list[np.ndarray]:
        records = [ulp.empty_record() for _ in ("result", "gradient")]
        with np.errstate(all="ignore"):
            while not stop.is_set() and (block := next(blocks, None)):
                add_block(thread, records, *block)
                with counting:
                    bar.update(min(BLOCK, half))
        return records

    with bar, ThreadPoolExecutor(len(actual)) as pool:
        jobs = [pool.submit(add_blocks, thread) for thread in range(len(actual))]
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
