"""`paddle.onnx.export`, by the framework's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app import onnx as _below


def export(layer: Any, path: str, input_spec: Sequence[Any] | None = None, opset_version: int = _below.OPSET) -> None:
    """Write a layer as `path.onnx`. The operators are those of opset `app.onnx.OPSET`, whichever is asked for."""
    _below.export(layer, path, input_spec)
