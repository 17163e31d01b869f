"""Lists, tuples and dicts of values, nested in any way: taken apart into their values and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any


class Structure:
    """A nest of values: the values in order, where each stands, and what puts others into their places."""

    def __init__(self, shape: str, leaves: list[Any], paths: list[str], fill: Callable[[Iterator[Any]], Any]):
        self.shape = shape
        """The nest in words, with an x for each value: what two nests must share to be alike."""
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
        shape, fill = _taken_apart(nest, "", leaves, paths)
        return cls(shape, leaves, paths, fill)


def _taken_apart(nest: Any, path: str, leaves: list[Any], paths: list[str]) -> tuple[str, Callable[..., Any]]:
    if nest is None:
        return "None", lambda values: None
    if isinstance(nest, dict):
        parts = {k: _taken_apart(v, f"{path}[{k!r}]", leaves, paths) for k, v in nest.items()}
        words = ", ".join(f"{k!r}: {shape}" for k, (shape, _) in parts.items())
        return f"{{{words}}}", lambda values: type(nest)((k, fill(values)) for k, (_, fill) in parts.items())
    if isinstance(nest, (list, tuple)) and not hasattr(nest, "dtype"):
        below = [_taken_apart(v, f"{path}[{i}]" if path else str(i), leaves, paths) for i, v in enumerate(nest)]
        words = ", ".join(shape for shape, _ in below)
        make = nest._make if hasattr(nest, "_make") else type(nest)
        return f"({words})", lambda values: make([fill(values) for _, fill in below])
    leaves.append(nest)
    paths.append(path)
    return "x", lambda values: next(values)
