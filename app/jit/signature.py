"""The arguments of a call: its Tensors and the key of its trace."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import Any, NamedTuple

import numpy as np

from app.errors import ProgramError, ShapeError
from app.ops.dtype import get_default_dtype, name_of
from app.ops.settings import key_of
from app.ops.spec import UNKNOWN
from app.static.inputs import InputSpec
from app.tensor import Tensor

_PLAIN = (bool, int, float, complex, str, bytes, type(None), slice, range)
"""Types of values that are compared by content, as NumPy's numbers are."""


class Arguments:
    """The flattened arguments of one call."""

    __slots__ = ("fill", "key", "objects", "places", "tensors")

    def __init__(self, args: Sequence[Any], kwargs: Mapping[str, Any]):
        self.tensors: list[Any] = []
        """The Tensors among them, or the InputSpecs that stand for them, in order."""
        self.places: list[int | str] = []
        """For each of them, the place or the keyword of the argument that holds it."""
        self.objects: list[Any] = []
        """The objects of other classes, which are constants of a trace."""
        parts = [self._part(value, place) for place, value in enumerate(args)]
        named = {name: self._part(value, name) for name, value in kwargs.items()}
        self.key = (
            get_default_dtype(),
            *(key for key, _ in parts),
            *((name, key) for name, (key, _) in named.items()),
        )
        """The key of the calls that can share a trace."""
        self.fill: Callable[[Sequence[Any]], tuple[list[Any], dict[str, Any]]] = lambda values: (
            [fill(values) for _, fill in parts],
            {name: fill(values) for name, (_, fill) in named.items()},
        )
        """Return positional and keyword arguments with other values in place of the Tensors."""

    def _part(self, value: Any, place: int | str) -> tuple[Any, Callable[[Sequence[Any]], Any]]:
        kind = type(value)
        if isinstance(value, (Tensor, InputSpec)):
            number = len(self.tensors)
            self.tensors.append(value)
            self.places.append(place)
            key = value if isinstance(value, InputSpec) else (kind, value._array.dtype, value.stop_gradient)
            return key, lambda values: values[number]
        if kind in (list, tuple, dict) or hasattr(kind, "_make"):
            items = [self._part(item, place) for item in (value.values() if kind is dict else value)]
            names = tuple(map(key_of, value)) if kind is dict else ()
            key = kind, names, *(key for key, _ in items)
            return key, lambda values: _like(value, [fill(values) for _, fill in items])
        if isinstance(value, (list, tuple, dict, set, frozenset, bytearray, deque, np.ndarray)):
            raise ProgramError(
                f"a traced function takes Tensors, lists, tuples, dicts and Python values, found a {kind.__name__} "
                f"(argument {place!r}); pass a Tensor (opsmith.to_tensor) or a list, tuple or dict"
            )
        if kind not in _PLAIN and not isinstance(value, np.generic):
            self.objects.append(value)
        return key_of(value), lambda values: value


def _like(nest: Any, items: list[Any]) -> Any:
    if type(nest) is dict:
        return dict(zip(nest, items, strict=True))
    return type(nest)._make(items) if hasattr(nest, "_make") else type(nest)(items)


class Input(NamedTuple):
    """What a function is traced for in place of a Tensor."""

    name: str
    shape: Sequence[Any]
    dtype: str
    stop_gradient: bool


def names_of(parameters: Sequence[Parameter], arguments: Arguments) -> list[str]:
    """Different names for the Tensors among the arguments: that of the parameter, numbered if it has several."""
    placed = [p.name for p in parameters if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    others = next((p.name for p in parameters if p.kind is Parameter.VAR_POSITIONAL), "x")
    owners = [
        place if isinstance(place, str) else placed[place] if place < len(placed) else others
        for place in arguments.places
    ]
    names: list[str] = []
    for number, owner in enumerate(owners):
        name = owner if owners.count(owner) == 1 else f"{owner}_{owners[:number].count(owner)}"
        while name in names or (name != owner and name in owners):
            name += "_"
        names.append(name)
    return names


def check_specs(specs: Sequence[Any], tensors: Sequence[Any], label: str) -> list[tuple[int, ...]]:
    """Return the shapes of the InputSpecs, checked against the values of a call."""
    listed = Arguments(specs, {}).tensors
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
