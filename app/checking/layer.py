"""A Layer as an operator: its parameters are additional inputs, for which checks draw numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from keyword import iskeyword
from typing import Any

from app.errors import ConfigError
from app.nn import Layer
from app.reading import parameters_of


class LayerAsOperator:
    """A Layer as a function of its inputs, followed by its parameters."""

    def __init__(self, layer: Layer | Callable[[], Layer], name: str):
        self.layer = layer if isinstance(layer, Layer) else _instance(layer, name)
        held = dict(self.layer.named_parameters())
        self.shapes = {_name_of(path): tuple(value.shape) for path, value in held.items()}
        self._places = [_place_of(self.layer, path) for path in held]
        parameters = parameters_of(self.layer.forward).values()
        inputs = [p for p in parameters if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD) and p.default is p.empty]
        own = [inspect.Parameter(path, inspect.Parameter.POSITIONAL_OR_KEYWORD) for path in self.shapes]
        self.parameters = (*inputs, *own)

    def __call__(self, *values: Any) -> Any:
        count = len(values) - len(self._places)
        with self._holding(values[count:]):
            return self.layer(*values[:count])

    @contextmanager
    def _holding(self, values: Sequence[Any]) -> Iterator[None]:
        """Inside the block the layer has these values in place of its parameters."""
        before = [getattr(layer, name) for layer, name in self._places]
        try:
            self._set(values)
            yield
        finally:
            self._set(before)

    def _set(self, values: Sequence[Any]) -> None:
        for (layer, name), value in zip(self._places, values, strict=True):
            object.__setattr__(layer, name, value)  # Layer's own __setattr__ would change the parameters


def _name_of(path: str) -> str:
    """The name of a parameter as that of an input: `0.weight`, as in a Sequential, is no name of Python."""
    name = path.replace(".", "_")
    return name if name.isidentifier() and not iskeyword(name) else f"_{name}"


def _instance(kind: Callable[[], Layer], name: str) -> Layer:
    try:
        return kind()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the user's code may raise anything
        raise ConfigError(f"{name} cannot be made without arguments ({type(error).__name__}: {error})") from error


def _place_of(layer: Layer, path: str) -> tuple[Layer, str]:
    *owners, name = path.split(".")
    for owner in owners:
        layer = dict(layer.named_children())[owner]
    return layer, name
