"""PyLayers out of what they were made of: of two functions, and operators of Programs out of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from app.custom.origin import makes
from app.custom.pylayer import PyLayer, definition_of_layer
from app.custom.pylayer_program import Call, definition_of
from app.errors import OperatorError
from app.ops.definition import OpDef


def layer_of_functions(
    forward_fn: Callable[..., Any], backward_fn: Callable[..., Any] | None, name: str | None = None
) -> Any:
    """A class whose forward and backward are functions over Tensors that take no context."""
    functions = {"forward_fn": forward_fn, "backward_fn": backward_fn}
    members = {
        "forward": staticmethod(lambda ctx, *values: forward_fn(*values)),
        "backward": staticmethod(lambda ctx, *gradients: backward_fn(*gradients)),  # type: ignore[misc]
        "_made_by": ("static_pylayer", {k: f for k, f in functions.items() if f is not None}),
    }
    return type(name or forward_fn.__name__, (PyLayer,), members)


@makes("pylayer")
def _of_class(functions: Mapping[str, Any], settings: Mapping[str, Any], where: str) -> OpDef:
    layer = functions["layer"]
    if not (isinstance(layer, type) and issubclass(layer, PyLayer)):
        raise OperatorError(f"{where}: {layer!r} was found, expected a PyLayer")
    call, stops, outs = Call(settings["args"], settings["kwargs"]), settings["stops"], settings["outs"]
    return definition_of(definition_of_layer(layer), call, stops, (), outs)[0]


@makes("static_pylayer")
def _of_functions(functions: Mapping[str, Any], settings: Mapping[str, Any], where: str) -> OpDef:
    return _of_class({"layer": layer_of_functions(functions["forward_fn"], functions.get("backward_fn"))}, settings, "")
