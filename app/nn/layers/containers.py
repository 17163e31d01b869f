"""A sequence of layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.nn.layer import Layer


def _is_named(layer: Any) -> bool:
    return isinstance(layer, (tuple, list)) and len(layer) == 2 and isinstance(layer[0], str)


class Sequential(Layer):
    """Layers, each called with the result of the one before; a pair (name, layer) names one."""

    def __init__(self, *layers: Any):
        super().__init__()
        if len(layers) == 1 and isinstance(layers[0], Mapping):
            layers = tuple(layers[0].items())
        if len(layers) == 1 and isinstance(layers[0], (list, tuple)) and not _is_named(layers[0]):
            layers = tuple(layers[0])
        for index, layer in enumerate(layers):
            self.add_sublayer(*(layer if _is_named(layer) else (str(index), layer)))

    def __len__(self) -> int:
        return len(self._held("_sub_layers"))

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._held("_sub_layers").values()))

    def __getitem__(self, index: int | slice | str) -> Any:
        if isinstance(index, str):
            return self._held("_sub_layers")[index]
        chosen = list(self)[index]
        return Sequential(*chosen) if isinstance(index, slice) else chosen

    def forward(self, x: Any) -> Any:
        for layer in self.children():
            x = layer(x)
        return x
