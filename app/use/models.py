"""Loads the network that a command line names: a saved model, a run or an ONNX file."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from app.custom.references import ChangedOperatorError
from app.engine import Executor, Scope
from app.errors import AppError, FileError, MissingFileError
from app.experiment.results import Result
from app.files import LARGEST
from app.ops.spec import plain_sizes
from app.run.folder import latest_run
from app.run.network import model_for_use
from app.run.nonfinite import warnings_off
from app.run.options import add_custom_op
from app.run.trust import NamedFiles
from app.static.model_file import SavedModel, paths_of, read_model
from app.use.digits import SIZE

MODEL = "model"
"""The name of the files that are exported from a run."""
ScoreFunction = Callable[[np.ndarray], np.ndarray]
"""A function from pictures of (28, 28) bytes to class scores."""


def load_network(options: argparse.Namespace) -> ScoreFunction:
    """Load the network at `options.model`."""
    path = Path(options.model)
    if path.suffix == ".onnx":
        return _of_onnx(path)
    return _of_model(read_named_model(options.model, options.custom_op, options.accept_changed)[0], options.model)


def _of_model(model: SavedModel, file: str) -> ScoreFunction:
    (name,), (result,) = _one(model.inputs, "input", file), _one(model.outputs, "output", file)
    variable = model.program.global_block().var(name)
    scope, executor = Scope(), Executor()
    scope.values = model.values

    def network(pictures: np.ndarray) -> np.ndarray:
        fed = _as_input(pictures, plain_sizes(variable.shape), variable.dtype, file)
        with warnings_off():
            return np.asarray(executor.run(model.program, {name: fed}, [result], scope=scope)[0])

    return network


def _of_onnx(path: Path) -> ScoreFunction:
    try:
        import onnxruntime  # imported late: an optional dependency
    except ImportError:
        raise AppError(
            f"{path}: ONNX Runtime, which runs .onnx files, is not installed; pip install onnxruntime, "
            "or name the run's folder or a saved model"
        ) from None
    if not path.is_file():
        raise MissingFileError(f"there is no file {path}")
    if path.stat().st_size > LARGEST["onnx"]:
        raise FileError(f"{path} is larger than {LARGEST['onnx']:,} bytes, more than is read of such a file")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _SILENT
    try:
        with _after(SECONDS, lambda: getattr(options, "set_load_cancellation_flag", bool)(True)):
            session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its own exception classes, which differ between releases
        raise FileError(f"{path} cannot be opened by ONNX Runtime: {str(error).splitlines()[0]}") from error
    (entry,) = _one(session.get_inputs(), "input", str(path))
    shape = [size if isinstance(size, int) else -1 for size in entry.shape]
    written = entry.type.removeprefix("tensor(").removesuffix(")")
    dtype = {"float": "float32", "double": "float64"}.get(written, written)
    _one(session.get_outputs(), "output", str(path))

    def network(pictures: np.ndarray) -> np.ndarray:
        fed = _as_input(pictures, shape, dtype, str(path))
        options = onnxruntime.RunOptions()
        options.log_severity_level = _SILENT
        try:
            with _after(SECONDS, lambda: setattr(options, "terminate", True)):
                return np.asarray(session.run(None, {entry.name: fed}, options)[0])
        except Exception as error:
            if options.terminate:
                raise FileError(
                    f"{path} gave no answer within {SECONDS:g} seconds; does it have an endless loop?"
                ) from error
            raise FileError(f"{path} cannot be run by ONNX Runtime: {str(error).splitlines()[0]}") from error

    return network


SECONDS = 10.0
"""How long ONNX Runtime may take to open a file, and to classify a picture."""
_SILENT = 4
"""The level of messages of which ONNX Runtime, which prints names of the file as they are, has none."""


@contextmanager
def _after(seconds: float, end: Callable[[], object]) -> Iterator[None]:
    """Call a function if the block has not ended after so many seconds."""
    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


_PIXELS = ("uint8", "int16", "int32", "int64", "float16", "float32", "float64")
"""The types of inputs that hold all bytes."""


def _one(listed: Sequence[Any], what: str, file: str) -> Sequence[Any]:
    if len(listed) != 1:
        raise AppError(f"{file} has {len(listed)} {what}s; a network that reads digits has 1")
    return listed


def _as_input(pictures: np.ndarray, shape: Sequence[int], dtype: str, name: str) -> np.ndarray:
    """Convert pictures to the shape and type of a network's input: whole numbers to 255, or floats from 0 to 1."""
    if dtype not in _PIXELS:
        raise AppError(f"{name} takes inputs of {dtype}; pictures have bytes, which can be {', '.join(_PIXELS)}")
    sizes, pixels = list(shape[1:]), SIZE * SIZE
    fixed = int(np.prod([size for size in sizes if size != -1]))
    fits = fixed > 0 and pixels % fixed == 0 if sizes.count(-1) == 1 else fixed == pixels and -1 not in sizes
    if not fits:
        raise AppError(f"{name} takes inputs of shape {list(shape)}; pictures of digits have {SIZE} x {SIZE} pixels")
    if shape[0] not in (-1, len(pictures)):
        raise AppError(f"{name} takes inputs of shape {list(shape)}; `predict` gives it one picture at a time")
    array = pictures.astype(dtype, copy=False)
    if dtype.startswith("float"):
        array = array / np.asarray(255, dtype)
    return array.reshape(len(pictures), *sizes)


def add_trust_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that trust user code."""
    add_custom_op(parser)
    about = "an operator to use even if its source has changed"
    parser.add_argument("--accept-changed", action="append", default=[], metavar="FILE:NAME", help=about)


def read_named_model(
    model: str, custom_op: Sequence[str] = (), accept_changed: Sequence[str] = ()
) -> tuple[SavedModel, Path]:
    """Read a saved model, or the network of the first operator of a run's folder; return it with the path of its file
    without a suffix."""
    path = Path(model)
    try:
        if path.is_dir():
            return _of_run(Result(path, (), custom_op, accept_changed)), path / MODEL
        file, weights = paths_of(path)
        if not file.exists() and not weights.exists():
            raise _no_model(path, file)
        return read_model(path, NamedFiles(custom_op), accept_changed), file.with_suffix("")
    except ChangedOperatorError as error:
        raise AppError(f"{error.problem}. To use the new source: --accept-changed {error.changed}") from error


def _no_model(path: Path, file: Path) -> MissingFileError:
    if path.exists():
        problem = f"{path} is a file, and expected is the folder of a run or a saved model"
    else:
        problem = f"there is no run and no saved model {path}: neither a folder {path} nor a file {file}"
    return MissingFileError(f"{problem}; {latest_run()}")


def _of_run(result: Result) -> SavedModel:
    first, run = result.operators[0], result.runs[0]
    _ = result[first].network  # which checks that the weights fit
    return model_for_use(run.config, result.activations[first], run.image, result.weights)
