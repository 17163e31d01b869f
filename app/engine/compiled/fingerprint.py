"""A hash of functions and of everything that they depend on: bytecode, constants, and the values that they read.

Names of variables and files, comments, layout and docstrings do not count, nor does the process. Compiled code is kept
under `fingerprint`: Numba freezes the values of globals and closures into it, so numbers, strings, tuples and arrays
count by their content, and an object that cannot be frozen by its type. Saved files recognise an operator by
`full_fingerprint`, for which classes and objects of the user's count by their content, too.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import hashlib
import io
import os
import re
import sys
import types
from _ctypes import CFuncPtr
from collections.abc import Iterable
from typing import Any

import numpy as np

from app.ops.definition import OpDef
from app.reading import COMPILER_FLAGS, PACKAGE, public_name

_BUILT_IN = "<frozen "
_OF_PYTHON = (os.path.dirname(os.__file__) + os.sep, _BUILT_IN)
"""What the file names of Python's own modules begin with."""
_OF_NUMBA = ("targetoptions", "options", "signature", "identity")
"""What was given to `vectorize`, `guvectorize` or `stencil`."""
_HAS_DOCSTRING = 0x4000000
"""A flag of code objects, from Python 3.13 on."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), range, slice)


def fingerprint(*things: Any) -> str:
    """Return a hash that changes whenever the behaviour of a given function, or a given text, may have changed."""
    return Walk().hash_of(things)


def full_fingerprint(*things: Any) -> str:
    """Return a hash by which a saved file recognises functions, operators or classes, in another process, too.

    It depends on the version of Python. Objects and functions of libraries count by their names. What can be changed in
    place counts as it was when it was first seen: an operator may keep state in it.
    """
    return _Full(things[0], _STATE).hash_of(things)


def behaviour_fingerprint(*things: Any) -> str | None:
    """Return the same hash; None if it does not tell all that decides what they compute, such as a random stream."""
    walk = _Full(things[0])
    digest = walk.hash_of(things)
    return digest if walk.is_complete else None


class Walk:
    """Walks from functions to everything that they depend on. A function counts by its bytecode."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self._visited: dict[int, tuple[int, Any]] = {}
        """Every object seen, by id, with its number. Objects are kept alive so that no id is used twice."""

    def hash_of(self, things: Iterable[Any]) -> str:
        """Return the hash of objects and their dependencies."""
        for thing in things:
            self.add(thing)
        return self.digest.hexdigest()

    def note(self, kind: str, content: str | bytes = b"") -> None:
        """Add bytes with their length, so that they cannot be confused with the next ones."""
        data = content.encode(errors="surrogatepass") if isinstance(content, str) else content
        self.digest.update(f"{kind} {len(data)}:".encode() + data)

    def add(self, thing: Any) -> None:
        """Add an object."""
        source = getattr(thing, "py_func", thing)
        if isinstance(source, types.FunctionType):
            if self.is_new(source):
                self.add_function(source, thing)
        elif isinstance(thing, type):
            if self.is_new(thing):
                self.add_class(thing)
        elif isinstance(thing, (enum.Enum, np.ndarray, np.generic, np.dtype, *_PLAIN)):
            self._add_value(thing)
        elif isinstance(thing, (tuple, list, set, frozenset, dict)):
            self._add_items(thing)
        elif isinstance(thing, (staticmethod, classmethod, types.MethodType)):
            self._add_parts(thing, thing.__func__, getattr(thing, "__self__", None))
        elif isinstance(thing, functools.partial):
            self._add_parts(thing, thing.func, thing.args, thing.keywords)
        elif isinstance(thing, property):
            self._add_parts(thing, thing.fget, thing.fset, thing.fdel)
        elif isinstance(thing, types.ModuleType):
            self.note("module", thing.__name__)
        elif isinstance(thing, io.IOBase):  # output streams differ between processes and change no result
            self.note("stream")
        else:
            self.add_object(thing)

    def name_of(self, thing: Any) -> str:
        """The name that stands for a function or a class."""
        return f"{thing.__module__}.{thing.__qualname__}"

    def is_new(self, thing: Any) -> bool:
        """Whether an object is seen for the first time; adds its number."""
        is_known = id(thing) in self._visited
        number, _ = self._visited.setdefault(id(thing), (len(self._visited), thing))
        self.note("number", str(number))
        return not is_known

    def add_function(self, function: types.FunctionType, dispatcher: Any) -> None:
        """Add a function or a Numba dispatcher."""
        if self.is_of_library(function):
            self.note("function", self.name_of(function))
            return
        self._add_options(dispatcher)
        if dispatcher is function:
            self.add(tuple(_implementations(function)))
        self._add_code(function.__code__, function.__globals__, function.__doc__)
        for cell in function.__closure__ or ():
            self.add(content_of(cell))
        self.add((function.__defaults__, function.__kwdefaults__))
        if "derived_from" in vars(function):
            self.add(vars(function)["derived_from"])

    def _add_options(self, dispatcher: Any) -> None:
        """Add what was given to `njit`: options, types of variables, and signatures."""
        self.add((getattr(dispatcher, "targetoptions", None), getattr(dispatcher, "locals", None)))
        if not getattr(dispatcher, "_can_compile", True):  # it is compiled for the signatures that were given only
            self.add(tuple(map(str, dispatcher.nopython_signatures)))

    def add_class(self, kind: type) -> None:
        """Add a class by its name, and an enumeration also by its members."""
        self.note("class", self.name_of(kind))
        if issubclass(kind, enum.Enum):
            self._add_items({name: member.value for name, member in kind.__members__.items()})

    def add_object(self, thing: Any) -> None:
        """Add an opaque object by its type, and a callable also by its repr."""
        self.note("object", self.name_of(type(thing)))
        if callable(thing):
            self.note("call", _without_address(thing))
        if isinstance(thing, CFuncPtr):  # its code is called by address
            address = ctypes.cast(thing, ctypes.c_void_p).value
            self.note("address", repr((address, thing.restype, thing.argtypes)))
        if is_of_numba(thing):
            self.add(tuple(getattr(thing, name, None) for name in _OF_NUMBA))
            if getattr(thing, "_frozen", False):  # it is compiled for the signatures that were given only
                self.add(thing.types)
        kernel = getattr(thing, "kernel_ir", None)  # of a stencil
        for inner in (
            getattr(thing, "__wrapped__", None),
            getattr(thing, "_defn", None),
            kernel and kernel.func_id.func,
        ):
            if isinstance(inner, types.FunctionType):
                self.add(inner)

    def add_names(self, names: Iterable[str], around: dict[str, Any]) -> None:
        """Add the values of a function's global names, and the attributes that it uses of modules and classes."""
        names = tuple(sorted(set(names)))
        for name in names:
            if name in around:
                self.add_named(name, around)
                self._add_used(around[name], names, set())

    def add_named(self, name: str, around: dict[str, Any]) -> None:
        """Add a name and its value."""
        self.note("name", name)
        self.add(around[name])

    def _add_used(self, owner: Any, names: tuple[str, ...], above: set[int]) -> None:
        if not isinstance(owner, (types.ModuleType, type)) or id(owner) in above or self.is_of_library(owner):
            return
        inside: dict[str, Any] = vars(owner) if isinstance(owner, types.ModuleType) else dict(vars(owner))
        for name in names:
            if name in inside:
                self.add_named(name, inside)
                self._add_used(inside[name], names, above | {id(owner)})

    def is_of_library(self, thing: Any) -> bool:
        """Whether a function, class or module counts by its name."""
        return _is_of_library(thing)

    def _add_code(self, code: types.CodeType, around: dict[str, Any], docstring: str | None = None) -> None:
        self.note("code", code.co_code)
        self.note("exceptions", getattr(code, "co_exceptiontable", b""))  # from Python 3.11 on
        flags = code.co_flags & ~(_HAS_DOCSTRING | COMPILER_FLAGS)
        self.add((code.co_names, code.co_varnames, code.co_argcount, flags))
        for place, constant in enumerate(code.co_consts):
            if place == 0 and constant == docstring:
                constant = None
            if isinstance(constant, types.CodeType):
                self._add_code(constant, around)
            else:
                self.add(constant)
        self.add_names(code.co_names, around)

    def _add_value(self, value: Any) -> None:
        if isinstance(value, enum.Enum):
            self._add_parts(value, value.name, value.value)
        elif isinstance(value, np.ndarray):
            layout = value.flags.c_contiguous, value.flags.f_contiguous
            self.note("array", repr((value.dtype, value.shape, layout)))
            if value.dtype.hasobject:
                self._add_items(value.ravel().tolist())
            else:
                self.note("items", value.tobytes())
        elif isinstance(value, np.generic):
            self.note("number", repr(value.dtype) + ":" + value.tobytes().hex())
        else:
            self.note(self.name_of(type(value)), repr(value))

    def _add_items(self, items: Any) -> None:
        if isinstance(items, (list, dict)) and not self.is_new(items):  # they may contain themselves
            return
        self.note(self.name_of(type(items)), str(len(items)))
        if isinstance(items, dict):
            items = [part for item in items.items() for part in item]
        elif isinstance(items, (set, frozenset)):
            items = sorted(items, key=_order)
        for item in items:
            self.add(item)

    def _add_parts(self, thing: Any, *parts: Any) -> None:
        self.note("parts", self.name_of(type(thing)))
        for part in parts:
            self.add(part)


_STATE: dict[int, tuple[Any, str]] = {}
"""What can be changed in place, by id, with its hash when it was first seen."""


class _Full(Walk):
    """The walk in which classes and objects of the user's count by their content; with `state`, as at first."""

    def __init__(self, root: Any, state: dict[int, tuple[Any, str]] | None = None):
        super().__init__()
        self._root, self._state = root, state
        home = _home_of(root)
        self._own = home if home.startswith(f"{PACKAGE}.") else home.partition(".")[0]
        self.is_complete = True

    def add(self, thing: Any) -> None:
        if self._state is not None and self._can_change(thing):
            if id(thing) not in self._state:
                self._state[id(thing)] = thing, "itself"  # it may contain itself
                walk = _Full(self._root, self._state)
                walk.add_now(thing)
                self._state[id(thing)] = thing, walk.digest.hexdigest()
            self.note("as first seen", self._state[id(thing)][1])
            return
        self.add_now(thing)

    def _can_change(self, thing: Any) -> bool:
        if isinstance(thing, (list, dict, set)):
            return True
        return isinstance(thing, np.ndarray) and thing.flags.writeable

    def add_now(self, thing: Any) -> None:
        """Add an object as it is now."""
        if isinstance(thing, OpDef):
            self.note("operator", thing.name)
            super().add(getattr(thing, "made_of", None))
        elif isinstance(thing, types.ModuleType):
            self.note("module", public_name(thing.__name__))
        else:
            super().add(thing)

    def name_of(self, thing: Any) -> str:
        if self.is_of_library(thing):
            return f"{public_name(thing.__module__)}.{thing.__qualname__}"
        return str(thing.__qualname__)  # the module is __main__ when a script is run

    def add_named(self, name: str, around: dict[str, Any]) -> None:
        if name.startswith("__"):  # `__file__` and `__name__` depend on where and how a file is run
            self.note("name", name)
        else:
            super().add_named(name, around)

    def add_function(self, function: types.FunctionType, dispatcher: Any) -> None:
        super().add_function(function, dispatcher)
        if not self.is_of_library(function):
            self.add(tuple((name, held) for name, held in vars(function).items() if name not in _OF_FUNCTIONS))

    def add_class(self, kind: type) -> None:
        super().add_class(kind)
        if self.is_of_library(kind) or issubclass(kind, enum.Enum):
            return
        for above in (*kind.__bases__, type(kind)):
            self.add(above)
        top = type(kind).__module__.partition(".")[0]
        adds_names = self.is_of_library(type(kind)) and top not in sys.stdlib_module_names  # as PyTorch's, which count
        for name, value in sorted(vars(kind).items()):
            function = getattr(value, "py_func", getattr(value, "__func__", value))
            counts = isinstance(function, types.FunctionType) or not name.startswith("_" if adds_names else "__")
            if counts and name not in _OF_PROCESS:
                self.note("name", name)
                self.add(value)

    def add_object(self, thing: Any) -> None:
        kind = type(thing)
        if isinstance(thing, types.SimpleNamespace) or not self.is_of_library(kind):
            self.add(kind)
            if self.is_new(thing):
                slots = [name for above in kind.__mro__ for name in vars(above).get("__slots__", ())]
                held = {name: getattr(thing, name) for name in slots if hasattr(thing, name)}
                self._add_items({**held, **getattr(thing, "__dict__", {})})
        else:
            super().add_object(thing)
            self.is_complete &= isinstance(thing, (types.BuiltinFunctionType, np.ufunc)) or is_of_numba(thing)

    def is_of_library(self, thing: Any) -> bool:
        name = _home_of(thing)
        top = name.partition(".")[0]
        if self._own in (name, top):
            return False
        file = getattr(sys.modules.get(name), "__file__", None) or ""
        return super().is_of_library(thing) or top == PACKAGE or "-packages" in file


_OF_FUNCTIONS = ("__wrapped__", "derived_from")
"""Attributes of functions that are added by other means."""
_OF_PROCESS = ("_abc_impl", "_operator", "_where")
"""Attributes of classes that depend on the process: caches, and the line of a PyLayer, for messages."""


def _home_of(thing: Any) -> str:
    """The name of the module that defines a function, a class or an operator; of a module its own."""
    written = getattr(thing, "function", thing) if isinstance(thing, OpDef) else thing
    return str(getattr(written, "__name__" if isinstance(thing, types.ModuleType) else "__module__", None) or "")


def is_of_numba(thing: Any) -> bool:
    """Whether an object was made by Numba, such as by `vectorize`."""
    return type(thing).__module__.startswith("numba.")


def content_of(cell: types.CellType) -> Any:
    """The value of a closure variable; None if it has none yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _is_of_library(thing: Any) -> bool:
    """Whether a function, class or module is part of Python, NumPy or Numba, whose versions are in the cache keys.

    A user's file may have the name of a module of Python, such as code.py.
    """
    name = thing.__name__ if isinstance(thing, types.ModuleType) else getattr(thing, "__module__", None) or ""
    top = name.partition(".")[0]
    file = getattr(sys.modules.get(name), "__file__", None) or _BUILT_IN
    if isinstance(thing, types.FunctionType):
        file = thing.__code__.co_filename
    return top in ("numpy", "numba") or (top in sys.stdlib_module_names and file.startswith(_OF_PYTHON))


def _implementations(function: types.FunctionType) -> list[Any]:
    """The functions that give Numba what it compiles in place of a plain function, by `numba.extending.overload`."""
    if "numba" not in sys.modules:
        return []
    from app.engine.compiled.numba_api import overloads_of  # imported late: it needs Numba

    return overloads_of(function)


def _order(item: Any) -> str:
    """A sort key for the items of a set, whose own order differs between processes."""
    if isinstance(item, (tuple, frozenset)):
        parts = [_order(part) for part in item]
        return _name(type(item)) + repr(sorted(parts) if isinstance(item, frozenset) else parts)
    return _name(type(item)) + (_name(item) if isinstance(item, types.FunctionType) else _without_address(item))


def _without_address(thing: Any) -> str:
    return re.sub(r" at 0x[0-9a-f]+", "", repr(thing), flags=re.IGNORECASE)


def _name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"
