"""The global and closure variables whose values Numba freezes into what it compiles."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from app.engine.compiled.fingerprint import Walk, content_of
from app.engine.compiled.numba_api import Dispatcher

_CONSTANT = (types.ModuleType, types.BuiltinFunctionType, type, np.ufunc)
"""Kinds of values that nobody assigns to names again."""

_compiled_with: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""For Numba functions the hash of the values that they were compiled with."""


class Frozen:
    """The variables that are constants in the compiled code of some functions.

    Numba functions that these functions call are compiled again if they may have been compiled with other values.
    """

    def __init__(self, *functions: Any):
        found = _Variables(functions)
        self._variables = found.variables
        for dispatcher in found.dispatchers:
            inside = _Variables([dispatcher])
            values = inside.digest.hexdigest()
            if dispatcher.overloads and inside.variables and _compiled_with.get(dispatcher) != values:
                dispatcher.recompile()
            _compiled_with[dispatcher] = values

    def have_changed(self) -> bool:
        """Whether what was compiled since is out of date."""
        for get, value, content in self._variables:
            if get() is not value or (content is not None and value.tobytes() != content):
                return True
        return False


class _Variables(Walk):
    """The walk through functions and everything that they reach, which collects variables and Numba functions."""

    def __init__(self, functions: Iterable[Any]):
        super().__init__()
        self.variables: list[tuple[Callable[[], Any], Any, bytes | None]] = []
        """What gets the value of each, the value, and the content of an array."""
        self.dispatchers: list[Any] = []
        """The Numba functions, each after those that it calls."""
        self.hash_of(functions)

    def add(self, thing: Any) -> None:
        super().add(thing)
        if isinstance(thing, Dispatcher) and thing not in self.dispatchers:
            self.dispatchers.append(thing)

    def add_named(self, name: str, around: dict[str, Any]) -> None:
        if not isinstance(around[name], _CONSTANT):
            self._add_variable(partial(around.get, name))
        super().add_named(name, around)

    def add_function(self, function: types.FunctionType, given: Any) -> None:
        for cell in function.__closure__ or ():
            self._add_variable(partial(content_of, cell))
        super().add_function(function, given)

    def _add_variable(self, get: Callable[[], Any]) -> None:
        value = get()
        self.variables.append((get, value, value.tobytes() if isinstance(value, np.ndarray) else None))
