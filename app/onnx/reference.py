"""Opaque custom operators as operators of `onnx.reference.ReferenceEvaluator`."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.onnx.library import DOMAIN
from app.ops.definition import OpDef


def operator_class(name: str, definition: OpDef) -> type:
    """The class that runs one operator: it calls the user's function with the node's attributes."""
    from onnx.helper import get_attribute_value
    from onnx.reference.op_run import OpRun

    def run(self: Any, *arrays: np.ndarray, **ignored: Any) -> tuple[Any, ...]:
        attributes = {a.name: get_attribute_value(a) for a in self.onnx_node.attribute}
        settings = {k: _as(v, definition.attributes.get(k)) for k, v in attributes.items()}
        returned = definition.kernel(*arrays, **{**definition.attributes, **settings})
        results = returned if isinstance(returned, tuple) else (returned,)
        return tuple(np.asarray(r) for r in results[: len(self.onnx_node.output)])

    return type(name, (OpRun,), {"op_domain": DOMAIN, "_run": run, "__doc__": definition.__doc__})


def _as(value: Any, default: Any) -> Any:
    """The value of an attribute as a setting: ONNX has no booleans and no tuples, and stores strings as bytes."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(default, bool):
        return bool(value)
    return value if isinstance(value, (int, float)) else tuple(_as(v, None) for v in value)
