"""Numbers that break things: those that are none, infinities, and large ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from app.checking.subject import Arrays, Subject
from app.checking.verdict import Verdict, failed, note, ok

_ODD = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}


def odd(subject: Subject) -> Iterator[Verdict]:
    """One number of an input is none, or infinite: nothing is raised, and it does not spread where it must not."""
    hidden = []
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
            if what == "nan" and all(np.isfinite(o).all() for o in outputs):
                hidden.append(one.name)
    if hidden:
        yield note(
            f"nan in {', '.join(hidden)} gives numbers again: a training that went wrong would not be seen; test the "
            "other way round (0 if x <= 0 else x)"
        )
    else:
        yield ok("nan and infinities come through, and go nowhere else")


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
            found.append(f"the result is nan at {value:g}")
        elif any(g is not None and np.isnan(g).any() for g in gradients):
            found.append(f"the gradient is nan at {value:g}")
    if found:
        yield note(f"{', '.join(found)}: the formula overflows; write it for large numbers, too")
    else:
        yield ok("large numbers give numbers")
