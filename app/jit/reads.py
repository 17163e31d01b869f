"""What a trace reads from outside of the function: Tensors, layers and functions, and the modes of layers.

The function has them from names, attributes and items, which are looked at again before each call. Where one stands for
something else, the function is traced again. Other Python values are constants of a trace.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from app.jit.tracer import MISSING, Tracer
from app.nn.layer import Layer
from app.nn.tree import OF_LAYERS
from app.optimizer.optimizer import Optimizer
from app.reading import LIBRARIES, codes_in
from app.tensor import Tensor
from app.tensor.tape import has_hooks

_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), np.ndarray, np.float32, np.float64})
"""Types of objects that hold no others."""


class Reads:
    """What a trace reads; `hold` says whether that is still there. Made while its tracer is active."""

    def __init__(self, tracer: Tracer, arguments: Iterable[Any], fixed: Iterable[Any]):
        """`arguments` are the Python objects that the function is given, `fixed` what it returns as it is."""
        self._codes = [(f, f.__code__) for f in tracer.called.values() if isinstance(f, FunctionType)]
        self._layers = [(layer, _mode(layer)) for layer in tracer.layers.values()]
        self._gradients = list(tracer.gradients_read.values())
        self._ends = list(tracer.ends.values())
        steps = list(_steps([*tracer.called.values(), *tracer.layers.values(), *arguments]))
        ends = {key for key, captured in tracer.captured.items() if not captured.of_gradient}
        ends.update(id(value) for value in fixed if isinstance(value, Tensor))
        used = _used(steps, {*ends, *tracer.numbers, *tracer.layers, *tracer.called})
        self._places = [
            (partial(_reader(step.holder), step.holder, step.key), step.value)
            for step in steps
            if id(step.value) in used and step.holder is not None
        ]
        lists = {id(step.holder): step.holder for step in steps if isinstance(step.holder, (list, deque))}
        self._lengths = [(held, len(held)) for held in lists.values()]
        self._numbers = list(tracer.numbers.values())

    def hold(self) -> bool:
        """Return whether all is as it was when the function was traced."""
        return (
            all(function.__code__ is code for function, code in self._codes)  # %autoreload replaces it
            and all(_mode(layer) == mode for layer, mode in self._layers)
            and all(read() is value for read, value in self._places)
            and all(len(held) == length for held, length in self._lengths)
            and all((tensor.grad is not None) is is_set for tensor, is_set in self._gradients)
            and all(_same_numbers(tensor._array, numbers) for tensor, numbers in self._numbers)
            and all(tensor._node is None and not has_hooks(tensor) for tensor in self._ends)
        )


def _same_numbers(now: np.ndarray, numbers: np.ndarray) -> bool:
    return now.shape == numbers.shape and now.dtype == numbers.dtype and now.tobytes() == numbers.tobytes()


def _mode(layer: Any) -> tuple[Any, ...]:
    return layer.training, *layer._forward_pre_hooks, None, *layer._forward_post_hooks


class _Step(NamedTuple):
    """How one object holds another."""

    owner: int
    """The object, by identity."""
    holder: Any
    """The dict, list or cell in which it does; None if that cannot change."""
    key: Any
    value: Any


# Which object holds which


def _used(steps: Sequence[_Step], ends: set[int]) -> set[int]:
    """The ends and all objects through which steps lead to them, by identity."""
    owners: dict[int, list[int]] = {}
    for step in steps:
        owners.setdefault(id(step.value), []).append(step.owner)
    used: set[int] = set()
    waiting = list(ends)
    while waiting:
        end = waiting.pop()
        if end not in used:
            used.add(end)
            waiting += owners.get(end, ())
    return used


def _steps(roots: Iterable[Any]) -> Iterator[_Step]:
    """All steps from the roots to Tensors, and to objects of the user."""
    waiting, seen = list(roots), set()
    while waiting:
        owner = waiting.pop()
        if id(owner) in seen:
            continue
        seen.add(id(owner))
        for holder, key, value in _parts(owner):
            if type(value) in _PLAIN:
                continue
            yield _Step(id(owner), holder, key, value)
            if not isinstance(value, Tensor):
                waiting.append(value)


def _parts(owner: Any) -> Iterator[tuple[Any, Any, Any]]:
    """What an object holds: where, under which name or number, and the value. No method of the user's is called."""
    kind: Any = type(owner)
    if issubclass(kind, dict):
        yield from ((owner, key, value) for key, value in dict.items(owner))
    elif issubclass(kind, (list, deque, tuple)):
        items = next(base for base in (list, deque, tuple) if issubclass(kind, base)).__iter__
        if not _PLAIN.issuperset(map(type, items(owner))):
            holder = None if issubclass(kind, tuple) else owner
            yield from ((holder, place, value) for place, value in enumerate(items(owner)))
    elif issubclass(kind, FunctionType):
        yield from _parts_of_function(owner)
    elif issubclass(kind, MethodType):
        yield from ((None, "", value) for value in (owner.__self__, owner.__func__))
    elif issubclass(kind, partial):
        yield from ((None, "", value) for value in (owner.func, owner.args, owner.keywords))
    elif issubclass(kind, type):
        if _is_users(owner.__module__):
            yield from ((owner, name, value) for name, value in vars(owner).items() if name[:2] != "__")
    elif issubclass(kind, (Layer, Optimizer)) or _is_users(kind.__module__):
        yield None, "", kind
        with suppress(Exception):
            held = object.__getattribute__(owner, "__dict__")
            yield from ((held, name, value) for name, value in held.items() if name not in OF_LAYERS)
        for name in (name for base in kind.__mro__ for name in vars(base).get("__slots__", ())):
            yield owner, name, _attribute(owner, name)


def _parts_of_function(function: FunctionType) -> Iterator[tuple[Any, Any, Any]]:
    """The values of the global names and of the variables of outer functions that a function of the user's mentions."""
    if function.__code__.co_filename.startswith(LIBRARIES):
        yield None, "", getattr(function, "__wrapped__", None)
        return
    for cell in function.__closure__ or ():
        yield cell, "", _content(cell, "")
    yield from ((None, "", value) for value in (function.__defaults__, function.__kwdefaults__))
    names, around = {name for code in codes_in(function.__code__) for name in code.co_names}, function.__globals__
    for name in names & around.keys():
        value = around[name]
        yield around, name, value
        if isinstance(value, ModuleType) and _is_users(value.__name__):
            yield from ((vars(value), inner, vars(value)[inner]) for inner in names & vars(value).keys())


@lru_cache(maxsize=1024)
def _is_users(module: str) -> bool:
    """Whether a module is the user's, which a library's file or a built-in module is not."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if not isinstance(file, str):
        return module not in sys.builtin_module_names and not module.startswith("_frozen")
    return not file.startswith(LIBRARIES)


def _item(held: Any, place: int) -> Any:
    return held[place] if place < len(held) else MISSING


def _content(cell: CellType, _: str) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing was assigned yet
        return MISSING


def _attribute(owner: Any, name: str) -> Any:
    try:
        return object.__getattribute__(owner, name)
    except AttributeError:
        return MISSING


def _reader(holder: Any) -> Callable[[Any, Any], Any]:
    """What reads an object from where it is held."""
    if isinstance(holder, dict):
        return dict.get
    if isinstance(holder, (list, deque)):
        return _item
    if isinstance(holder, type):
        return lambda kind, name: vars(kind).get(name)
    return _content if isinstance(holder, CellType) else _attribute
