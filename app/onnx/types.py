"""Element types in ONNX, and the types that ONNX operators take."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from app.errors import ExportError
from app.ops.dtype import FLOATS, NAMES

OPSET = 21
"""The operator set of files, from 2024. ONNX Runtime has it from 1.20 on."""
IR_VERSION = 10
"""The version of the file format of that time."""

_WRITTEN = {"float32": "float", "float64": "double"}
_NAMES = {f"tensor({_WRITTEN.get(name, name)})": name for name in NAMES}
_WIDER = ("int32", "int64", "float32", "float64", "bool")
"""The types to compute in, in order, if an operator does not take a value's own type."""


def package() -> Any:
    """The package `onnx`, imported at the first export."""
    try:
        import onnx
        import onnx.checker
        import onnx.shape_inference
    except ImportError as error:
        raise ExportError(
            "exporting to ONNX needs the package onnx: python -m pip install onnx, "
            "or in a checkout: .venv/bin/python -m pip install -e '.[onnx]'"
        ) from error
    return onnx


def number_of(dtype: str) -> int:
    """The number of an element type in an ONNX file."""
    return int(getattr(package().TensorProto, _WRITTEN.get(dtype, dtype).upper()))


def schema_of(op_type: str) -> Any:
    """The schema of an ONNX operator: its inputs, outputs and types."""
    onnx = package()
    try:
        return onnx.defs.get_schema(op_type, OPSET, "")
    except onnx.defs.SchemaError as error:
        raise ExportError(f"ONNX has no operator {op_type!r} in its operator set {OPSET}") from error


def types_of(schema: Any, written: str) -> frozenset[str]:
    """The element types of a parameter or a type variable."""
    for constraint in schema.type_constraints:
        if constraint.type_param_str == written:
            return frozenset(_NAMES[t] for t in constraint.allowed_type_strs if t in _NAMES)
    return frozenset([_NAMES[written]] if written in _NAMES else [])


def computed_in(dtype: str, allowed: Collection[str]) -> str:
    """The type to which a value is cast for an operator that takes the types `allowed`."""
    if dtype in allowed:
        return dtype
    wider = FLOATS[FLOATS.index(dtype) :] if dtype in FLOATS else _WIDER
    for name in (*wider, *_WIDER):
        if name in allowed:
            return name
    return dtype
