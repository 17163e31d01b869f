"""Networks as ONNX files, which other programs run."""

from __future__ import annotations

from typing import Any

from app.onnx.export import Exportable, export, network_of
from app.onnx.model import model_of
from app.onnx.reference import operator_class
from app.onnx.types import OPSET
from app.ops.definition import OpDef

__all__ = ["OPSET", "export", "reference_operators"]


def __dir__() -> list[str]:
    return __all__


def reference_operators(*given: Exportable | OpDef, **how: Any) -> list[type]:
    """What `onnx.reference.ReferenceEvaluator(file, new_ops=...)` needs to run custom operators that only Python can.

    Name what `@app.custom_op` made, or the network that was exported, with what `export` was told of it.
    """
    found: list[type] = []
    for each in given:
        if isinstance(each, OpDef):
            found.append(operator_class(each.name, each))
        else:
            _, library = model_of(*network_of(each, **how))
            found += [operator_class(name, definition) for name, definition in library.own.items()]
    return found
