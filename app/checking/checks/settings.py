"""The gradient with other settings, to find one that was written for the defaults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from app.checking.checks.bounds import index_outside
from app.checking.checks.direction import Point, how_gradient_is_wrong
from app.checking.checks.gradient import against_differences, wrong_in
from app.checking.subject import FLOAT32, Subject
from app.checking.verdict import Verdict, failed, ok

_MORE, _WIDEST = 3, 2000
"""By how much the width is above the largest setting, and the largest width that is tried."""


def settings(subject: Subject) -> Iterator[Verdict]:
    """The gradient with other settings, to find one that was written for the defaults."""
    tried = []
    for name, value in _of_type(subject, float).items():
        changed = replace(subject, settings={**subject.settings, name: value * 1.5 + 0.25})
        arrays = changed.arrays()
        if not changed.is_finite(arrays):  # nor if the setting cannot have this value
            continue
        wrong = list(wrong_in(changed, against_differences(changed, arrays), arrays))
        if wrong:
            yield failed(f"with {name}={changed.settings[name]:g}, {wrong[0].words}")
            return
        tried.append(f"{name}={changed.settings[name]:g}")
    if tried:
        yield ok(f"the gradient is right with {', '.join(tried)}, too")


def whole_numbers(subject: Subject) -> Iterator[Verdict]:
    """The gradient with other whole-number settings, and at a width above them, to find one that is right only where
    every element is among the first k."""
    numbers = _of_type(subject, int)
    if not numbers or subject.precision is FLOAT32:
        return
    tried = []
    for changed in _others(subject, numbers):
        at = Point(changed, changed.arrays())
        if index_outside(changed) is not None or not changed.is_finite(
            at.arrays
        ):  # also if it does not take this width or this value
            continue
        settings = ", ".join(f"{name}={value}" for name, value in _of_type(changed, int).items())
        difference = how_gradient_is_wrong(at)
        if difference:
            yield failed(f"with {settings} and {at.inputs}, the gradient is {difference}")
            return
        tried.append(f"{settings} at {list(changed.inputs[0].shape)}")
    if tried:
        yield ok(f"the gradient is right with {'; '.join(tried)}")


def _others(subject: Subject, numbers: dict[str, int]) -> Iterator[Subject]:
    shape = subject.inputs[0].shape
    width = max(numbers.values()) + _MORE
    can_widen = (
        not subject.is_fixed and not subject.operator.shapes and shape and len({i.shape for i in subject.inputs}) == 1
    )
    if can_widen and shape[-1] < width <= _WIDEST:
        yield subject.with_shapes([(*shape[:-1], width)] * len(subject.inputs))
    for name, value in numbers.items():
        for other in (value - 1, value + 1):
            if other > 0:
                yield replace(subject, settings={**subject.settings, name: other})


def _of_type(subject: Subject, kind: type) -> dict[str, Any]:
    """The settings of one type, with their values."""
    defaults = {p.name: p.default for p in subject.operator.parameters if p.default is not p.empty}
    return {name: value for name, value in {**defaults, **subject.settings}.items() if type(value) is kind}
