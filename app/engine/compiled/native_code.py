"""The functions of a generated source as machine code, compiled on the first call and cached on disk.

The key of a source is a hash of everything that its code depends on. It excludes variable names, so that a rebuilt
network is not recompiled.
"""

from __future__ import annotations

import contextlib
import ctypes
import pickle
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from app.engine.compiled import (
    byte_products,
    cache,
    convolutions,
    emit,
    linkable,
    objects,
    runtime,
    vector_functions,
    vectors,
)
from app.engine.compiled.fingerprint import fingerprint
from app.engine.compiled.language import Function, Parameter
from app.engine.compiled.numba_api import add_symbols_of_numba
from app.engine.compiled.vector_functions import engine_of

_loaded: dict[str, NativeCode] = {}
"""The code loaded in this process, by key."""


def load(pattern: str, functions: Mapping[str, Function], called: Mapping[str, Any]) -> NativeCode:
    """Return the functions of a source, which call others by name.

    Sources with the same `pattern` differ only in the names of variables and share their code.
    """
    functions_called = (called[name] for name in sorted(called))
    key = fingerprint(pattern, *functions_called, _written_by(), cache.environment())[:32]
    if key not in _loaded:
        _loaded[key] = NativeCode(key, functions, called)
    return _loaded[key]


def _written_by() -> str:
    """Return a hash of the code generator; cached code of another version is not used."""
    return cache.hash_of_source(emit, objects, linkable, vectors, vector_functions, byte_products, convolutions)


class NativeCode:
    """The functions of one source that Python calls, by name. They are compiled when the first is asked for."""

    def __init__(self, key: str, functions: Mapping[str, Function], called: Mapping[str, Any]):
        self.key = key
        self._functions, self._called = functions, {**runtime.CALLED, **called}
        self._entries: dict[str, Entry] = {}
        self._alive: list[Any] = []
        """What the code refers to by address, and what holds it."""
        self._lock = threading.Lock()
        self.came_from_disk = False

    def __getitem__(self, name: str) -> Entry:
        with self._lock:
            if not self._entries:
                self._make()
        return self._entries[name]

    def _symbol(self, name: str) -> str:
        return f"{name}_{self.key}"

    def _make(self) -> None:
        where = f"program_{self.key}.bin"
        data = cache.read(where)
        if data is not None:
            with contextlib.suppress(Exception):  # pickle fails in many ways
                self._load(objects.Objects(*pickle.loads(data)))
                self.came_from_disk = True
                return
        with cache.memory_given_back():
            made = objects.compiled(self._functions, self._called, self._symbol)
        if made.can_be_kept:
            cache.keep(where, pickle.dumps(tuple(made)))
        self._load(made)

    def _load(self, made: objects.Objects) -> None:
        if any(name.startswith(("NRT_", "numba_")) for name in made.needs):
            add_symbols_of_numba()
        engine = engine_of(made.code)
        for name in made.environments:
            environment = objects.environment(name)
            ctypes.c_void_p.from_address(engine.get_global_value_address(name)).value = id(environment)
            self._alive.append(environment)
        self._alive.append(engine)
        for name, function in self._functions.items():
            if function.is_called_by_python:
                self._entries[name] = Entry(engine.get_function_address(self._symbol(name)), function.parameters)


class Entry:
    """A function that Python calls."""

    def __init__(self, address: int, parameters: Sequence[Parameter]):
        self._function = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(address)
        self._parameters = parameters[2:]

    def bound(self, arguments: Sequence[Any]) -> Callable[[int, int], bool]:
        """Return the function with all arguments but the thread's number and the number of threads.

        It returns True if it was aborted.
        """
        numbers: list[int] = []
        for parameter, argument in zip(self._parameters, arguments, strict=True):
            numbers += _passed(parameter, argument)
        table = np.array(numbers, np.int64)
        address = table.ctypes.data

        def call(shard: int, shards: int, _alive: Any = (arguments, table)) -> bool:
            return bool(self._function(shard, shards, address))

        return call


def _passed(parameter: Parameter, argument: Any) -> list[int]:
    """Return a number, or the address of an array and its sizes that are not declared."""
    if parameter.shape is None:
        return [int(argument)]
    declared = zip(parameter.shape, argument.shape, strict=True)
    fits = argument.dtype == parameter.dtype and all(size in (None, found) for size, found in declared)
    if not (fits and argument.flags.c_contiguous and argument.flags.aligned):
        raise TypeError(f"{parameter} is no array of {argument.dtype} with shape {argument.shape}")
    return [argument.ctypes.data, *(n for n, size in zip(argument.shape, parameter.shape, strict=True) if size is None)]
