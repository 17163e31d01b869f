"""What a trace reads from outside of the function: Tensors, layers and functions, and the modes of layers.

The function has them from names, attributes and items, which are looked at again before each call. Where one stands for
something else, the function is traced again. Other Python values are constants of a trace.
"""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from operator import is_
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from app.jit.tracer import MISSING, Captured, Tracer
from app.nn.layer import Layer
from app.nn.tree import OF_LAYERS
from app.optimizer.optimizer import Optimizer
from app.reading import LIBRARIES, codes_in
from app.static.structure import Structure
from app.tensor import Tensor

_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), np.ndarray, np.float32, np.float64})
"""Types of objects that hold no others."""


class Reads:
    """What a trace reads; `hold` says whether that is still there. Made while its tracer is active."""

    def __init__(self, tracer: Tracer, arguments: Iterable[Any], fixed: Iterable[Any]):
        """`arguments` are the Python objects that the function is given, `fixed` what it returns as it is."""
        self._codes = [(f, f.__code__) for f in tracer.called.values() if isinstance(f, FunctionType)]
        self._layers = [(layer, _mode(layer)) for layer in tracer.layers.values()]
        self._gradients = list(tracer.gradients_read.values())
        states = [(vars(layer), name, before) for layer, name, before in tracer.attributes.values()]
        roots = [*tracer.called.values(), *tracer.layers.values(), *arguments]
        steps = list(_steps(roots, {(id(attributes), name) for attributes, name, _ in states}))
        tensors = {key: captured for key, captured in tracer.captured.items() if not captured.of_gradient}
        given = [id(value) for value in fixed if isinstance(value, Tensor)]
        used = _used(steps, {*tensors, *given, *tracer.numbers, *tracer.layers, *tracer.called})
        steps = [step for step in steps if id(step.value) in used]
        times = Counter(id(step.value) for step in steps)
        times.update(id(leaf) for *_, before in states for leaf in Structure.of(before).leaves)
        times.update([*given, *tracer.numbers, *tracer.gradients, *tracer.gradients_read])
        alone = {key: captured for key, captured in tensors.items() if times[key] == 1}
        """The Tensors that the function has from one place, where another one may take over."""
        self._places = [_Place(step, alone) for step in steps if step.holder is not None]
        lists = {id(step.holder): step.holder for step in steps if isinstance(step.holder, (list, deque))}
        self._lengths = [(held, len(held)) for held in lists.values()]
        self._states = [_State(*state, {*tensors, *given}, alone) for state in states]
        self._numbers = list(tracer.numbers.values())

    def hold(self) -> bool:
        """Return whether all is as it was when the function was traced."""
        return (
            all(function.__code__ is code for function, code in self._codes)  # %autoreload replaces it
            and all(_mode(layer) == mode for layer, mode in self._layers)
            and all(place.holds() for place in self._places)
            and all(len(held) == length for held, length in self._lengths)
            and all(state.holds() for state in self._states)
            and all((tensor.grad is not None) is there for tensor, there in self._gradients)
            and all(_same_numbers(tensor._array, numbers) for tensor, numbers in self._numbers)
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
    of_layer: bool = False
    """Whether it is an attribute of a layer."""


class _Place:
    """A name, an attribute or an item, and what it stands for."""

    __slots__ = ("_captured", "_read", "_value")

    def __init__(self, step: _Step, alone: Mapping[int, Captured]):
        self._read = partial(_reader(step.holder), step.holder, step.key)
        self._value = step.value
        self._captured = alone.get(id(step.value)) if step.of_layer else None

    def holds(self) -> bool:
        now = self._read()
        if now is self._value:
            return True
        if self._captured is None or type(now) is not type(self._value):
            return False
        self._value = self._captured.tensor = now
        return True


class _State:
    """An attribute that the function assigns: the Tensors in it may be others, but not its structure."""

    def __init__(
        self, attributes: dict[str, Any], name: str, before: Any, kept: Collection[int], alone: Mapping[int, Captured]
    ):
        """`kept` are the Tensors that the trace uses."""
        self._attributes, self._name = attributes, name
        self._value = Structure.of(None if before is MISSING else before)
        self._kept = [id(leaf) in kept for leaf in self._value.leaves]
        self._captured = [alone.get(id(leaf)) for leaf in self._value.leaves]

    def holds(self) -> bool:
        now = Structure.of(self._attributes.get(self._name))
        if now.shape != self._value.shape:
            return False
        if all(map(is_, now.leaves, self._value.leaves)):
            return True
        for new, old, kept, captured in zip(now.leaves, self._value.leaves, self._kept, self._captured, strict=True):
            if new is not old and kept and (captured is None or type(new) is not type(old)):
                return False
        for new, captured in zip(now.leaves, self._captured, strict=True):
            if captured is not None:
                captured.tensor = new
        self._value = now
        return True


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


def _steps(roots: Iterable[Any], left_out: set[tuple[int, str]]) -> Iterator[_Step]:
    """All steps from the roots to Tensors, and to objects of the user. Some attributes are left out."""
    waiting, seen = list(roots), set()
    while waiting:
        owner = waiting.pop()
        if id(owner) in seen:
            continue
        seen.add(id(owner))
        for holder, key, value in _parts(owner):
            if type(value) in _PLAIN:
                continue
            if (id(holder), key) not in left_out:
                yield _Step(id(owner), holder, key, value, isinstance(owner, Layer))
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
