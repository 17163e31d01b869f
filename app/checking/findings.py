"""`opsmith.check`: what the checks find about one operator, as a list."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import index
from typing import Any

from app.checking.checks import check_names
from app.checking.examination import Question, examination, refusal
from app.checking.operators import UserOperator, find, user_operator
from app.checking.verdict import FAILED, NOTE, OK, Verdict
from app.custom.foreign import operator_of_framework
from app.display import Displayed
from app.errors import AppError, ConfigError
from app.printing import PLAIN, RED, escaped, in_colour

COLOURS = {OK: "\x1b[32m", NOTE: "\x1b[33m", FAILED: RED}
"""The terminal colour of each state."""
_SIZES = re.compile(r"\[[\d, ]*\]")


class Findings(list[Verdict], Displayed):
    """The results of an operator's checks, in order; printed in colour on a terminal."""

    def __init__(self, operator: str, verdicts: Sequence[Verdict] = ()):
        super().__init__(verdicts)
        self.operator = operator
        """The user's name of the operator, and its hook."""
        self.inputs = ""
        """What it was checked on, if inputs were found."""

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return not self.failed

    @property
    def failed(self) -> list[Verdict]:
        """The checks that failed."""
        return [verdict for verdict in self if verdict.failed]

    @property
    def reasons(self) -> list[list[Verdict]]:
        """The failures, those of one reason together, perhaps with other sizes, and notes about the same error."""
        by_reason: dict[str, list[Verdict]] = {}
        for verdict in self:
            message = _SIZES.sub("", verdict.words)
            key = next(
                (reason for reason in by_reason if reason in message or (verdict.failed and message in reason)), message
            )
            if verdict.failed or key in by_reason:
                by_reason.setdefault(key, []).append(verdict)
        return list(by_reason.values())

    @property
    def shown(self) -> list[Verdict]:
        """The verdicts to show: all, but each reason for failures only once."""
        again = [verdict for _, *others in self.reasons for verdict in others]
        return [verdict for verdict in self if not any(verdict is one for one in again)]

    @property
    def summary(self) -> str:
        """What failed, for each reason, and how many checks passed."""
        reasons = []
        for first, *others in self.reasons:
            same = f" (and for the same reason {', '.join(v.check for v in others)})" if others else ""
            reasons.append(first.check + same)
        notes = sum(verdict.state == NOTE for verdict in self.shown)
        text = f"{len(reasons)} FAILED: {', '.join(reasons)}; " if reasons else ""
        text += f"{sum(verdict.state == OK for verdict in self)} passed"
        return text + (f", {notes} note{'s' if notes > 1 else ''}" if notes else "")

    def __str__(self) -> str:
        lines = [f"  {painted(v.state)}  {escaped(f'{v.check:13}  {v.words}')}" for v in self.shown]
        return "\n".join([self.operator, *lines, f"  {self.summary}"])

    __repr__ = __str__


def painted(state: str) -> str:
    """A state as it begins a line, in colour on a terminal."""
    return f"{COLOURS[state]}{state:6}{PLAIN}" if in_colour(sys.stdout) else f"{state:6}"


def check(
    operator: str | Callable[..., Any],
    *,
    like: str | Callable[..., Any] = "",
    shapes: Sequence[Sequence[int]] = (),
    within: tuple[float, float] | None = None,
    only: Collection[str] = (),
    **settings: Any,
) -> Findings:
    """Examine an operator: its gradient, shapes, behaviour and how it is compiled. Errors are findings; see `.ok`.

    >>> opsmith.check("custom.relu").ok
    True

    Args:
        operator: A custom operator, or the name of one.
        like: An operator that should compute the same.
        shapes: A shape for each input; by default found by trying.
        within: The range from which inputs are drawn.
        only: The names of the checks to run; by default all.
        **settings: Settings of the operator.
    """
    label = str(operator)
    try:
        one = one_of(operator)
        label = one.label
        return findings_of(one, question_of(shapes, settings, like, within, only))
    except AppError as error:
        return Findings(label, [refusal(error)])


def question_of(
    shapes: Sequence[Sequence[int]],
    settings: dict[str, Any],
    like: str | Callable[..., Any],
    within: tuple[float, float] | None,
    only: Collection[str],
    also: Collection[str] = (),
    **more: Any,
) -> Question:
    """The question that arguments of Python ask."""
    only, also = _names_in(only), _names_in(also)
    sizes = [(_sizes_of(shape), "float64") for shape in (shapes if isinstance(shapes, Iterable) else [shapes])]
    if not (isinstance(like, str) or callable(like)):
        raise ConfigError(f"like is {like!r}: expected an operator or the name of one, such as like='silu'")
    name, other = (like, None) if isinstance(like, str) else (name_of(like), like)
    return Question(sizes, settings, name, other, None if within is None else _range_of(within), only, also, **more)


def findings_of(one: UserOperator, question: Question) -> Findings:
    """What the checks find about an operator, and on which inputs."""
    findings = Findings(one.label)
    for part in examination(one, question):
        if isinstance(part, Verdict):
            findings.append(part)
        else:
            findings.inputs = part
    return findings


def _names_in(names: Any) -> Collection[str]:
    names = [*names] if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    check_names(names)
    return names


def _sizes_of(shape: Any) -> tuple[int, ...]:
    try:
        return tuple(map(index, shape))
    except TypeError as error:
        raise ConfigError(f"a shape is {shape!r}: expected one for each input, such as shapes=[(4, 6)]") from error


def _range_of(within: Any) -> tuple[float, float]:
    try:
        low, high = within
        return float(low), float(high)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"within is {within!r}: expected two numbers, such as within=(0, 1)") from error


def one_of(operator: str | Callable[..., Any]) -> UserOperator:
    """The operator that is given, or the only one that a name stands for."""
    if not isinstance(operator, str):
        return user_operator(operator, name_of(operator))
    operators = find(operator)
    if len(operators) > 1:
        names = ", ".join(one.name for one in operators)
        raise ConfigError(f"{operator} has {len(operators)} operators; name one of them: {operator}:NAME, of {names}")
    return operators[0]


def name_of(operator: Any) -> str:
    """Return a name for an operator object."""
    other = operator_of_framework(operator)
    if other is not None:
        return str(other.foreign.name)
    return str(getattr(operator, "name", None) or getattr(operator, "__name__", None) or "operator")
