"""Scopes: the values of persistable variables between runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import numpy.typing as npt

from app.errors import ProgramError, ShapeError
from app.ops.dtype import fitting


class ScopeVariable:
    """One value of a Scope, with the methods that Paddle programs use."""

    def __init__(self, scope: Scope, name: str):
        self._scope, self.name = scope, name

    def get_tensor(self) -> ScopeVariable:
        return self

    def set(self, value: npt.ArrayLike) -> None:
        """Replace the value by another of the same shape; the element type is kept."""
        old = self._scope.values.get(self.name)
        new = np.array(value) if old is None else fitting(f"variable {self.name}", value, old.dtype.name)
        if old is not None and new.shape != old.shape:
            raise ShapeError(f"variable {self.name} has shape {list(old.shape)}, not {list(new.shape)}")
        self._scope.values[self.name] = new

    def shape(self) -> list[int]:
        return list(self._scope.values[self.name].shape)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._scope.values[self.name], dtype=dtype)


class Scope:
    """Values by variable name."""

    def __init__(self) -> None:
        self.values: dict[str, np.ndarray] = {}
        self.changing = threading.RLock()
        """Held while a compiled Program that changes values in place is running."""

    def find_var(self, name: str) -> ScopeVariable | None:
        """The variable of that name, or None."""
        return ScopeVariable(self, name) if name in self.values else None

    def var(self, name: str) -> ScopeVariable:
        """The variable of that name, which may not have a value yet."""
        return ScopeVariable(self, name)

    def value(self, name: str) -> np.ndarray:
        """The array of that name."""
        if name not in self.values:
            raise ProgramError(f"variable {name} has no value yet: run the startup program first")
        return self.values[name]


_of_process = Scope()
_scope = ContextVar("scope", default=_of_process)


def global_scope() -> Scope:
    """The scope that an Executor uses when none is given."""
    return _scope.get()


@contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """Inside the block, use `scope` as the global one of this thread."""
    previous = _scope.get()
    _scope.set(scope)
    try:
        yield
    finally:
        _scope.set(previous)
