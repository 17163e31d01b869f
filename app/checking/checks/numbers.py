"""NaN, infinities, and large numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from app.checking.checks.bounds import index_outside
from app.checking.subject import Arrays, Subject
from app.checking.verdict import Verdict, failed, note, ok

_ODD = {"NaN": np.nan, "inf": np.inf, "-inf": -np.inf}
_FEW = 4
"""The results of a step function have at most this many different values."""


def odd(subject: Subject) -> Iterator[Verdict]:
    """NaN or infinity in one element raises nothing, and does not change other elements."""
    plain, _ = subject.run(subject.arrays())
    for place, one in enumerate(subject.inputs):
        if not one.is_float:
            continue
        for what, value in _ODD.items():
            if value == -np.inf and subject.low >= 0:  # it does not take negative numbers
                continue
            arrays = subject.arrays()
            arrays[place].flat[0] = value
            try:
                outputs, _ = subject.run(arrays)
            except Exception as error:  # nobody gets a wrong number
                yield note(f"{what} in {one.name} raises {subject.reason(error)}")
                return
            if _spreads(subject, outputs, plain):
                yield failed(f"{what} in one element of {one.name} changes results that do not depend on it")
                return
    hidden = [one.name for place, one in enumerate(subject.inputs) if one.is_float and _hides_nan(subject, place)]
    if not hidden:
        yield ok("NaN and infinities propagate to their own elements only")
    elif _is_meant(subject, plain):
        yield ok(f"NaN in {', '.join(hidden)} gives a number, as intended")
    else:
        names, remedy = ", ".join(hidden), _remedy(subject, plain)
        yield note(f"NaN in {names} becomes a number, which hides a training that went wrong{remedy}")


def _remedy(subject: Subject, plain: Arrays) -> str:
    """What to write instead in a ReLU; '' for another function."""
    (array, *others), name = subject.arrays(), subject.inputs[0].name
    if others or not np.array_equal(plain[0], np.maximum(array, 0)):
        return ""
    return f". To propagate NaN, write 0 if {name} <= 0 else {name} in place of {name} if {name} > 0 else 0"


def _hides_nan(subject: Subject, place: int) -> bool:
    """Whether no result is NaN although all elements of an input are."""
    arrays = subject.arrays()
    arrays[place].fill(np.nan)
    outputs = [o for o in subject.outputs(arrays) if o.dtype.kind == "f"]
    return bool(outputs) and all(np.isfinite(o).all() for o in outputs)


def _is_meant(subject: Subject, plain: Arrays) -> bool:
    """Whether hiding NaN is intended: the operator is a step function, or the equivalent hides NaN, too."""
    if all(len(np.unique(o)) <= _FEW < o.size for o in plain):
        return True
    if not subject.like:
        return False
    return all(np.isfinite(o).all() for o in subject.run_equivalent(subject.filled(np.nan)).outputs)


def _spreads(subject: Subject, outputs: Arrays, plain: Arrays) -> bool:
    if not subject.operator.elementwise:
        return False
    alike = [o.shape == subject.inputs[0].shape for o in outputs]
    return any(a and not np.array_equal(o.flat[1:], p.flat[1:]) for a, o, p in zip(alike, outputs, plain, strict=True))


def large(subject: Subject) -> Iterator[Verdict]:
    """±1000, if the operator takes numbers of both signs: careless formulas overflow."""
    if subject.low >= 0 or subject.low > -1:
        return
    problems = []
    for value in (1000.0, -1000.0):
        arrays = subject.filled(value)
        outside = index_outside(subject, arrays)
        if outside is not None:
            yield note(f"at {value:g}, {outside}")
            return
        outputs, gradients = subject.run(arrays)
        if any(np.isnan(o).any() for o in outputs if o.dtype.kind == "f"):
            problems.append(f"the result is NaN at {value:g}")
        elif any(g is not None and np.isnan(g).any() for g in gradients):
            problems.append(f"the gradient is NaN at {value:g}")
    if problems:
        yield note(f"{', '.join(problems)}: the formula overflows; write one that does not")
    else:
        yield ok("large numbers give no NaN")
