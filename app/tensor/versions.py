"""What was changed in place, and when, so that no backward pass reads other numbers than it was promised.

Versions belong to memory rather than to Tensors: all that share it, by whatever way, share its version. What is
recorded and what is changed take their moments from one clock. So a record need not say which versions it saw:
a value that it holds is out of date if its memory was changed after the moment of the record.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import deque

import numpy as np

from app.errors import InPlaceError

clock = itertools.count(1)
"""The moments of what is recorded, and of what is changed in place."""


class _Latest:
    """The moment of the latest change of all; one object, so that the hot path reads a single attribute."""

    __slots__ = ("moment",)

    def __init__(self) -> None:
        self.moment = 0


latest = _Latest()


class _Memory:
    """How often an array's memory was changed, and when lately."""

    __slots__ = ("count", "moments", "watch")

    def __init__(self, owner: np.ndarray):
        key = id(owner)
        self.count = 0
        self.moments: deque[int] = deque(maxlen=64)
        self.watch = weakref.ref(owner, lambda _: _changed.pop(key, None))  # an id is given away again


_lock = threading.RLock()
_acquire, _release = _lock.acquire, _lock.release  # in half the time of `with`
_changed: dict[int, _Memory] = {}
"""The memory that was changed in place, by the id of the array that owns it."""


def owner_of(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory of another: itself, or what it is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def apart(array: np.ndarray) -> np.ndarray:
    """The same memory with versions of its own: changes through one array are not seen through the other."""
    return np.asarray(array.data)


def note_change(array: np.ndarray) -> None:
    """The numbers of this array were changed in place: those who kept them are out of date."""
    owner = owner_of(array)
    _acquire()  # or the latest moment of all could go back, and a change be missed
    try:
        memory = _changed.get(id(owner))
        if memory is None:
            memory = _changed[id(owner)] = _Memory(owner)
        memory.count += 1
        latest.moment = moment = next(clock)
        memory.moments.append(moment)
    finally:
        _release()


def version_of(array: np.ndarray) -> int:
    """How often the memory of this array was changed in place."""
    memory = _changed.get(id(owner_of(array)))
    return 0 if memory is None else memory.count


def check_unchanged(array: np.ndarray | None, moment: int, what: str) -> None:
    """Refuse to go on with what was kept at a moment, and has been changed since."""
    if array is None or latest.moment < moment:
        return
    memory = _changed.get(id(owner_of(array)))
    if memory is None or memory.moments[-1] < moment:
        return
    since = sum([m > moment for m in memory.moments])
    raise InPlaceError(
        f"{what}, of shape {list(array.shape)}, is needed for the gradient, but has been modified by an inplace "
        f"operation since (received tensor_version:{memory.count} != wrapper_version_snapshot:{memory.count - since}); "
        "change a copy of it (x.clone()), or make a new Tensor (x = x + ...)"
    )
