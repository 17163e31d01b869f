"""Numbers that break things: NaN, infinities, and large ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from app.checking.subject import Arrays, Subject
from app.checking.verdict import Verdict, failed, note, ok
from app.listed import as_list

_ODD = {"NaN": np.nan, "inf": np.inf, "-inf": -np.inf}
_FEW = 4
"""So many different results, at most, are those of a step."""


def odd(subject: Subject) -> Iterator[Verdict]:
    """One number of an input is NaN, or infinite: nothing is raised, and it does not spread where it must not."""
    plain = subject.outputs(subject.arrays())
    for place, one in enumerate(subject.inputs):
        if not one.is_float:
            continue
        for what, value in _ODD.items():
            arrays = subject.arrays()
            arrays[place].flat[0] = value
            try:
                outputs, _ = subject.run(arrays)
            except Exception as error:
                yield failed(f"{what} in {one.name} raises {type(error).__name__}: {str(error).partition(chr(10))[0]}")
                return
            if _spreads(subject, outputs, plain):
                yield failed(f"{what} in one element of {one.name} changes results that do not depend on it")
                return
    hidden = [one.name for place, one in enumerate(subject.inputs) if one.is_float and _hides_nan(subject, place)]
    if not hidden:
        yield ok("NaN and infinities come through, and spread no further")
    elif _is_meant(subject, plain):
        yield ok(f"NaN in {', '.join(hidden)} gives a number, as it is meant to")
    else:
        yield note(
            f"NaN in {', '.join(hidden)} gives numbers again, which hides a training that went wrong. If that is not "
            "meant, let NaN through: 0 if x <= 0 else x, in place of x if x > 0 else 0"
        )


def _hides_nan(subject: Subject, place: int) -> bool:
    """Whether an input full of NaN leaves no trace; a single one may be where a choice falls on another input."""
    arrays = subject.arrays()
    arrays[place].fill(np.nan)
    outputs = [o for o in subject.outputs(arrays) if o.dtype.kind == "f"]
    return bool(outputs) and all(np.isfinite(o).all() for o in outputs)


def _is_meant(subject: Subject, plain: Arrays) -> bool:
    """Whether the rule is right: of a step, which has a few values alone, or where the stated equivalent does so."""
    if all(len(np.unique(o)) <= _FEW < o.size for o in plain):
        return True
    if not subject.like:
        return False
    arrays = [
        np.full_like(a, np.nan) if i.is_float else a for a, i in zip(subject.arrays(), subject.inputs, strict=True)
    ]
    other = subject.run(arrays, call=lambda *values: as_list(subject.equivalent(*values)))
    return all(np.isfinite(o).all() for o in other.outputs)


def _spreads(subject: Subject, outputs: Arrays, plain: Arrays) -> bool:
    if not subject.found.elementwise:
        return False
    alike = [o.shape == subject.inputs[0].shape for o in outputs]
    return any(a and not np.array_equal(o.flat[1:], p.flat[1:]) for a, o, p in zip(alike, outputs, plain, strict=True))


def large(subject: Subject) -> Iterator[Verdict]:
    """Large numbers, where the operator takes numbers of either sign: they overflow in formulas that need care."""
    if subject.low >= 0 or subject.low > -1:
        return
    found = []
    for value in (1000.0, -1000.0):
        arrays = [
            np.full_like(a, value) if i.is_float else a for a, i in zip(subject.arrays(), subject.inputs, strict=True)
        ]
        outputs, gradients = subject.run(arrays)
        if any(np.isnan(o).any() for o in outputs if o.dtype.kind == "f"):
            found.append(f"the result is NaN at {value:g}")
        elif any(g is not None and np.isnan(g).any() for g in gradients):
            found.append(f"the gradient is NaN at {value:g}")
    if found:
        yield note(f"{', '.join(found)}: the formula overflows; write it for large numbers, too")
    else:
        yield ok("large numbers give numbers")
