"""Refuses changes of Python objects that cannot follow a Tensor.

A branch over a Tensor is traced whatever the Tensor will decide, and the body of a loop is traced once. The variables
of the function that holds it are merged or carried (see `State`). Anything else that Python changes there would be
changed by tracing, for good. So the user's objects are compared before and after.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from operator import is_, length_hint
from types import CellType, FrameType, FunctionType, GeneratorType, MethodType, ModuleType, SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from app.errors import AppError, ProgramError, add_note
from app.jit.convert.state import State, Undefined, tracer
from app.jit.tracer import CONTAINERS, Again
from app.jit.variable import refusal
from app.nn.layer import Layer
from app.nn.tree import OF_LAYERS
from app.reading import LIBRARIES, PACKAGE, user_place
from app.tensor.modes import modes

_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None)})
_MOST_BYTES = 1 << 16
"""Larger arrays are not watched."""
_MOST_ITEMS = 1000
"""Of larger containers only the items are watched, and not what these hold."""


class ChangedElsewhereError(ProgramError):
    """A change of a Python object in a branch or a loop over a Tensor, which it cannot follow."""


@contextmanager
def watched(state: State, where: str) -> Iterator[None]:
    """Refuse changes inside the block of the user's objects, except of what the State merges or carries.

    An exception that the user's code handles outside of the block is refused, too: it is raised whatever the Tensor is.
    """
    watches, watch = tracer().watches, _Watch(state)
    watches.append(watch)
    try:
        yield
        watch.check(where)
    except Again:
        raise
    except Exception as error:
        reason = f"raised in the branch or loop over a Tensor at {where}, which is traced whatever the Tensor is"
        refusal(ProgramError(f"{type(error).__name__}: {error}\n{reason}, and so cannot be handled"))
        if not isinstance(error, AppError):
            add_note(error, f"{reason}; `assert` raises an error only in calls in which its condition is false")
        raise
    finally:
        watches.remove(watch)


def note_write(owner: Any) -> None:
    """Converted code is about to change an object, and not only to fill a cache."""
    for watch in tracer().watches:
        watch.written.setdefault(id(owner), user_place())


def unwatched(function: Any) -> Any:
    """A function whose changes are accepted: they happen when it is traced."""
    if modes().tracer is None or not modes().tracer.watches:
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        known = [each for watch in tracer().watches for each in watch.known]
        before = [_contents(each.thing) for each in known]
        try:
            return function(*args, **kwargs)
        finally:
            for each, contents in zip(known, before, strict=True):
                now = _contents(each.thing)
                if any(_differences(contents, now)):
                    each.contents = now

    return call


_Path: TypeAlias = tuple[Any, Any, Any]
"""How an object is reached: the step from another object, that object, and its path; None for a name."""


@dataclass
class _Known:
    """An object that may change, how it is reached, and its contents."""

    thing: Any
    path: _Path
    contents: Any


class _Watch:
    """The user's objects as they are when a branch or the body of a loop begins."""

    def __init__(self, state: State):
        self.written: dict[int, str] = {}
        """The objects that converted code changes, by identity, each with the line."""
        self.known: list[_Known] = []
        self._state = state
        seen = {id(part) for _, value in state.current() for part in _nest(value)}
        waiting: list[tuple[Any, _Path]] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if not frame.f_code.co_filename.startswith(LIBRARIES):
                waiting += [(value, (name, None, None)) for name, value in frame.f_locals.items()]
                waiting.append((frame.f_globals, ("", None, None)))
            frame = frame.f_back
        while waiting:
            thing, path = waiting.pop()
            if type(thing) in _PLAIN or id(thing) in seen:
                continue
            seen.add(id(thing))
            contents = _contents(thing)
            if contents is not None:
                self.known.append(_Known(thing, path, contents))
            parts = _parts(thing, contents)
            waiting += [(part, (step, thing, path)) for step, part in parts if type(part) not in _PLAIN]

    def check(self, where: str) -> None:
        """Raise an error about the first change."""
        current = [(name.rpartition(".")[2], value) for name, value in self._state.current()]
        for known in self.known:
            thing, path, before = known.thing, known.path, known.contents
            for step, old, new in _differences(before, _contents(thing)):
                place = path if step is None else (step, thing, path)
                if any(name == place[0] and _is_now(value, new) for name, value in current):
                    continue  # the State's
                line = self.written.get(id(thing), "")
                if old is None and type(before) is dict and not line:
                    continue  # a cache that a library fills, or that was asked whether it has the value
                raise ChangedElsewhereError(
                    f"{_words(place)} changes{line and f' at {line},'} in the branch or loop over a Tensor at {where}. "
                    "It would change once, when the function is traced, whatever the Tensor is: only variables of the "
                    "function itself, and Tensors that are changed in place, follow it. Return the new value and "
                    "assign it there; or, if once is meant, change it in a function with @opsmith.jit.not_to_static"
                )


def _is_now(value: Any, contents: Any) -> bool:
    """Whether a variable of the State has this value, or was deleted."""
    return value is contents or (isinstance(value, Undefined) and contents == ())


def _words(path: _Path) -> str:
    """An object as source reaches it: `self.seen['a']`."""
    step, owner, before = path
    kind = type(owner)
    if before is None or before[0] == "" or (kind is FunctionType and step in owner.__code__.co_freevars):
        return str(step)
    if kind is CellType:
        return _words(before)
    return _words(before) + (f"[{step!r}]" if issubclass(kind, (dict, list, tuple, deque)) else f".{step}")


def _nest(value: Any) -> Iterator[Any]:
    """The containers of a nest, which a State restores."""
    if isinstance(value, CONTAINERS):
        yield value
    if type(value) in (list, dict):
        for item in value.values() if type(value) is dict else value:
            yield from _nest(item)


def _contents(thing: Any) -> Any:
    """What may change in an object: a dict by name, a tuple or bytes; None if nothing may, or if it is a library's."""
    kind: Any = type(thing)
    read = _reader(kind)
    return None if read is None else read(thing)


def _in_cell(cell: CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # nothing was assigned yet
        return ()


_ITERABLE: tuple[Any, ...] = ([], (), range(0), {}, {}.values(), {}.items(), set(), reversed([]))
_ITERATORS = tuple(type(iter(each)) for each in _ITERABLE)
# Users' objects may define any method, so none of theirs is called.
_READERS: dict[Any, Callable[[Any], Any]] = {
    dict: lambda held: dict(dict.items(held)),
    list: lambda held: tuple(list.__iter__(held)),
    deque: lambda held: tuple(deque.__iter__(held)),
    set: lambda held: tuple(sorted(set.__iter__(held), key=id)),
    np.ndarray: lambda array: np.ndarray.tobytes(array) if array.nbytes <= _MOST_BYTES else None,
    bytearray: bytes,
    CellType: _in_cell,
    GeneratorType: lambda it: (it.gi_frame.f_lasti, *it.gi_frame.f_locals.values()) if it.gi_frame else (),
    _ITERATORS: lambda it: (length_hint(it),),
    type: lambda kind: dict(vars(kind)) if _is_users(kind.__module__) else None,
}


@functools.lru_cache(maxsize=1024)
def _reader(kind: Any) -> Callable[[Any], Any] | None:
    """What gives the contents of objects of a type; None if they are not watched."""
    for base, read in _READERS.items():
        if issubclass(kind, base):
            return read
    if issubclass(kind, Layer):
        return lambda layer: {name: value for name, value in vars(layer).items() if name not in OF_LAYERS}
    if not (issubclass(kind, SimpleNamespace) or _is_users(kind.__module__)):
        return None
    slots = [name for base in kind.__mro__ for name in vars(base).get("__slots__", ())]
    return lambda thing: _attributes(thing, ["__dict__", *slots])


def _attributes(thing: Any, names: Iterable[str]) -> dict[str, Any]:
    held: dict[str, Any] = {}
    for name in names:
        with suppress(Exception):
            held[name] = object.__getattribute__(thing, name)
    held.update(held.pop("__dict__", {}))
    return held


def _parts(thing: Any, contents: Any) -> Iterable[tuple[Any, Any]]:
    """The objects that may be reached from an object, each with the step to it."""
    kind = type(thing)
    items = tuple(tuple.__iter__(thing)) if issubclass(kind, tuple) else contents
    if type(items) is dict or isinstance(items, tuple):
        if len(items) > _MOST_ITEMS:
            return ()
        return ((k, v) for k, v in items.items() if not _is_pythons(k)) if type(items) is dict else enumerate(items)
    if issubclass(kind, FunctionType):
        if thing.__code__.co_filename.startswith(LIBRARIES):
            return [("", thing.__wrapped__)] if hasattr(thing, "__wrapped__") else []
        cells = zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True)
        held = [(name, getattr(thing, name)) for name in ("__defaults__", "__kwdefaults__", "__dict__")]
        return [*cells, ("", thing.__globals__), *held]
    if issubclass(kind, MethodType):
        return [("__self__", thing.__self__), ("__func__", thing.__func__)]
    if issubclass(kind, functools.partial):
        return [(name, getattr(thing, name)) for name in ("func", "args", "keywords")]
    if issubclass(kind, (staticmethod, classmethod)):
        return [("__func__", thing.__func__)]
    if issubclass(kind, (enumerate, zip, map, filter)):
        return enumerate(gc.get_referents(thing))
    if issubclass(kind, ModuleType):
        return [("", vars(thing))] if _is_users(thing.__name__) else []
    kept = kind.__module__ == "functools" or kind.__module__.startswith(f"{PACKAGE}.")
    return [("", thing.__wrapped__)] if kept and hasattr(thing, "__wrapped__") else []


def _differences(before: Any, now: Any) -> Iterator[tuple[Any, Any, Any]]:
    """What differs between contents: the name, the old and the new value; None for one that is missing."""
    if type(before) is bytes:
        if before != now:
            yield None, before, now
    elif type(before) is tuple:
        if len(before) != len(now) or not (all(map(is_, before, now)) or all(map(_is_same, before, now))):
            yield None, before, now[0] if len(now) == 1 else now
    elif len(before) != len(now) or not (all(map(is_, before, now)) and all(map(is_, before.values(), now.values()))):
        for name in before | now:
            old, new = before.get(name), now.get(name)
            if not _is_same(old, new) and not _is_pythons(name):
                yield name, old, new


def _is_pythons(name: Any) -> bool:
    """Whether a name is Python's own, as `__warningregistry__` is."""
    return type(name) is str and name.startswith("__")


def _is_same(old: Any, new: Any) -> bool:
    return old is new or (type(old) is type(new) and type(old) in _PLAIN and bool(old == new))


def _is_users(module: str) -> bool:
    """Whether a module is the user's, which a library's file or a built-in module is not."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if not isinstance(file, str):
        return module not in sys.builtin_module_names and not module.startswith("_frozen")
    return not file.startswith(LIBRARIES)
