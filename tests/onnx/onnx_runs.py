"""Running what was exported: by ONNX Runtime, or where it lacks a type by ONNX's own reference implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from hypothesis import reject
from onnx.reference import ReferenceEvaluator

from app import static
from app.engine import Scope
from app.graph.program import Program
from app.onnx.model import model_of
from app.ops import REGISTRY
from app.static.saving import for_use

_QUIET = onnxruntime.SessionOptions()
_QUIET.log_severity_level = 4


def program_of(name: str, inputs: Sequence[np.ndarray], attributes: Mapping[str, Any], free: bool) -> Any:
    """A Program that applies one operator; `free` leaves the sizes of its inputs' first axes open."""
    program = Program()
    definition = REGISTRY[name]
    with static.program_guard(program, Program()):
        shapes = [[-1, *x.shape[1:]] if free and x.ndim else x.shape for x in inputs]
        feeds = [static.data(f"x{i}", s, x.dtype.name) for i, (s, x) in enumerate(zip(shapes, inputs, strict=True))]
        block = program.global_block()
        values = definition.prepared(feeds)
        found = block.append_op(definition, [block.as_variable(v) for v in values], dict(attributes))
    return program, [v.name for v in feeds], [v.name for v in found]


def model_for(program: Program, feed: list[str], fetch: list[str]) -> onnx.ModelProto:
    return model_of(for_use(program, feed, fetch, Scope()))[0]


def run_by_runtime(model: onnx.ModelProto, feed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), _QUIET, providers=["CPUExecutionProvider"])
    return session.run(None, dict(feed))


def run_by_reference(model: onnx.ModelProto, feed: Mapping[str, np.ndarray]) -> Any:
    try:
        return ReferenceEvaluator(model).run(None, dict(feed))
    except ValueError as error:
        if "index and self should be the same size" in str(error):  # ONNX permits a smaller index, but nobody is left
            reject()
        raise


def run(model: onnx.ModelProto, feed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The results of ONNX Runtime; of ONNX's own implementation where that lacks a type."""
    if not all(np.size(x) for x in feed.values()):  # of which ONNX Runtime leaves some results as memory was
        return run_by_reference(model, feed)
    try:
        return run_by_runtime(model, feed)
    except Exception as error:
        if "NOT_IMPLEMENTED" not in str(error) and "is not supported with" not in str(error):
            raise
        return run_by_reference(model, feed)
