"""Flattening nested lists, tuples and dicts of values, and building them again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any


class Structure:
    """A flattened nest of values, and how to build the nest from other values."""

    def __init__(self, shape: str, leaves: list[Any], paths: list[str], fill: Callable[[Iterator[Any]], Any]):
        self.shape = shape
        """The nest as text, with an x for each value. Equal nests have equal text."""
        self.leaves = leaves
        self.paths = paths
        self._fill = fill

    def filled(self, values: Sequence[Any]) -> Any:
        """The same nest of other values."""
        return self._fill(iter(values))

    @classmethod
    def of(cls, nest: Any) -> Structure:
        """The structure of a nest; None is a place that is empty."""
        leaves: list[Any] = []
        paths: list[str] = []
        shape, fill = _flattened(nest, "", leaves, paths)
        return cls(shape, leaves, paths, fill)


def _flattened(nest: Any, path: str, leaves: list[Any], paths: list[str]) -> tuple[str, Callable[..., Any]]:
    if nest is None:
        return "None", lambda values: None
    if isinstance(nest, dict):
        parts = {k: _flattened(v, f"{path}[{k!r}]", leaves, paths) for k, v in nest.items()}
        text = ", ".join(f"{k!r}: {shape}" for k, (shape, _) in parts.items())
        return f"{{{text}}}", lambda values: type(nest)((k, fill(values)) for k, (_, fill) in parts.items())
    if isinstance(nest, (list, tuple)) and not hasattr(nest, "dtype"):
        below = [_flattened(v, f"{path}[{i}]" if path else str(i), leaves, paths) for i, v in enumerate(nest)]
        text = ", ".join(shape for shape, _ in below)
        make = nest._make if hasattr(nest, "_make") else type(nest)
        return f"({text})", lambda values: make([fill(values) for _, fill in below])
    leaves.append(nest)
    paths.append(path)
    return "x", lambda values: next(values)
