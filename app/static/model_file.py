"""The two files of a saved model: what it computes, as JSON that can be read, and its weights, as safetensors.

The last line of the JSON is a checksum of all lines before it, and one of these has the checksum of the weights: what
is read is what was written, and both belong together.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from app.custom.references import OperatorTable, read_operators
from app.errors import FileError, MissingFileError, ProgramError
from app.files import read_file, write_whole
from app.graph import Program
from app.graph.serialise import DAMAGE_ERRORS, program_from_data, program_to_data

FORMAT, VERSION = "opsmith.model", 1
MODEL, WEIGHTS = ".json", ".safetensors"
LARGEST = 1 << 28
"""Bytes of the JSON of a model that is read: a thousand times what a large network takes."""
_LAST = ',\n "sha256": "'


@dataclass
class SavedModel:
    """A network for use: what it computes, from what, and the values that it keeps."""

    program: Program
    inputs: list[str]
    outputs: list[str]
    values: dict[str, np.ndarray]
    """For each variable that persists, its value."""
    training: Program | None = None
    """What it computes in training, where that was told."""
    notes: dict[str, Any] = field(default_factory=dict)
    """What else is to be known of it, as JSON can hold it."""


def paths_of(prefix: Any) -> tuple[Path, Path]:
    """The files of a model, by what their names have in common, or by that of the first."""
    text = str(prefix).removesuffix(MODEL)
    return Path(text + MODEL), Path(text + WEIGHTS)


# Writing


def write_model(prefix: Any, model: SavedModel) -> None:
    """Write the files of a model; those that are there are replaced once the new ones are whole."""
    from safetensors.numpy import save as pack  # imported late: few programs save

    path, weights_path = paths_of(prefix)
    kept = {v.name for program in _programs(model).values() for v in program.list_vars() if v.persistable}
    arrays = {name: np.array(value, order="C") for name, value in model.values.items() if name in kept}
    weights = pack(arrays, {"format": "opsmith.weights"})  # one word alone: more have no fixed order
    table = OperatorTable()
    programs = {name: program_to_data(program, table.number_of) for name, program in _programs(model).items()}
    data = {
        "format": FORMAT,
        "version": VERSION,
        "inputs": model.inputs,
        "outputs": model.outputs,
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        **({"notes": model.notes} if model.notes else {}),
        "custom_operators": table.entries,
        **programs,
    }
    text = _lines(data).removesuffix("\n}")
    write_whole(weights_path, weights)
    write_whole(path, f'{text}{_LAST}{_checksum(text.encode())}"\n}}\n'.encode())


def _programs(model: SavedModel) -> dict[str, Program]:
    return {"program": model.program, **({} if model.training is None else {"training_program": model.training})}


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


_WIDTH = 150
_ROW = 5
"""How deep in the data an operator or a variable stands: it has a line of its own."""


def _lines(value: Any, depth: int = 0) -> str:
    """Data as JSON: on one line what is short or a row, else each item on a line."""
    line = json.dumps(value, allow_nan=False)
    if not (isinstance(value, (dict, list)) and value) or (depth and (len(line) <= _WIDTH or depth >= _ROW)):
        return line
    margin = "\n" + " " * (depth + 1)
    if isinstance(value, list):
        return "[" + ",".join(margin + _lines(item, depth + 1) for item in value) + margin[:-1] + "]"
    items = (f"{margin}{json.dumps(key)}: {_lines(item, depth + 1)}" for key, item in value.items())
    return "{" + ",".join(items) + margin[:-1] + "}"


# Reading


def read_model(
    prefix: Any, custom_ops: Any = (), accept_changed: Collection[str] = (), how: str = "load_inference_model"
) -> SavedModel:
    """The model that was written so. `how` is the call that reads it, for errors to show."""
    path, weights_path = paths_of(prefix)
    data = _checked(path, _content(path, weights_path))
    weights = _content(weights_path, path)
    if _checksum(weights) != data.get("weights_sha256"):
        raise FileError(f"{weights_path} is damaged, or was not saved together with {path}: its checksum differs")
    call = f"{how}({str(prefix)!r}"
    operators = read_operators(data.get("custom_operators"), str(path), custom_ops, accept_changed, call)
    try:
        program = program_from_data(data["program"], operators)
        training = program_from_data(data["training_program"], operators) if "training_program" in data else None
        inputs, outputs = (
            [program.global_block().var(name).name for name in data[key]] for key in ("inputs", "outputs")
        )
        model = SavedModel(program, inputs, outputs, {}, training, data.get("notes", {}))
    except (*DAMAGE_ERRORS, ProgramError) as error:
        raise ProgramError(f"{path}: {error}") from error
    model.values = _values(weights, weights_path, list(_programs(model).values()))
    return model


def _content(path: Path, partner: Path) -> bytes:
    try:
        return read_file(path, LARGEST if path.suffix == MODEL else None)
    except FileNotFoundError:
        reason = f"{partner} is there, and useless without it" if partner.exists() else "nor is there its partner"
        raise MissingFileError(
            f"there is no file {path}; {reason} {'' if partner.exists() else partner}".strip()
        ) from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from error


def _checked(path: Path, content: bytes) -> dict[str, Any]:
    """The data of a file, which is whole, of this kind, and of a version that is known."""
    try:
        data = json.loads(content.decode("utf-8"))
        kind, version = data["format"], data["version"]
    except DAMAGE_ERRORS as error:
        raise FileError(f"{path} is not a saved model, or is damaged: {type(error).__name__} {error}") from error
    if kind != FORMAT:
        raise FileError(f"{path} is not a saved model, or is damaged: its format is {kind!r}, expected {FORMAT!r}")
    if type(version) is not int or version < 1:
        raise FileError(
            f"{path} is not a saved model, or is damaged: its version is {version!r}, expected a whole number from 1 "
            f"to {VERSION}"
        )
    if version > VERSION:
        raise FileError(
            f"{path} has version {version} of its format, and this release reads up to {VERSION}; "
            "a newer one can read it"
        )
    body, _, last = content.rpartition(_LAST.encode())
    if last != f'{_checksum(body)}"\n}}\n'.encode():
        raise FileError(f"{path} is damaged: its checksum differs from what it holds")
    found: dict[str, Any] = data
    return found


def _values(weights: bytes, path: Path, programs: Sequence[Program]) -> dict[str, np.ndarray]:
    from safetensors import SafetensorError
    from safetensors.numpy import load as unpack

    try:
        values: Mapping[str, np.ndarray] = unpack(weights)
    except (SafetensorError, *DAMAGE_ERRORS) as error:
        raise FileError(f"{path} is no file of weights: {error}") from error
    for variable in (v for program in programs for v in program.list_vars() if v.persistable):
        if variable.name not in values:
            raise FileError(f"{path} has no value for {variable.name}; it has {', '.join(values) or 'none'}")
        value = values[variable.name]
        if (value.shape, value.dtype.name) != (variable.shape, variable.dtype):
            raise FileError(f"{variable.name} is {variable.spec}, and in {path} it is {value.dtype}{list(value.shape)}")
    return dict(values)
