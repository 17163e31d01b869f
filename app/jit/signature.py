"""The arguments of a call: its Tensors and the key of its trace."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter
from typing import Any

import numpy as np

from app.errors import ProgramError, ShapeError
from app.ops.dtype import get_default_dtype, name_of
from app.ops.settings import attributes_of, key_of
from app.ops.spec import UNKNOWN
from app.static.inputs import InputSpec
from app.tensor import Tensor, to_tensor

_PLAIN = (
    bool, int, float, complex, str, bytes, type(None), np.generic, bytearray, set, frozenset, slice, range
)  # fmt: skip
"""Types of values that are compared by content."""


class Arguments:
    """The flattened arguments of one call."""

    __slots__ = ("fill", "key", "objects", "tensors")

    def __init__(self, args: Sequence[Any], kwargs: Mapping[str, Any]):
        self.tensors: list[Any] = []
        """The Tensors and Variables among them, in order."""
        self.objects: list[Any] = []
        """The objects of other classes, which are constants of a trace."""
        keys, fills = [], []
        for value in args:
            key, fill = self._part(value)
            keys.append(key)
            fills.append(fill)
        named = {}
        for name in kwargs:
            key, named[name] = self._part(kwargs[name])
            keys.append((name, key))
        self.key = (get_default_dtype(), *keys)
        """The key of the calls that can share a trace."""
        self.fill: Callable[[Sequence[Any]], tuple[list[Any], dict[str, Any]]] = lambda values: (
            [fill(values) for fill in fills],
            {name: fill(values) for name, fill in named.items()},
        )
        """Return positional and keyword arguments with the values replaced."""

    def _part(self, value: Any) -> tuple[Any, Callable[[Sequence[Any]], Any]]:
        if isinstance(value, np.ndarray):
            raise ProgramError(
                f"a traced function takes no array of NumPy, found {value.dtype}{list(value.shape)}; pass a Tensor "
                "(opsmith.to_tensor)"
            )
        if isinstance(value, Tensor):
            place = len(self.tensors)
            self.tensors.append(value)
            return (type(value), value._array.dtype, value.stop_gradient), lambda values: values[place]
        if isinstance(value, (list, tuple, deque)):
            return self._sequence(value)
        if isinstance(value, dict):
            parts = {k: self._part(v) for k, v in value.items()}
            made = tuple((key_of(k), key) for k, (key, _) in parts.items())
            factory = value.default_factory if isinstance(value, defaultdict) else None
            kind = type(value), factory, key_of(attributes_of(value))
            return (*kind, made), lambda values: _like(value, {k: fill(values) for k, (_, fill) in parts.items()})
        if isinstance(value, _PLAIN):
            return key_of(value), lambda values: value
        self.objects.append(value)
        return _Same(value), lambda values: value

    def _sequence(self, value: Any) -> tuple[Any, Callable[[Sequence[Any]], Any]]:
        parts = [self._part(v) for v in value]
        key = type(value), getattr(value, "maxlen", None), key_of(attributes_of(value)), *[key for key, _ in parts]
        return key, lambda values: _like(value, [fill(values) for _, fill in parts])


def _like(value: Any, items: Any) -> Any:
    """A container of the same class, with the same attributes, of other items."""
    kind: Any = type(value)
    if hasattr(kind, "_make"):
        return kind._make(items)
    made = tuple.__new__(kind, items) if isinstance(value, tuple) else kind.__new__(kind)
    if attributes := attributes_of(value):
        vars(made).update(attributes)
    if isinstance(value, dict):
        if isinstance(value, defaultdict):
            made.default_factory = value.default_factory
        for key, item in items.items():
            made[key] = item
    elif isinstance(value, list):
        list.extend(made, items)
    elif isinstance(value, deque):
        deque.__init__(made, items, value.maxlen)
    return made


def in_order(
    parameters: Sequence[Parameter], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Arguments in the order of the parameters: keyword arguments become positional ones where they can."""
    placed, named = [*args], {p.name: kwargs[p.name] for p in parameters if p.name in kwargs} | kwargs
    for parameter in parameters[len(args) :]:
        if parameter.kind is not Parameter.POSITIONAL_OR_KEYWORD or parameter.name not in named:
            break
        placed.append(named.pop(parameter.name))
    return placed, named


def names_of(parameters: Sequence[Parameter], arguments: Arguments) -> list[str]:
    """Different names for the Tensors among the arguments: that of the parameter, numbered if it has several."""
    marks = [object() for _ in arguments.tensors]
    args, kwargs = arguments.fill(marks)
    placed = [p.name for p in parameters if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    others = next((p.name for p in parameters if p.kind is Parameter.VAR_POSITIONAL), "x")
    named = [*zip(placed, args, strict=False), (others, args[len(placed) :]), *kwargs.items()]
    names: dict[int, str] = {}
    for name, value in named:
        held = [leaf for leaf in _leaves(value) if any(leaf is mark for mark in marks)]
        for number, mark in enumerate(held):
            own = name if len(held) == 1 else f"{name}_{number}"
            while own in names.values() or (own != name and own in (*placed, *kwargs)):
                own += "_"
            names[id(mark)] = own
    return [names[id(mark)] for mark in marks]


def _leaves(nest: Any) -> Iterator[Any]:
    if isinstance(nest, (dict, list, tuple, deque)):
        for item in nest.values() if isinstance(nest, dict) else nest:
            yield from _leaves(item)
    else:
        yield nest


class _Same:
    """An object in a key, compared by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def check_specs(specs: Sequence[Any], tensors: Sequence[Any], label: str) -> list[tuple[int, ...]]:
    """Return the shapes of the InputSpecs, checked against the values of a call."""
    listed = flat_specs(specs)
    if len(listed) != len(tensors):
        raise ProgramError(f"{label} has {len(listed)} InputSpecs, but was called with {len(tensors)} values")
    for place, (spec, tensor) in enumerate(zip(listed, tensors, strict=True)):
        shape, dtype = tensor._array.shape, name_of(tensor._array.dtype)
        fits = len(shape) == len(spec.shape) and all(
            want in (UNKNOWN, size) for want, size in zip(spec.shape, shape, strict=True)
        )
        if not fits or dtype != spec.dtype:
            raise ShapeError(f"{label}: value {place} is {dtype}{list(shape)}, but its InputSpec is {spec}")
    return [spec.shape for spec in listed]


def flat_specs(specs: Any) -> list[InputSpec]:
    """The InputSpecs of a nest, in order."""
    if isinstance(specs, InputSpec):
        return [specs]
    if isinstance(specs, Mapping):
        specs = list(specs.values())
    return [spec for each in specs for spec in flat_specs(each)] if isinstance(specs, (list, tuple)) else []


def _sizes(shape: Sequence[int]) -> list[int]:
    return [2 if size == UNKNOWN else size for size in shape]


def examples_of(specs: Any) -> Any:
    """Replace InputSpecs by example values; open sizes become 2."""
    if isinstance(specs, InputSpec):
        return to_tensor(np.ones(_sizes(specs.shape)), specs.dtype)
    if isinstance(specs, Mapping):
        return {name: examples_of(spec) for name, spec in specs.items()}
    return type(specs)(map(examples_of, specs)) if isinstance(specs, (list, tuple)) else specs


def examples_like(variables: Sequence[Any], fill: Any) -> Arguments:
    """Arguments with example values for the traced arguments of an earlier call, and its other arguments."""
    made = Arguments((), {})
    made.fill = fill
    for variable in variables:
        tensor = Tensor(np.ones(_sizes(variable.spec.shape), variable.dtype))
        tensor.stop_gradient = variable.stop_gradient
        made.tensors.append(tensor)
    return made
