"""Errors of Numba functions about shapes and axes, in a form that compiles quickly.

Numba compiles the text of `y[i] = x[i, :2]` with a wrong length and of `x.sum(axis=5)`, with numbers in it, which takes
two seconds in each process. Here the exception gets the numbers, and makes the same text of them when it is printed.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from numba import types
from numba.extending import overload
from numpy.exceptions import AxisError

from app.engine.compiled.numba_api import global_compiler_lock


class AssignedShapeError(ValueError):
    """An array was assigned to a part of another that has a different shape."""

    def __str__(self) -> str:
        return "cannot assign slice of shape {} from input of shape {}".format(*self.args)


def _raise(source: Any, expected: Any) -> None:
    """What Numba functions call in place of Numba's function."""


@overload(_raise)
def _raise_compiled(source: Any, expected: Any) -> Callable[..., None]:
    def raise_(source: Any, expected: Any) -> None:
        raise AssignedShapeError(expected, source)

    return raise_


def _check_axis(array: Any, axis: Any) -> None:
    """What Numba functions call in place of Numba's function."""


@overload(_check_axis)
def _check_axis_compiled(array: Any, axis: Any) -> Callable[..., None]:
    if isinstance(axis, types.BaseTuple):

        def check(array: Any, axis: Any) -> None:
            for one in axis:
                if one < -array.ndim or one >= array.ndim:
                    raise AxisError(one, array.ndim)

    elif isinstance(axis, types.Integer):

        def check(array: Any, axis: Any) -> None:
            if axis < -array.ndim or axis >= array.ndim:
                raise AxisError(axis, array.ndim)

    else:  # no axis

        def check(array: Any, axis: Any) -> None:
            pass

    return check


_QUICK = (
    ("numba.np.arrayobj", "raise_with_shape_context", _raise),
    ("numba.np.arraymath", "check_axis_bounds", _check_axis),
)
"""Where Numba has a function that compiles a text, its name, and what is called in its place."""


@contextmanager
def compiled_quickly() -> Iterator[None]:
    """Inside the block, what Numba compiles raises these errors; older releases of Numba raise others, short ones."""
    with global_compiler_lock, ExitStack() as restored:
        _import_without_scipy()
        for place, name, quick in _QUICK:
            module = importlib.import_module(place)
            if hasattr(module, name):
                restored.callback(setattr, module, name, getattr(module, name))
                setattr(module, name, quick)
        yield


def _import_without_scipy() -> None:
    """Import Numba's functions of arrays without SciPy's BLAS, which takes 0.15 s.

    They ask at once whether it is there; what needs it asks again when it is compiled.
    """
    if "numba.np.arraymath" not in sys.modules:
        linalg: Any = importlib.import_module("numba.np.linalg")
        ensure_blas, linalg.ensure_blas = linalg.ensure_blas, lambda: None
        try:
            importlib.import_module("numba.np.arraymath")
        finally:
            linalg.ensure_blas = ensure_blas
