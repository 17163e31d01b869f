"""What a function is made of, as a hash: its code, its constants, and every function that it calls."""

from __future__ import annotations

import hashlib
import re
import types
from typing import Any

import numpy as np


def fingerprint(*things: Any) -> str:
    """A hash that changes whenever the behaviour of the functions, or the text, given may have changed."""
    digest = hashlib.sha256()
    seen: set[int] = set()
    for thing in things:
        _add(thing, digest, seen)
    return digest.hexdigest()


def _add(thing: Any, digest: Any, seen: set[int]) -> None:
    source = getattr(thing, "py_func", thing)
    if isinstance(source, types.FunctionType):
        if id(source) in seen:
            return
        seen.add(id(source))
        digest.update(repr(getattr(thing, "targetoptions", "")).encode())
        _add_code(source.__code__, source.__globals__, digest, seen)
        for cell in source.__closure__ or ():
            _add(_content(cell), digest, seen)
        _add((source.__defaults__, source.__kwdefaults__), digest, seen)
    elif isinstance(thing, np.ndarray):
        digest.update(f"{thing.dtype}{thing.shape}".encode() + thing.tobytes())
    elif isinstance(thing, (tuple, list)):
        digest.update(f"{type(thing).__name__} {len(thing)}".encode())
        for item in thing:
            _add(item, digest, seen)
    elif isinstance(thing, (set, frozenset)):
        _add(sorted(map(repr, thing)), digest, seen)  # whose own order differs from process to process
    elif isinstance(thing, dict):
        _add([part for item in thing.items() for part in item], digest, seen)
    elif isinstance(thing, types.ModuleType):
        digest.update(thing.__name__.encode())
    else:
        digest.update(re.sub(r" at 0x[0-9a-f]+", "", repr(thing)).encode() + b";")


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _add_code(code: types.CodeType, names: dict[str, Any], digest: Any, seen: set[int]) -> None:
    digest.update(code.co_code)
    digest.update(repr((code.co_names, code.co_varnames)).encode())
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _add_code(constant, names, digest, seen)
        else:
            _add(constant, digest, seen)
    for name in code.co_names:
        if name in names:
            digest.update(name.encode())
            _add(names[name], digest, seen)
            if isinstance(names[name], types.ModuleType):
                _add_used(names[name], code.co_names, digest, seen)


def _add_used(module: types.ModuleType, names: tuple[str, ...], digest: Any, seen: set[int]) -> None:
    """What a function may use of a module: those of its names that the code mentions."""
    for name in names:
        value = vars(module).get(name)
        if value is not None and not isinstance(value, types.ModuleType):
            digest.update(name.encode())
            _add(value, digest, seen)
