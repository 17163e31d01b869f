"""An operator examined from its inputs to the last check; one of another framework in a process of its own.

Foreign code can end a process: a mistake in native code is then a finding, and not the end of the command.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from app.bridge.example import with_example
from app.bridge.function import class_of
from app.checking.checks import progress
from app.checking.examples import in_its_precision, inputs_for
from app.checking.operators import UserOperator
from app.checking.processes import End, values_of
from app.checking.subject import FLOAT32, Input, Precision, Subject
from app.checking.verdict import FAILED, Verdict, failed
from app.custom.foreign import operator_of_framework
from app.errors import AppError, BoundsError, ConfigError, OperatorError, ReadOnlyError

_PATIENCE = 600.0
"""Seconds after which an unfinished check is ended."""
_REFUSED: dict[type[AppError], str] = {ReadOnlyError: "untouched", BoundsError: "bounds"}
"""The checks whose failure means that an operator must not be run."""


@dataclass(frozen=True)
class Question:
    """What the user asks of an operator."""

    shapes: Sequence[tuple[tuple[int, ...], str]] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    like: str = ""
    other: Callable[..., Any] | None = None
    """The operator that should compute the same, if it is given and not named."""
    within: tuple[float, float] | None = None
    only: Collection[str] = ()
    also: Collection[str] = ()
    """The checks that an operator of another framework must not refuse."""
    example: Sequence[Any] = ()
    """The arguments of an example call."""
    seed: int = 0


class Inputs(str):
    """What an operator is checked on, in words, before the verdicts."""


def inputs_of(subject: Subject) -> Inputs:
    return Inputs(f"checked on {', '.join(map(str, subject.inputs))} in [{subject.low:g}, {subject.high:g}]")


Part = Inputs | Verdict


def examination(one: UserOperator, question: Question) -> Iterator[Part]:
    """The inputs of an operator, and the verdicts on it as they are known. A ConfigError refuses the question.

    If an operator of another framework ends its process, it is examined in another one from the next check on.
    """
    after = ""
    while True:
        check, problem = after, ""
        for part in in_process_of_its_own(one, partial(_examined, one, question, after), _PATIENCE):
            if isinstance(part, Part):
                yield part
            elif isinstance(part, End):
                problem = part.problem
            else:
                check = part
        if not problem:
            return
        yield failed_in(check, problem)
        if check == after:  # it ended before any check
            return
        after = check


def in_process_of_its_own(
    one: UserOperator, parts: Callable[[], Iterator[Any]], patience: float | None, is_silent: bool = True
) -> Iterator[Any]:
    """What is found about an operator; of one of another framework in a forked process, whose End is last."""
    foreign = one.foreign
    if foreign is None or not hasattr(os, "fork") or not foreign.framework.can_fork():
        yield from parts()
        return

    def work() -> Iterator[Any]:
        foreign.framework.after_fork()
        try:
            yield from parts()
        except ConfigError as error:
            yield error

    for value in values_of(work, patience, is_silent):
        if isinstance(value, ConfigError):
            raise value
        yield value


def failed_in(check: str, message: str) -> Verdict:
    return replace(failed(message), check=check or "runs")


def refusal(error: AppError) -> Verdict:
    """Return the finding for an operator that cannot be examined because of an error."""
    check = next((name for kind, name in _REFUSED.items() if isinstance(error, kind)), "runs")
    return Verdict(FAILED, str(error), check)


def _examined(one: UserOperator, question: Question, after: str) -> Iterator[Part | str]:
    """The inputs of an operator, and the verdicts of the checks that follow `after`, each with its name before it."""
    try:
        subject = subject_of(one, question)
    except ConfigError:
        raise
    except AppError as error:
        yield refusal(error)
        return
    if not after:
        yield inputs_of(subject)
    yield from progress(subject, question.only, question.also, after)


def subject_of(one: UserOperator, question: Question) -> Subject:
    """The operator with inputs: those of an example call, of the given shapes, or found by trying."""
    if question.example:
        subject = _of_example(one, question)
    else:
        subject = inputs_for(one, question.shapes, question.settings, question.like, question.within)
    reference = operator_of_framework(question.other)
    return replace(subject, other=question.other if reference is None else reference.apply, seed=question.seed)


def _of_example(one: UserOperator, question: Question) -> Subject:
    if one.foreign is None:
        raise ConfigError(f"{one.name}: an example call is for operators of other frameworks; give shapes=[(4, 6)]")
    foreign, names, arrays, needs = with_example(one.foreign, question.example, question.settings)
    named = zip(names, arrays, strict=True)
    inputs = tuple(Input(n, a.shape, "float64" if a.dtype.kind == "f" else a.dtype.name, a) for n, a in named)
    floats = [float(n) for a in arrays if a.dtype.kind == "f" and a.size for n in (a.min(), a.max())] or [0.0]
    call = replace(one, call=class_of(foreign).apply, parameters=foreign.parameters, foreign=foreign)
    like = question.like or one.like
    subject = Subject(call, inputs, min(floats), max(floats), like=like, is_fixed=True, is_bounded=True)
    return in_its_precision(one, partial(_run_once, subject, needs))


def _run_once(subject: Subject, needs: Sequence[bool], precision: Precision) -> Subject:
    """The operator on its example call in a type; an OperatorError says why it does not run there.

    Where some tensors of the call need a gradient, others that get none, such as a mask, are constants.
    """
    subject = subject.in_float32() if precision is FLOAT32 else subject
    try:
        outputs = subject.outputs(subject.arrays())
    except Exception as error:
        raise OperatorError(f"the example call raises {subject.reason(error)}") from error
    if not all(np.isfinite(o).all() for o in outputs):
        raise OperatorError(
            "the example call gives NaN or infinity, which no gradient can be compared with: give another"
        )
    if not any(needs) or not subject.has_gradient:
        return subject
    try:
        gradients = iter(subject.run(subject.arrays()).gradients)
    except Exception:  # a check reports it
        return subject
    without = [one.is_float and next(gradients) is None for one in subject.inputs]
    constant = [is_without and not needed for is_without, needed in zip(without, needs, strict=True)]
    inputs = tuple(one._replace(is_constant=c) for one, c in zip(subject.inputs, constant, strict=True))
    return replace(subject, inputs=inputs)
