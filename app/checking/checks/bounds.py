"""Indices outside of arrays, which compiled code does not check: it reads or overwrites whatever lies there."""

from __future__ import annotations

from collections.abc import Iterator

from app.checking.subject import Arrays, Subject
from app.checking.verdict import Verdict, failed, ok
from app.custom.numba_functions import interpreted, without_numba
from app.errors import BoundsError


class BackwardBoundsError(BoundsError):
    """A backward function indexes outside of an array, on inputs on which forward runs."""


def bounds(subject: Subject) -> Iterator[Verdict]:
    """Numba functions, run as Python on a few rows and on one, index inside their arrays, forward and backward."""
    for tried in (subject, subject.with_batch(1)) if subject.inputs[0].shape else (subject,):
        found = index_outside(tried)
        if found is not None:
            yield failed(str(found))
            return
    if not interpreted.calls:
        return
    other = _differs_from_python(subject)
    if other:
        yield failed(
            f"compiled by Numba it gives another {other} than run as Python: an index may be outside of its array "
            "(negative ones are not checked in x.flat), or an element is not written"
        )
        return
    yield ok("both passes index inside their arrays")


def _differs_from_python(subject: Subject) -> str:
    """What compiled code gives differently, if Python always gives the same; '' if nothing or if it raises."""
    try:
        with without_numba():
            first, second = (subject.run(subject.arrays()).copy() for _ in range(2))
        compiled = subject.run(subject.arrays())
    except Exception:  # another check reports it
        return ""
    return "" if first.differs_from(second) else first.far_from(compiled, 1e-6)


def index_outside(subject: Subject, arrays: Arrays | None = None) -> BoundsError | None:
    """The error for an index outside of an array, found by running an operator's functions as Python; None if none.

    Other errors are left to checks that run the compiled functions: some code that Numba compiles is not valid Python.
    """
    name, kind = "forward", BoundsError
    with without_numba():
        try:
            tensors = subject.tensors(subject.arrays() if arrays is None else arrays)
            outputs = subject.applied(tensors)
            name, kind = "backward", BackwardBoundsError
            subject.gradients(tensors, outputs)
        except IndexError as error:
            if not interpreted.calls:
                return None
            words = str(error).partition("\n")[0]
            return kind(f"{name} indexes outside of its arrays, given {', '.join(map(str, subject.inputs))}: {words}")
        except Exception:
            return None
    return None
