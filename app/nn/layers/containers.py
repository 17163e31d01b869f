"""Containers of layers: a sequence and a list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from app.nn.layer import Layer


class _Indexed(Layer):
    """Layers whose names are numbers."""

    def _items(self) -> dict[str, Layer]:
        return self._held("_sub_layers")

    def _name_at(self, index: int) -> str:
        names = list(self._items())
        if not -len(names) <= index < len(names):
            raise IndexError(f"{type(self).__name__} has {len(names)} parts, there is none at {index}")
        return names[index]

    def __len__(self) -> int:
        return len(self._items())

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._items().values()))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            part = type(self).__new__(type(self))
            Layer.__init__(part)
            return part.extend(list(self._items().values())[index])
        return self._items()[index if isinstance(index, str) else self._name_at(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        setattr(self, index if isinstance(index, str) else self._name_at(index), value)

    def _renumber(self, values: Iterable[Any]) -> None:
        for name in list(self._items()):
            delattr(self, name)
        for number, value in enumerate(values):
            setattr(self, str(number), value)

    def append(self, value: Any) -> Any:
        """Add one at the end."""
        setattr(self, str(len(self)), value)
        return self

    def extend(self, values: Iterable[Any]) -> Any:
        """Add several at the end."""
        for value in values:
            self.append(value)
        return self

    def insert(self, index: int, value: Any) -> None:
        """Add one before another."""
        values = list(self)
        values.insert(index, value)
        self._renumber(values)

    def __delitem__(self, index: int | slice) -> None:
        values = list(self)
        del values[index]
        self._renumber(values)


def _is_named(layer: Any) -> bool:
    return isinstance(layer, (tuple, list)) and len(layer) == 2 and isinstance(layer[0], str)


class Sequential(_Indexed):
    """Layers, each called with the result of the one before; a pair (name, layer) names one."""

    def __init__(self, *layers: Any):
        super().__init__()
        if len(layers) == 1 and isinstance(layers[0], Mapping):
            layers = tuple(layers[0].items())
        if len(layers) == 1 and isinstance(layers[0], (list, tuple)) and not _is_named(layers[0]):
            layers = tuple(layers[0])
        for index, layer in enumerate(layers):
            self.add_sublayer(*(layer if _is_named(layer) else (str(index), layer)))

    def forward(self, x: Any) -> Any:
        for layer in self.children():
            x = layer(x)
        return x


class LayerList(_Indexed):
    """A list of layers, which become part of the layer that holds it."""

    def __init__(self, sublayers: Iterable[Layer] | None = None):
        super().__init__()
        self.extend(sublayers or [])
