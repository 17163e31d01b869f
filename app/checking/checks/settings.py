"""The gradient with other settings, to find one that was written for the defaults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from app.checking.checks.bounds import index_outside
from app.checking.checks.gradient import against_differences, wrong_in, wrong_when_large
from app.checking.subject import Subject
from app.checking.verdict import Verdict, failed, ok

_MORE, _WIDEST = 3, 2000
"""By how much the width is above the largest setting, and the largest width that is tried."""


def settings(subject: Subject) -> Iterator[Verdict]:
    """The gradient with other numbers as settings, and at a width above whole ones, to find one that is right only
    where every element is among the first k."""
    tried = []
    for what, other in _others(subject):
        arrays = other.arrays()
        if index_outside(other) is not None or not other.is_finite(arrays):  # it does not take this number or width
            continue
        wrong = [v.words for v in wrong_in(other, against_differences(other, arrays), arrays)]
        wrong = wrong or [*filter(None, [wrong_when_large(other)])]
        if wrong:
            yield failed(f"with {what}, {wrong[0]}")
            return
        tried.append(what)
    if tried:
        yield ok(f"the gradient is right with {'; '.join(tried)}, too")


def _others(subject: Subject) -> Iterator[tuple[str, Subject]]:
    """The operator at a width above its whole-number settings, and with other settings, one at a time."""
    defaults = {p.name: p.default for p in subject.operator.parameters if p.default is not p.empty}
    settings = {**defaults, **subject.settings}
    whole = {name: value for name, value in settings.items() if type(value) is int}
    shape, is_alike = subject.inputs[0].shape, len({i.shape for i in subject.inputs}) == 1
    width = max(whole.values(), default=0) + _MORE
    may_widen = whole and shape and is_alike and not (subject.is_fixed or subject.operator.shapes)
    if may_widen and shape[-1] < width <= _WIDEST:
        wider = subject.with_shapes([(*shape[:-1], width)] * len(subject.inputs))
        numbers = ", ".join(f"{name}={value}" for name, value in whole.items())
        yield f"{numbers} and {', '.join(map(str, wider.inputs))}", wider
    for name, value in settings.items():
        others = [value * 1.5 + 0.25] if type(value) is float else []
        others += [n for n in (value - 1, value + 1) if n > 0 or value < 0] if name in whole else []
        for other in others:
            yield f"{name}={other:g}", replace(subject, settings={**subject.settings, name: other})
