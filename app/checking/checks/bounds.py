"""Does it stay inside its arrays? Compiled code does not look: it reads whatever lies beyond, or writes over it."""

from __future__ import annotations

from collections.abc import Iterator

from app.checking.subject import Subject
from app.checking.verdict import Verdict, failed, ok
from app.custom.numba_functions import interpreted, without_numba
from app.errors import BoundsError


def bounds(subject: Subject) -> Iterator[Verdict]:
    """Numba's functions, run as Python on few rows and on one, index inside of their arrays, forward and back."""
    for tried in (subject, subject.with_batch(1)) if subject.inputs[0].shape else (subject,):
        found = index_outside(tried)
        if found is not None:
            yield failed(str(found))
            return
    if interpreted.calls:
        yield ok("both passes index inside of their arrays")


def index_outside(subject: Subject) -> BoundsError | None:
    """What an operator's functions, run as Python, say of an index outside of an array; None where there is none.

    What else they raise is for another check, which runs them compiled: not all that Numba knows is Python.
    """
    passes = {"forward": lambda: subject.outputs(subject.arrays()), "backward": lambda: subject.run(subject.arrays())}
    with without_numba():
        for name, run in passes.items():
            try:
                run()
            except IndexError as error:
                if not interpreted.calls:
                    return None
                words = str(error).partition("\n")[0]
                return BoundsError(
                    f"{name} indexes outside of its arrays, given {', '.join(map(str, subject.inputs))}: {words}"
                )
            except Exception:
                return None
    return None
