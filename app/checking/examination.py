"""An operator examined from its inputs to the last check; one of another framework in a process of its own.

Foreign code can end a process: a mistake in native code is then a finding, and not the end of the command.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import select
import signal
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Any, NamedTuple

import numpy as np

from app.bridge.example import with_example
from app.bridge.function import class_of
from app.checking.checks import examine
from app.checking.examples import inputs_for
from app.checking.finding import Found
from app.checking.subject import Input, Subject
from app.checking.verdict import FAILED, Verdict, failed
from app.custom.foreign import operator_of_framework
from app.errors import AppError, BoundsError, ConfigError, OperatorError, ReadOnlyError
from app.signals import die_with_parent, forked, kill_group

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


class Inputs(NamedTuple):
    """What an operator is checked on, before the verdicts."""

    words: str
    low: float
    high: float

    def __str__(self) -> str:
        return f"checked on {self.words} in [{self.low:g}, {self.high:g}]"


def inputs_of(subject: Subject) -> Inputs:
    return Inputs(", ".join(map(str, subject.inputs)), subject.low, subject.high)


Part = Inputs | Verdict


def examination(one: Found, question: Question) -> Iterator[Part]:
    """The inputs of an operator, and the verdicts on it as they are known. A ConfigError refuses the question."""
    if one.foreign is None or not hasattr(os, "fork") or not one.foreign.framework.can_fork():
        yield from _examined(one, question, "", lambda name: None)
    else:
        yield from _in_processes(one, question)


def refusal(error: AppError) -> Verdict:
    """Return the finding for an operator that cannot be examined because of an error."""
    check = next((name for kind, name in _REFUSED.items() if isinstance(error, kind)), "runs")
    return Verdict(FAILED, str(error), check)


def _examined(one: Found, question: Question, after: str, begin: Callable[[str], None]) -> Iterator[Part]:
    try:
        subject = subject_of(one, question)
    except ConfigError:
        raise
    except AppError as error:
        yield refusal(error)
        return
    if not after:
        yield inputs_of(subject)
    yield from examine(subject, question.only, question.also, after, begin)


def subject_of(one: Found, question: Question) -> Subject:
    """The operator with inputs: those of an example call, of the given shapes, or found by trying."""
    if question.example:
        subject = _of_example(one, question)
    else:
        subject = inputs_for(one, question.shapes, question.settings, question.like, question.within)
    reference = operator_of_framework(question.other)
    return replace(subject, other=question.other if reference is None else reference.apply, seed=question.seed)


def _of_example(one: Found, question: Question) -> Subject:
    if one.foreign is None:
        raise ConfigError(f"{one.name}: an example call is for operators of other frameworks; give shapes=[(4, 6)]")
    foreign, names, arrays = with_example(one.foreign, question.example, question.settings)
    given = zip(names, arrays, strict=True)
    inputs = tuple(Input(n, a.shape, "float64" if a.dtype.kind == "f" else a.dtype.name, a) for n, a in given)
    floats = [float(n) for a in arrays if a.dtype.kind == "f" and a.size for n in (a.min(), a.max())] or [0.0]
    call = replace(one, call=class_of(foreign).apply, parameters=foreign.parameters, foreign=foreign)
    like = question.like or one.like
    subject = Subject(call, inputs, min(floats), max(floats), like=like, is_fixed=True, is_bounded=True)
    subject, outputs = _in_its_precision(subject)
    if not all(np.isfinite(o).all() for o in outputs):
        raise OperatorError(
            "the example call gives NaN or infinity, which no gradient can be compared with: give another"
        )
    return subject


def _in_its_precision(subject: Subject) -> tuple[Subject, list[np.ndarray]]:
    """An operator on an example call, and its results: in float64, or in float32 if it computes in that only."""
    try:
        if not subject.computes_in_float32:
            return subject, subject.outputs(subject.arrays())
    except Exception as error:
        subject = subject.in_float32()
        try:
            return subject, subject.outputs(subject.arrays())
        except Exception:
            raise OperatorError(f"the example call raises {subject.reason(error)}") from error
    subject = subject.in_float32()
    return subject, subject.outputs(subject.arrays())


# In a process of its own


def _in_processes(one: Found, question: Question) -> Iterator[Part]:
    """Examine an operator in a forked process; if that ends, in another one from the next check on."""
    after = ""
    while True:
        begun = after
        for kind, *content in _messages(one, question, after):
            if kind == "begin":
                begun = content[0]
            elif kind == "inputs":
                yield Inputs(*content)
            elif kind == "verdict":
                yield Verdict(*content)
            elif kind == "refused":
                raise ConfigError(content[0])
            elif kind == "done":
                return
            else:
                yield failed_in(begun, content[0])
        if begun == after:  # it ended before any check
            return
        after = begun


def failed_in(check: str, words: str) -> Verdict:
    return replace(failed(words), check=check or "runs")


def _messages(one: Found, question: Question, after: str) -> Iterator[Any]:
    """What a forked process finds out, and how it ended if it did so too early."""
    reading, writing = os.pipe()
    parent = os.getpid()
    child = forked()
    if not child:
        try:
            _begin_child(parent)
            _send_all(one, question, after, os.fdopen(writing, "w", encoding="utf-8"))
        finally:
            os._exit(0)
    os.close(writing)
    try:
        words = yield from _received(reading)
    finally:
        os.close(reading)
        kill_group(child)
        status = os.waitpid(child, 0)[1]
    if words:
        how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"status {status >> 8}"
        yield "ended", words.format(how=how)


def _begin_child(parent: int) -> None:
    os.setpgid(0, 0)
    faulthandler.disable()  # a crash is reported by its signal
    gc.freeze()  # what is there already, a whole framework, is not searched for garbage
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for stream in (1, 2):  # native code prints warnings there
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def _send_all(one: Found, question: Question, after: str, pipe: IO[str]) -> None:
    def send(*message: Any) -> None:
        pipe.write(json.dumps(message) + "\n")
        pipe.flush()

    assert one.foreign is not None
    one.foreign.framework.after_fork()
    try:
        for part in _examined(one, question, after, lambda name: send("begin", name)):
            if isinstance(part, Inputs):
                send("inputs", *part)
            else:
                send("verdict", part.state, part.words, part.check)
    except ConfigError as error:
        send("refused", str(error))
    else:
        send("done")


def _received(reading: int) -> Generator[Any, None, str]:
    """The messages from a pipe; gives what to say if they end too early, and "" if they do not."""
    text = b""
    while True:
        if not select.select([reading], [], [], _PATIENCE)[0]:
            return f"it did not end within {_PATIENCE:g} seconds"
        piece = os.read(reading, 1 << 16)
        if not piece:
            return "it ends the process, with {how}"
        *lines, text = (text + piece).split(b"\n")
        for line in lines:
            message = json.loads(line)
            yield message
            if message[0] in ("done", "refused"):
                return ""
