"""Numba functions that Python calls, compiled once for each combination of argument types and kept on disk.

Numba's own `cache=True` goes by the time of the function's file, and misses a change of a variable or of a function in
another file. Here the name of a file in the cache is a hash of everything that the function depends on.
"""

from __future__ import annotations

import os
import pickle
from typing import Any

from app.engine.compiled import cache
from app.engine.compiled.fingerprint import fingerprint
from app.engine.compiled.numba_api import CompileResult, NullCache, serialize
from app.engine.compiled.read_only import only_reads


class KeptOverloads(NullCache):
    """What a Numba function asks for compiled code, and gives it to."""

    def __init__(self, dispatcher: Any):
        self._dispatcher = dispatcher
        self._read: dict[Any, bool] = {}

    def only_reads(self, signature: tuple[Any, ...]) -> bool:
        """Whether the code for these types, which has been loaded or compiled, provably writes into no array."""
        return self._read[signature]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code for these types from disk; None if it is not there, or damaged."""
        data = cache.read(self._file(sig))
        if data is None:
            return None
        try:
            read, payload = pickle.loads(data)
            target_context.refresh()
            overload = CompileResult._rebuild(target_context, *payload)
        except Exception:  # pickle and LLVM fail in many ways
            return None
        self._read[sig] = read
        return overload

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code, unless it is valid in this process only."""
        self._read[sig] = read = only_reads(self._dispatcher, sig)
        if not (data.objectmode or data.lifted or data.library.has_dynamic_globals):
            cache.keep(self._file(sig), serialize.dumps((read, data._reduce())))

    def _file(self, sig: Any) -> str:
        code = self._dispatcher.py_func.__code__
        # the code that raises an error names its line, so it is another one if the function has moved in its file
        line = f"{code.co_filename}:{code.co_firstlineno}" if os.path.exists(code.co_filename) else ""
        return f"overload_{fingerprint(self._dispatcher, repr(sig), line, cache.environment())[:32]}.bin"
