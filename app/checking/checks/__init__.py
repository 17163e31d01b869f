"""The checks, in the order in which they run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np

from app.checking.checks.behaviour import layout, repeatable, row_by_row, untouched
from app.checking.checks.bounds import bounds
from app.checking.checks.engines import engines, inlined
from app.checking.checks.foreign import alone, kept, shared
from app.checking.checks.gradient import gradient, linear, second
from app.checking.checks.likeness import like
from app.checking.checks.numbers import large, odd
from app.checking.checks.settings import settings
from app.checking.checks.shapes import axes, broadcasting, empty, shapes, types
from app.checking.processes import End
from app.checking.subject import OtherSizeError, Subject
from app.checking.verdict import FAILED, NOTE, Verdict, failed, note
from app.custom.numba_functions import interpreted
from app.custom.operator import CustomOperator
from app.errors import ConfigError

DERIVED = "derived"
"""The origin of operators of opsmith on single numbers whose gradient is derived."""
OURS, FRAMEWORKS = ("opsmith", DERIVED), ("torch", "jax", "paddle")
_NOT_DERIVED = ("opsmith", *FRAMEWORKS)


@dataclass(frozen=True)
class Check:
    """A check, and what it needs of an operator."""

    verdicts: Callable[[Subject], Iterable[Verdict]]
    origins: Collection[str] = (*OURS, *FRAMEWORKS)
    """For operators of which origin it runs. For others it holds by construction, or has no meaning."""
    has_gradient: bool = False
    """Whether it needs a gradient."""
    is_exact: bool = False
    """Whether it needs one that is not declared a surrogate."""
    repeats: str = ""
    """What it compares between runs, so that it must be the same each time: the "result", or also the "gradient"."""
    refusal: str = ""
    """How a note begins if an operator of another framework refuses it with an error; '' if it must not."""
    if_named: bool = False
    """Whether it takes seconds, and runs only if it is named."""
    as_python: bool = False
    """Whether Numba functions run as Python, since they would be compiled for this check alone."""
    nothing: str = "it does not apply to this operator"
    """What it says if it is named and finds nothing to check."""


def narrowed(subject: Subject) -> Iterator[Verdict]:
    """Why inputs are not drawn from the usual range, if they are not."""
    if subject.narrowed:
        yield note(f"{subject.narrowed}; checked on [{subject.low:g}, {subject.high:g}]")


def _of_framework(name: str) -> Callable[[Subject], Iterable[Verdict]]:
    """A check in the module of the operator's framework, which is imported when the check runs."""

    def check(subject: Subject) -> Iterable[Verdict]:
        module = import_module(f".of_{_origin_of(subject)}", __package__)
        verdicts: Iterable[Verdict] = getattr(module, name)(subject)
        return verdicts

    return check


_REFUSES = "it refuses this"
_TORCH, _JAX = ("torch",), ("jax",)

CHECKS: dict[str, Check] = {
    "bounds": Check(bounds, OURS),
    "range": Check(narrowed, nothing="inputs are drawn from the usual range"),
    "gradient": Check(gradient, repeats="result"),
    "proportional": Check(linear, _NOT_DERIVED, has_gradient=True, repeats="result"),
    "settings": Check(settings, has_gradient=True, is_exact=True, repeats="result", refusal=_REFUSES),
    "axes": Check(axes, has_gradient=True, is_exact=True, repeats="result", as_python=True),
    "second": Check(second, has_gradient=True, repeats="result", refusal=_REFUSES, as_python=True),
    "like": Check(
        like,
        repeats="gradient",
        refusal=_REFUSES,
        nothing="there is no operator to compare with: name one with `like`",
    ),
    "shapes": Check(shapes, OURS),
    "types": Check(types, repeats="gradient", refusal=_REFUSES),
    "broadcasting": Check(broadcasting, _NOT_DERIVED, repeats="gradient", refusal=_REFUSES, as_python=True),
    "empty batch": Check(empty, refusal=_REFUSES),
    "untouched": Check(untouched, _TORCH),
    "repeatable": Check(repeatable),
    "rows": Check(row_by_row, repeats="gradient", refusal=_REFUSES),
    "layout": Check(layout, ("opsmith", *_TORCH), repeats="gradient"),
    "nan and inf": Check(odd, repeats="gradient", refusal=_REFUSES),
    "large numbers": Check(large, refusal=_REFUSES),
    "engines": Check(engines, OURS, repeats="gradient"),
    "inlined": Check(inlined, OURS),
    "alone": Check(alone, FRAMEWORKS, has_gradient=True, repeats="gradient"),
    "kept": Check(kept, _TORCH, repeats="gradient"),
    "shared": Check(shared, _TORCH),
    "modes": Check(_of_framework("modes"), _TORCH, repeats="gradient"),
    "one output": Check(_of_framework("one_output"), _TORCH, repeats="gradient"),
    "saved": Check(_of_framework("saved"), _TORCH, has_gradient=True, repeats="gradient"),
    "primal": Check(_of_framework("primal"), _JAX, has_gradient=True),
    "jit": Check(_of_framework("jit"), _JAX, repeats="gradient", refusal="no jax.jit"),
    "forward": Check(
        _of_framework("forward_mode"),
        (*_TORCH, *_JAX),
        is_exact=True,
        repeats="gradient",
        refusal="no forward mode ({framework}.jvp)",
    ),
    "vmap": Check(_of_framework("vmap"), (*_TORCH, *_JAX), repeats="gradient", refusal="no {framework}.vmap"),
    "autocast": Check(_of_framework("autocast"), _TORCH, has_gradient=True, repeats="gradient"),
    "leak": Check(_of_framework("leak"), _TORCH),
    "fake": Check(_of_framework("fake"), _TORCH),
    "opcheck": Check(_of_framework("opcheck"), _TORCH),
    "compile": Check(_of_framework("compiled"), _TORCH, repeats="gradient", if_named=True),
}
"""The checks by name."""


def _origin_of(subject: Subject) -> str:
    if subject.operator.foreign is not None:
        return subject.operator.foreign.framework.name
    operator = subject.operator.call
    derived = isinstance(operator, CustomOperator) and operator.elementwise and not operator.backward_function
    return DERIVED if derived else "opsmith"


def check_names(only: Collection[str]) -> None:
    """Refuse names of no check: with such a name alone, nothing would be checked, and nothing would fail."""
    for name in only:
        if name not in CHECKS:
            raise ConfigError(f"there is no check {name!r}; there are {', '.join(CHECKS)}")


def examine(subject: Subject, only: Collection[str] = (), also: Collection[str] = ()) -> Iterator[Verdict]:
    """The verdicts of all checks, or of those named, as they are known. An exception of the operator is a failure.

    `also` names checks of an operator of another framework that must not be refused, such as `vmap` or `compile`. An
    operator that indexes outside of its arrays is not run again, because it would write there. If an operator gives
    different numbers each time, checks that compare runs are left out, and `repeatable` says so.
    """
    return (part for part in progress(subject, only, also) if isinstance(part, Verdict))


def progress(
    subject: Subject, only: Collection[str] = (), also: Collection[str] = (), after: str = ""
) -> Iterator[str | Verdict]:
    """The same with the name of each check before it runs, from the check that follows `after` on."""
    try:
        yield from _progress(subject, only, also, after)
    finally:
        subject.operator.python_process.close()


def _progress(subject: Subject, only: Collection[str], also: Collection[str], after: str) -> Iterator[str | Verdict]:
    origin, named = _origin_of(subject), {*only, *also}
    names = [
        name
        for name, check in CHECKS.items()
        if name in named or (origin in check.origins and (name == "bounds" or not (only or check.if_named)))
    ]
    as_python: dict[str, list[Verdict]] | None = None
    for name in names[names.index(after) + 1 if after else 0 :]:
        check = CHECKS[name]
        yield name
        if check.as_python and as_python is None:
            as_python = _as_python([each for each in names if CHECKS[each].as_python], subject)
        if check.repeats and subject.changes and check.repeats in (subject.changes, "gradient"):
            if only and "repeatable" not in only:
                yield from _verdicts("repeatable", subject)
                return
            continue
        verdicts = _verdicts(name, subject, as_python) if origin in check.origins else []
        if name in also:
            verdicts = [replace(v, state=FAILED) if v.state == NOTE else v for v in verdicts]
        if not verdicts and name in named:
            verdicts = [replace(note(check.nothing), check=name)]
        yield from (verdict for verdict in verdicts if not only or name in named or verdict.failed)
        if name == "bounds" and any(verdict.failed for verdict in verdicts):
            return


def _verdicts(name: str, subject: Subject, as_python: Mapping[str, list[Verdict]] | None = None) -> list[Verdict]:
    check, foreign = CHECKS[name], subject.operator.foreign
    try:
        return as_python[name] if as_python and name in as_python else _answers(name, subject)
    except OtherSizeError:
        return []
    except Exception as error:  # the user's function may raise anything
        refused = foreign is not None and check.refusal
        prefix = check.refusal.format(framework=foreign.framework.name) + ": " if foreign and refused else ""
        verdict = (note if refused else failed)(prefix + subject.reason(error))
        return [replace(verdict, check=name)]


def _answers(name: str, subject: Subject) -> list[Verdict]:
    check = CHECKS[name]
    if (check.has_gradient and not subject.has_gradient) or (check.is_exact and subject.is_surrogate):
        return []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [replace(verdict, check=name) for verdict in check.verdicts(subject)]


def _as_python(names: Collection[str], subject: Subject) -> dict[str, list[Verdict]]:
    """The verdicts of checks that ran with Numba functions as Python, in a forked process; others raised an error."""
    if subject.operator.foreign is not None or interpreted.on:
        return {}
    answers: dict[str, list[Verdict]] | End = subject.operator.python_process.ask(_all_answers, names, subject)
    return {} if isinstance(answers, End) else answers


def _all_answers(names: Collection[str], subject: Subject) -> dict[str, list[Verdict]]:
    answers = {}
    for name in names:
        with suppress(Exception):  # some code that Numba compiles is not valid Python
            answers[name] = _answers(name, subject)
    return answers
