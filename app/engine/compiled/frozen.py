"""The global and closure variables whose values Numba freezes into what it compiles."""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from app.engine.compiled.fingerprint import Walk, content_of, is_of_numba
from app.engine.compiled.numba_api import Dispatcher, compile_again
from app.errors import OperatorError

_ABSENT = object()
"""The value of a global variable that does not exist."""

_compiled_with: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""For Numba functions the hash of the values that they were compiled with."""


class Frozen:
    """The variables that are constants in the compiled code of some functions.

    Numba functions that these functions call are compiled again if they may have been compiled with other values.
    """

    def __init__(self, *functions: Any):
        walk = _Variables(functions)
        self._variables = walk.variables
        self._compiled_with: list[tuple[Any, str]] = []
        for dispatcher in walk.dispatchers:
            inside = _Variables([dispatcher])
            values = inside.digest.hexdigest()
            if _compiled_with.get(dispatcher) != values:
                _compiled_with.pop(dispatcher, None)  # compiling may fail
                if inside.may_differ:
                    compile_again(dispatcher)
                _compiled_with[dispatcher] = values
            self._compiled_with.append((dispatcher, values))
        for once in walk.compiled_once:
            inside = _Variables([once])
            values = inside.digest.hexdigest()
            if inside.variables and _compiled_with.setdefault(once, values) != values:
                raise OperatorError(
                    f"{getattr(once, '__name__', 'a stencil')} was compiled with other values of the variables that it "
                    f"reads, and Numba cannot compile a {type(once).__name__} again: define it again, or make these "
                    "values its arguments"
                )

    def have_changed(self) -> bool:
        """Whether what was compiled since is out of date.

        A Numba function may have been compiled again for another operator, with values that are no longer the current
        ones.
        """
        for get, value, content in self._variables:
            if get() is not value or (content is not None and _content(value) != content):
                return True
        return any(_compiled_with.get(dispatcher) != values for dispatcher, values in self._compiled_with)


class _Variables(Walk):
    """The walk through functions and everything that they reach, which collects variables and Numba functions."""

    def __init__(self, functions: Iterable[Any]):
        super().__init__()
        self.variables: list[tuple[Callable[[], Any], Any, Any]] = []
        """What gets the value of each, the value, and its content if that may change."""
        self.dispatchers: list[Any] = []
        """The Numba functions, each after those that it calls."""
        self.compiled_once: list[Any] = []
        """What `numba.vectorize` and others made."""
        self.hash_of(functions)

    @property
    def may_differ(self) -> bool:
        """Whether code that was compiled earlier may have been compiled with other values."""
        return any(not (value is _ABSENT or isinstance(value, types.ModuleType)) for _, value, _ in self.variables)

    def add(self, thing: Any) -> None:
        super().add(thing)
        if isinstance(thing, Dispatcher) and thing not in self.dispatchers:
            self.dispatchers.append(thing)

    def add_names(self, names: Iterable[str], around: dict[str, Any]) -> None:
        names = set(names)
        for name in names.intersection(vars(builtins)) - around.keys():  # a global variable may get the name of one
            self._add_variable(partial(around.get, name, _ABSENT))
        super().add_names(names, around)

    def add_named(self, name: str, around: dict[str, Any]) -> None:
        self._add_variable(partial(around.get, name))
        super().add_named(name, around)

    def add_function(self, function: types.FunctionType, dispatcher: Any) -> None:
        if dispatcher is function:  # IPython replaces the code of a function when it reloads a file
            self._add_variable(partial(getattr, function, "__code__"))
        if _content(function.__defaults__) is not None:
            self._add_variable(partial(getattr, function, "__defaults__"))
        for cell in function.__closure__ or ():
            self._add_variable(partial(content_of, cell))
        super().add_function(function, dispatcher)

    def add_object(self, thing: Any) -> None:
        super().add_object(thing)
        if is_of_numba(thing):
            self.compiled_once.append(thing)

    def _add_variable(self, get: Callable[[], Any]) -> None:
        value = get()
        self.variables.append((get, value, _content(value)))


def _content(value: Any) -> Any:
    """The content of an array, or of those in a tuple; None for what cannot change in place."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    inside = [_content(item) for item in value] if isinstance(value, tuple) else []
    return inside if any(content is not None for content in inside) else None
