"""Export of networks as ONNX files, which other programs run."""

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


def reference_operators(*networks: Exportable | OpDef, **how: Any) -> list[type]:
    """The `new_ops` of `onnx.reference.ReferenceEvaluator(file, new_ops=...)`, to run opaque custom operators.

    Pass operators of `@opsmith.custom_op`, or the exported network with the arguments of `export`.
    """
    classes: list[type] = []
    for each in networks:
        if isinstance(each, OpDef):
            classes.append(operator_class(each.name, each))
        else:
            _, library = model_of(*network_of(each, **how))
            classes += [operator_class(name, definition) for name, definition in library.own.items()]
    return classes
