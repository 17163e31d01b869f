"""What a function is made of, as a hash: its code, its constants, and every function that it calls."""

from __future__ import annotations

import hashlib
import io
import re
import types
from collections.abc import Iterable
from typing import Any

import numpy as np


def fingerprint(*things: Any) -> str:
    """A hash that changes whenever the behaviour of the functions, or the text, given may have changed."""
    return Walk().hash_of(things)


class Walk:
    """The way from functions to all that they depend on. A function is known by its code here, which Python made."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self._seen: set[int] = set()

    def hash_of(self, things: Iterable[Any]) -> str:
        """The hash of things and of what they depend on."""
        for thing in things:
            self.add(thing)
        return self.digest.hexdigest()

    def add(self, thing: Any) -> None:
        """Bring a thing into the hash."""
        source = getattr(thing, "py_func", thing)
        if isinstance(source, types.FunctionType):
            if id(source) not in self._seen:
                self._seen.add(id(source))
                self.add_function(source, thing)
        elif isinstance(thing, (np.ndarray, np.generic)):
            self.digest.update(f"{thing.dtype}{thing.shape}".encode() + thing.tobytes())
        elif isinstance(thing, (tuple, list)):
            self.digest.update(f"{type(thing).__name__} {len(thing)}".encode())
            for item in thing:
                self.add(item)
        elif isinstance(thing, (set, frozenset)):
            self.add(sorted(map(repr, thing)))  # whose own order differs from process to process
        elif isinstance(thing, dict):
            self.add([part for item in thing.items() for part in item])
        elif isinstance(thing, types.ModuleType):
            self.digest.update(thing.__name__.encode())
        elif isinstance(thing, io.IOBase):  # where output goes differs from process to process, and changes no results
            self.digest.update(b"a stream;")
        else:
            self.digest.update(re.sub(r" at 0x[0-9a-f]+", "", repr(thing)).encode() + b";")

    def add_function(self, function: types.FunctionType, given: Any) -> None:
        """Bring a function into the hash, which was given as itself or as one of Numba's."""
        self.digest.update(repr(getattr(given, "targetoptions", "")).encode())
        self._add_code(function.__code__, function.__globals__)
        self.add_kept(function)

    def add_kept(self, function: types.FunctionType) -> None:
        """Bring into the hash what a function keeps: the variables around it, and its defaults."""
        for cell in function.__closure__ or ():
            self.add(_content(cell))
        self.add((function.__defaults__, function.__kwdefaults__))

    def _add_code(self, code: types.CodeType, around: dict[str, Any]) -> None:
        self.digest.update(code.co_code)
        self.digest.update(repr((code.co_names, code.co_varnames)).encode())
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._add_code(constant, around)
            else:
                self.add(constant)
        self.add_names(code.co_names, around)

    def add_names(self, names: Iterable[str], around: dict[str, Any]) -> None:
        """Bring into the hash what names of a function stand for; of a module, those of its names among them."""
        names = tuple(names)
        for name in names:
            if name in around:
                self.digest.update(name.encode())
                self.add(around[name])
                if isinstance(around[name], types.ModuleType):
                    self._add_used(around[name], names)

    def _add_used(self, module: types.ModuleType, names: tuple[str, ...]) -> None:
        for name in names:
            value = vars(module).get(name)
            if value is not None and not isinstance(value, types.ModuleType):
                self.digest.update(name.encode())
                self.add(value)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None
