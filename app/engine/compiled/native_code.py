"""The functions of a generated source as machine code, compiled on the first call and cached on disk.

The key of a source is a hash of everything that its code depends on. It excludes variable names, so that a rebuilt
network is not recompiled.
"""

from __future__ import annotations

import contextlib
import ctypes
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from app.engine.compiled import cache, objects, runtime
from app.engine.compiled.fingerprint import fingerprint
from app.engine.compiled.language import Function, Parameter
from app.engine.compiled.numba_api import add_symbols_of_numba
from app.engine.compiled.vector_functions import engine_of

_loaded: OrderedDict[str, NativeCode] = OrderedDict()
"""The most recently used code, by key."""
LOADED = 256


def load(pattern: str, functions: Mapping[str, Function], called: Mapping[str, Any]) -> NativeCode:
    """Return the functions of a source, which call others by name.

    Sources with the same `pattern` differ only in the names of variables and share their code.
    """
    functions_called = (called[name] for name in sorted(called))
    key = fingerprint(pattern, *functions_called, cache.environment())[:32]
    code = _loaded.get(key)
    if code is None:
        code = _loaded[key] = NativeCode(key, functions, called)
        if len(_loaded) > LOADED:
            _loaded.popitem(last=False)
    else:
        _loaded.move_to_end(key)
    return code


class NativeCode:
    """The functions of one source that Python calls, by name. They are compiled when the first is asked for."""

    def __init__(self, key: str, functions: Mapping[str, Function], called: Mapping[str, Any]):
        self.key = key
        self._functions, self._called = functions, {**runtime.CALLED, **called}
        self._entries: dict[str, Entry] = {}
        self._lock = threading.RLock()
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
            with contextlib.suppress(Exception):  # LLVM fails in many ways
                self._load(msgspec.msgpack.decode(data, type=objects.Objects))
                self.came_from_disk = True
                return
        compiled = objects.compiled(self._functions, self._called, self._symbol)
        cache.keep(where, msgspec.msgpack.encode(compiled))
        self._load(compiled)

    def _load(self, compiled: objects.Objects) -> None:
        if any(name.startswith(("NRT_", "numba_")) for name in compiled.needs):
            add_symbols_of_numba()
        engine = engine_of(compiled.code)
        entries = {}
        for name, function in self._functions.items():
            if function.is_called_by_python:
                entries[name] = Entry(engine, engine.get_function_address(self._symbol(name)), function.parameters)
        self._entries = entries  # all at once, as a signal handler may run the same code


class Entry:
    """A function that Python calls. It holds the engine with the code, which is freed otherwise when others take its
    place."""

    def __init__(self, engine: Any, address: int, parameters: Sequence[Parameter]):
        self._engine = engine
        self._function = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(address)
        self._parameters = parameters[2:]
        self._table = struct.Struct("".join(map(_form, self._parameters)))

    def bound(self, arguments: Sequence[Any]) -> Callable[[int, int], bool]:
        """Return the function with all arguments but the thread's number and the number of threads.

        It returns True if it was aborted.
        """
        numbers: list[Any] = []
        for parameter, argument in zip(self._parameters, arguments, strict=True):
            if parameter.shape is None:
                numbers.append(argument)
            else:
                numbers += _passed(parameter, argument)
        table = self._table.pack(*numbers)

        def call(shard: int, shards: int, _arguments: Any = arguments) -> bool:
            return bool(self._function(shard, shards, table))

        return call


def _form(parameter: Parameter) -> str:
    """How the table of arguments holds one, in the words of `struct`: each number has eight bytes."""
    if parameter.shape is None:
        return "d" if parameter.dtype == "float64" else "q"
    return "q" * (1 + parameter.shape.count(None))


def _passed(parameter: Parameter, array: Any) -> list[int]:
    """Return the address of an array and its sizes that are not declared."""
    declared = parameter.shape or ()
    fits = array.dtype == parameter.dtype and len(array.shape) == len(declared)
    fits = fits and all(size in (None, actual) for size, actual in zip(declared, array.shape, strict=True))
    if not (fits and array.flags.c_contiguous and array.flags.aligned):
        raise TypeError(f"{parameter} is no array of {array.dtype} with shape {array.shape}")
    return [array.ctypes.data, *(n for n, size in zip(array.shape, declared, strict=True) if size is None)]
