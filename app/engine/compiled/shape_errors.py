"""The error of Numba functions for rows of a wrong length, such as `y[i] = x[i, :2]`, in a form that compiles quickly.

Numba compiles the text of its message, with numbers in it, which takes two seconds in each process. Here the exception
gets the shapes, and makes the same text of them when it is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.extending import overload
from numba.np import arrayobj

from app.engine.compiled.numba_api import global_compiler_lock

_RAISES = "raise_with_shape_context"
"""The name of Numba's function that raises the error."""


class AssignedShapeError(ValueError):
    """An array was assigned to a part of another that has a different shape."""

    def __str__(self) -> str:
        return "cannot assign slice of shape {} from input of shape {}".format(*self.args)


def _raise(found: Any, expected: Any) -> None:
    """What Numba functions call in place of Numba's function."""


@overload(_raise)
def _compiled(found: Any, expected: Any) -> Callable[..., None]:
    def raise_(found: Any, expected: Any) -> None:
        raise AssignedShapeError(expected, found)

    return raise_


@contextmanager
def compiled_quickly() -> Iterator[None]:
    """Inside the block, what Numba compiles raises this error; older releases of Numba raise another, short one."""
    with global_compiler_lock:
        before = getattr(arrayobj, _RAISES, None)
        if before is not None:
            setattr(arrayobj, _RAISES, _raise)
        try:
            yield
        finally:
            if before is not None:
                setattr(arrayobj, _RAISES, before)
