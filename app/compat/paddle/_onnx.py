"""`paddle.onnx.export`, with the framework's exporter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app import onnx as _below


def export(layer: Any, path: str, input_spec: Sequence[Any] | None = None, opset_version: int = _below.OPSET) -> None:
    """Write a layer as `path.onnx`. The opset is always `app.onnx.OPSET`."""
    _below.export(layer, path, input_spec)
