"""The functions of a generated source as machine code, compiled on the first call and cached on disk.

The key of a source is a hash of everything that its code depends on. It excludes variable names, so that a rebuilt
network is not recompiled.
"""

from __future__ import annotations

import contextlib
import inspect
import pickle
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numba

from app.engine.compiled import cache, emit, linkable, runtime
from app.engine.compiled.fingerprint import fingerprint
from app.engine.compiled.language import Function
from app.engine.compiled.numba_api import compute_fingerprint

_loaded: dict[str, NativeCode] = {}
"""The code loaded in this process, by key."""


def load(pattern: str, functions: Mapping[str, Function], called: Mapping[str, Callable[..., Any]]) -> NativeCode:
    """Return the functions of a source, which call others by name.

    Sources with the same `pattern` differ only in the names of variables and share their code.
    """
    functions_called = (called[name] for name in sorted(called))
    key = fingerprint(pattern, *functions_called, _written_by(), cache.environment())[:32]
    if key not in _loaded:
        _loaded[key] = NativeCode(key, functions, called)
    return _loaded[key]


@lru_cache(maxsize=1)
def _written_by() -> str:
    """Return a hash of the code generator; cached code of another version is not used."""
    try:
        return fingerprint(*map(inspect.getsource, (emit, linkable)))
    except OSError:  # an installation without source files
        return ""


class NativeCode:
    """The functions of one source, by name."""

    def __init__(self, key: str, functions: Mapping[str, Function], called: Mapping[str, Callable[..., Any]]):
        self.key = key
        self._functions = functions
        self._called = {**_RUNTIME, **called}
        self._made: dict[tuple[str, tuple[Any, ...]], emit.Native] = {}
        self._entries = {name: Entry(self, name) for name in functions}

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def native(self, name: str, kinds: tuple[Any, ...]) -> emit.Native | None:
        """Return a function compiled for arguments of these types; None if the source has no function of that name."""
        if name not in self._functions:
            return None
        if (name, kinds) not in self._made:
            unique = f"{name}_{self.key}"
            self._made[name, kinds] = emit.native(self._functions[name], kinds, unique, self._called, self.native)
        return self._made[name, kinds]

    def kept(self, name: str, kinds: tuple[Any, ...]) -> tuple[emit.Native, bool]:
        """Return a function for Python, and whether its code came from disk."""
        where = f"program_{self.key}_{fingerprint(name, repr(kinds))[:16]}.bin"
        data = cache.read(where)
        if data is not None:
            with contextlib.suppress(Exception):  # pickle fails in many ways
                return emit.restored(f"{name}_{self.key}", self._functions[name], kinds, *pickle.loads(data)), True
        with cache.memory_given_back():
            made = self.native(name, kinds)
            assert made is not None
            if made.can_be_kept:
                cache.keep(where, pickle.dumps(made.kept()))
        return made, False


class Entry:
    """A function for Python. It is compiled for each combination of argument types."""

    def __init__(self, code: NativeCode, name: str):
        self._code, self._name = code, name
        self._callables: dict[bytes, Any] = {}
        self.compiled: list[emit.Native] = []
        self.from_disk = 0
        """The number of type combinations whose code came from disk."""

    def __call__(self, *arguments: Any) -> bool:
        """Run it; True means that it aborted."""
        return bool(self.ready(arguments)(*arguments))

    def ready(self, arguments: Sequence[Any]) -> Any:
        """Return the function for arguments of these types, compiling it if necessary."""
        types = compute_fingerprint(tuple(arguments))
        found = self._callables.get(types)
        if found is None:
            made, came_from_disk = self._code.kept(self._name, tuple(map(numba.typeof, arguments)))
            self.compiled.append(made)
            self.from_disk += came_from_disk
            found = self._callables[types] = emit.callable_from_python(made)
        return found


_FUNCTIONS: list[Any] = [*runtime.CALLED, runtime.read_only, runtime.stay_apart]
_RUNTIME = {function.__name__: function for function in _FUNCTIONS}
