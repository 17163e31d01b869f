"""`grad_fn`: the operator that made a Tensor, under the name that PyTorch prints for it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from app.tensor import Tensor as FrameworkTensor

NAMES = {
    "assign": "Clone",
    "avg_pool2d": "AvgPool2D",
    "broadcast_to": "Expand",
    "cast": "ToCopy",
    "clip": "Clamp",
    "concat": "Cat",
    "divide": "Div",
    "flatten": "View",
    "gather": "Index",
    "index_select": "IndexSelect",
    "max_pool2d": "MaxPool2DWithIndices",
    "multiply": "Mul",
    "negative": "Neg",
    "pick": "NllLoss",
    "reshape": "View",
    "softmax_with_cross_entropy": "NllLoss",
    "square": "Pow",
    "subtract": "Sub",
}
"""PyTorch's names of operators, where the framework's differ."""

_composed: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
"""Names of functions that are one operator in PyTorch and several here, by the last of these."""


def called(name: str, result: Any) -> Any:
    """Set the name of the operator that made a result, for a function that is one operator in PyTorch."""
    node = getattr(result, "_node", None)  # a value of a function that is traced has none
    if node is not None:
        _composed[node] = name
    return result


def named_by(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Name the operator of a function's results."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return wraps(function)(lambda *args, **kwargs: called(name, function(*args, **kwargs)))

    return decorate


class Node:
    """An operator of the recorded graph. It is made on demand; nodes of the same operator are equal."""

    def __init__(self, node: Any):
        self._node = node

    def name(self) -> str:
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that made the operator's inputs, each with the number of its output."""
        return tuple((node_of(source), source[1] if isinstance(source, tuple) else 0) for source in self._node.sources)

    def __getattr__(self, name: str) -> Any:
        """An attribute that forward of a custom Function set in its ctx."""
        context = None if name.startswith("_") else getattr(self._node, "attributes", {}).get("context")
        if not hasattr(context, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(context, name)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Node) and self._node is other._node

    def __hash__(self) -> int:
        return hash(self._node)

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self._node):#x}>"


class AccumulateGrad(Node):
    """The end of the graph: a leaf, to whose `.grad` the gradient is added."""

    def __init__(self, leaf: Any):
        super().__init__(leaf)
        self.variable = leaf

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return ()


def node_of(source: Any) -> Node | None:
    """The node of an operator or of a leaf; None for other values."""
    if source is None:
        return None
    if isinstance(source, FrameworkTensor):
        return AccumulateGrad(source)
    return _kind(name_of(source[0]))(source[0])


def name_of(node: Any) -> str:
    """The name of an operator's backward. It ends in a number unless it is that of a custom Function."""
    definition = node.definition
    if definition.custom:
        return f"{definition.name}Backward"
    if definition.name == "put_part":
        return "CopySlices"
    name = _composed.get(node) or _by_form(node) or NAMES.get(definition.name)
    kind = name or "".join(part.capitalize() for part in definition.name.split("_"))
    return f"{kind}Backward{_NUMBERS.get(definition.name, lambda attributes: 0)(node.attributes)}"


_NUMBERS: dict[str, Callable[[Any], int]] = {
    "clip": lambda attributes: int(None not in (attributes["min"], attributes["max"])),
    "max": lambda attributes: 1,
    "mean": lambda attributes: int(attributes["axis"] is not None),
    "min": lambda attributes: 1,
    "sum": lambda attributes: int(attributes["axis"] is not None),
}
"""The number after `Backward`, for functions with several forms."""


def _by_form(node: Any) -> str | None:
    """The name of an operator that has several names in PyTorch, depending on its arguments."""
    if node.definition.name == "add":
        first = node.sources[0]
        if not isinstance(first, tuple) or first[0].definition.name != "matmul":
            return None
        return "Addmm" if first[0].attributes["transpose_y"] else None
    if node.definition.name == "matmul":
        ranks = len(node.input_shape(0)), len(node.input_shape(1))
        return {(1, 1): "Dot", (2, 1): "Mv", (2, 2): "Mm"}.get(ranks, "UnsafeView")
    if node.definition.name == "take_items":
        kinds = [item[0] if isinstance(item, tuple) else "" for item in node.attributes["items"]]
        if "along" in kinds:
            return "Gather"
        return "Index" if "array" in kinds else "Slice" if all(kind == "slice" for kind in kinds) else "Select"
    if node.definition.name == "transpose":
        perm = node.attributes["perm"]
        return "Permute" if perm is None or sum(i != p for i, p in enumerate(perm)) > 2 else "Transpose"
    return None


@cache
def _kind(name: str) -> type[Node]:
    return type(name, (Node,), {})
