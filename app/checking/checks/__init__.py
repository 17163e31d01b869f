"""The checks, in the order in which they run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from importlib import import_module

import numpy as np

from app.checking.checks.behaviour import layout, repeatable, row_by_row, untouched
from app.checking.checks.bounds import bounds
from app.checking.checks.engines import engines, inlined
from app.checking.checks.expanded import expanded, ranks
from app.checking.checks.gradient import gradient, linear, second, settings
from app.checking.checks.likeness import like
from app.checking.checks.numbers import large, odd
from app.checking.checks.of_any_framework import CHECKS as OF_ANY_FRAMEWORK
from app.checking.checks.shapes import broadcasting, empty, shapes, types
from app.checking.checks.whole_numbers import whole_numbers
from app.checking.subject import OtherSizeError, Subject
from app.checking.verdict import FAILED, NOTE, Verdict, failed, note
from app.custom.operator import CustomOperator
from app.errors import ConfigError


def narrowed(subject: Subject) -> Iterator[Verdict]:
    """Why inputs are not drawn from the usual range, if they are not."""
    if subject.narrowed:
        yield note(f"{subject.narrowed}; checked on [{subject.low:g}, {subject.high:g}]")


CHECKS: dict[str, Callable[[Subject], Iterable[Verdict]]] = {
    "bounds": bounds,
    "range": narrowed,
    "gradient": gradient,
    "proportional": linear,
    "settings": settings,
    "ranks": ranks,
    "expanded": expanded,
    "whole numbers": whole_numbers,
    "second": second,
    "like": like,
    "shapes": shapes,
    "types": types,
    "broadcasting": broadcasting,
    "empty batch": empty,
    "untouched": untouched,
    "repeatable": repeatable,
    "rows": row_by_row,
    "layout": layout,
    "nan and inf": odd,
    "large numbers": large,
    "engines": engines,
    "inlined": inlined,
}
"""The checks by name, for operators of any origin."""

_NOT_OF_OURS = {"untouched"}
"""The checks that hold by construction for operators of opsmith, whose functions get read-only arrays."""
_NOT_OF_DERIVED = {"broadcasting", "layout", "proportional"}
"""Those that also hold if the function works on numbers and its gradient is derived."""
_NOT_OF_OTHERS = {"bounds", "shapes", "engines", "inlined"}
"""The checks that hold by construction for operators of other frameworks, or concern what only ours have."""
_OF_MEMORY = {"expanded", "untouched", "layout", "kept", "shared"}
"""The checks that a framework which copies arrays passes by construction."""
OF_FRAMEWORK = {
    "torch": "modes, one output, saved, forward, vmap, autocast, leak, fake, opcheck, compile",
    "jax": "primal, jit, vmap, forward",
}
"""The names of the checks that only one framework can be asked. Its module is imported when one of its operators is
checked."""
_IF_ASKED = {"compile"}
"""The checks that take seconds, and run only if they are named."""
_MAY_REFUSE = {
    *("settings", "types", "broadcasting", "empty batch", "rows", "nan and inf", "large numbers", "like", "second"),
}
"""The checks that try other sizes, types, numbers and derivatives, which an operator of another framework may refuse
loudly."""


def checks_for(subject: Subject) -> dict[str, Callable[[Subject], Iterable[Verdict]]]:
    """The checks that an operator is examined with, by name."""
    foreign = subject.operator.foreign
    if foreign is None:
        left_out = _NOT_OF_OURS | _NOT_OF_DERIVED if _is_derived(subject) else _NOT_OF_OURS
        return {name: check for name, check in CHECKS.items() if name not in left_out}
    framework = foreign.framework.name
    own = import_module(f".of_{framework}", __package__).CHECKS if framework in OF_FRAMEWORK else {}
    left_out = _NOT_OF_OTHERS if foreign.framework.shares_memory else _NOT_OF_OTHERS | _OF_MEMORY
    every = {**CHECKS, **OF_ANY_FRAMEWORK, **own}
    return {name: check for name, check in every.items() if name not in left_out}


def _is_derived(subject: Subject) -> bool:
    operator = subject.operator.call
    return isinstance(operator, CustomOperator) and operator.elementwise and not operator.backward_function


def names_of_checks() -> list[str]:
    """The names of all checks."""
    of_frameworks = [name for names in OF_FRAMEWORK.values() for name in names.split(", ")]
    return list(dict.fromkeys([*CHECKS, *OF_ANY_FRAMEWORK, *of_frameworks]))


def check_names(only: Collection[str]) -> None:
    """Refuse names of no check: with such a name alone, nothing would be checked, and nothing would fail."""
    for name in only:
        if name not in names_of_checks():
            raise ConfigError(f"there is no check {name!r}; there are {', '.join(names_of_checks())}")


_COMPARE_RESULTS = {"gradient", "proportional", "settings", "ranks", "whole numbers", "second"}
_COMPARE_RUNS = {
    *("like", "types", "broadcasting", "rows", "expanded", "layout", "nan and inf", "engines"),
    *("alone", "kept", "modes", "one output", "saved", "forward", "vmap", "autocast", "compile", "jit"),
}
"""The checks that compare the results of several runs, and those that also compare gradients."""
_NOTHING = {
    "range": "inputs are drawn from the usual range",
    "like": "there is no operator to compare with: name one with `like`",
}
"""What a check says that was asked for and does not apply."""


def examine(
    subject: Subject,
    only: Collection[str] = (),
    also: Collection[str] = (),
    after: str = "",
    begin: Callable[[str], None] = lambda name: None,
) -> Iterator[Verdict]:
    """The verdicts of all checks, or of those named, as they are known. An exception of the operator is a failure.

    `also` names checks of an operator of another framework that must not be refused, such as `vmap` or `compile`. Of
    the checks, those that follow `after` run; `begin` is called with the name of each before it runs. An operator that
    indexes outside of its arrays is not run again, because it would write there. If an operator gives
    different numbers each time, checks that compare runs are left out, and `repeatable` says so.
    """
    try:
        yield from _examined(subject, only, also, after, begin)
    finally:
        subject.operator.python_process.close()


def _examined(
    subject: Subject, only: Collection[str], also: Collection[str], after: str, begin: Callable[[str], None]
) -> Iterator[Verdict]:
    checks = checks_for(subject)
    names = [name for name in checks if name in (only or checks) or name in ("bounds", *also)]
    names = [name for name in names if name not in _IF_ASKED or name in (*only, *also)]
    for name in names[names.index(after) + 1 if after else 0 :]:
        begin(name)
        check = checks[name]
        if (name in _COMPARE_RUNS and subject.changes) or (name in _COMPARE_RESULTS and subject.changes == "result"):
            if only and "repeatable" not in only:
                yield from _verdicts("repeatable", repeatable, subject)
                return
            continue
        verdicts = list(_verdicts(name, check, subject))
        if name in also:
            verdicts = [replace(v, state=FAILED) if v.state == NOTE else v for v in verdicts]
        is_requested = not only or name in only or name in also
        if not verdicts and name in only:
            verdicts = [replace(note(_NOTHING.get(name, "it does not apply to this operator")), check=name)]
        yield from (verdict for verdict in verdicts if is_requested or verdict.failed)
        if check is bounds and any(verdict.failed for verdict in verdicts):
            return
    yield from _not_applied(subject, [name for name in only if name not in checks])


def _not_applied(subject: Subject, names: Collection[str]) -> Iterator[Verdict]:
    """Why checks that were asked for do not apply to operators of this origin."""
    for name in names:
        why = "it holds by construction" if name in CHECKS else "it is for operators of another framework"
        yield replace(note(why), check=name)


def _verdicts(name: str, check: Callable[[Subject], Iterable[Verdict]], subject: Subject) -> Iterator[Verdict]:
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verdicts = list(check(subject))
    except OtherSizeError:
        verdicts = []
    except Exception as error:  # the user's function may raise anything
        refused = subject.operator.foreign is not None and name in _MAY_REFUSE
        verdicts = [note(f"it refuses this: {subject.reason(error)}") if refused else failed(subject.reason(error))]
    yield from (replace(verdict, check=name) for verdict in verdicts)
