"""A network that was trained elsewhere, as a function: out of a run's folder, a saved model or an .onnx file."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from app.deployment.named_model import read_named_model
from app.engine import Executor, Scope
from app.errors import AppError, MissingFileError
from app.ops.spec import plain_sizes
from app.static.model_file import SavedModel
from app.vision.digits import SIZE

Network = Callable[[np.ndarray], np.ndarray]
"""From pictures of (28, 28) bytes to the scores of the classes."""


def load_network(options: argparse.Namespace) -> Network:
    """The network at `options.model`."""
    path = Path(options.model)
    return _of_onnx(path) if path.suffix == ".onnx" else _of_model(*read_named_model(options))


def _of_model(model: SavedModel, file: str) -> Network:
    (name,), (result,) = _one(model.inputs, "input", file), _one(model.outputs, "output", file)
    variable = model.program.global_block().var(name)
    scope, executor = Scope(), Executor()
    scope.values = model.values

    def network(pictures: np.ndarray) -> np.ndarray:
        fed = _as_taken(pictures, plain_sizes(variable.shape), variable.dtype, file)
        return np.asarray(executor.run(model.program, {name: fed}, [result], scope=scope)[0])

    return network


def _of_onnx(path: Path) -> Network:
    try:
        import onnxruntime  # imported late: an extra, which few need
    except ImportError:
        raise AppError(
            f"{path}: ONNX Runtime, which runs .onnx files, is not installed; pip install onnxruntime, "
            "or name the run's folder or a saved model"
        ) from None
    if not path.is_file():
        raise MissingFileError(f"there is no file {path}")
    try:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:  # of its own classes, which differ from release to release
        raise AppError(f"{path} cannot be opened by ONNX Runtime: {str(error).splitlines()[0]}") from error
    (taken,) = _one(session.get_inputs(), "input", str(path))
    shape = [size if isinstance(size, int) else -1 for size in taken.shape]
    dtype = {"tensor(uint8)": "uint8", "tensor(double)": "float64"}.get(taken.type, "float32")
    _one(session.get_outputs(), "output", str(path))

    def network(pictures: np.ndarray) -> np.ndarray:
        return np.asarray(session.run(None, {taken.name: _as_taken(pictures, shape, dtype, str(path))})[0])

    return network


def _one(listed: Sequence[Any], what: str, file: str) -> Sequence[Any]:
    if len(listed) != 1:
        raise AppError(f"{file} has {len(listed)} {what}s; a network that reads digits has 1")
    return listed


def _as_taken(pictures: np.ndarray, shape: Sequence[int], dtype: str, name: str) -> np.ndarray:
    """Pictures in the shape and type that a network takes: bytes, or floats from 0 to 1."""
    sizes, pixels = list(shape[1:]), SIZE * SIZE
    known = int(np.prod([size for size in sizes if size != -1]))
    fits = pixels % max(known, 1) == 0 and known > 0 if sizes.count(-1) == 1 else known == pixels and -1 not in sizes
    if not fits:
        raise AppError(f"{name} takes inputs of shape {list(shape)}; pictures of digits have {SIZE} x {SIZE} pixels")
    taken = pictures.astype(dtype, copy=False)
    if dtype.startswith("float"):
        taken = taken / np.asarray(255, dtype)
    return taken.reshape(len(pictures), *sizes)
