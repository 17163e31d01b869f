"""The two files of a saved model: its Programs as readable JSON, and its weights as safetensors.

The JSON contains the checksum of the weights and, in its last line, a checksum of itself. So damage and mixed-up files
are found.
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
from app.files import LARGEST, read_file, write_whole
from app.graph import Program
from app.graph.serialise import DAMAGE_ERRORS, program_from_data, program_to_data

FORMAT, VERSION = "opsmith.model", 1
MODEL, WEIGHTS = ".json", ".safetensors"
_LAST = ',\n "sha256": "'


@dataclass
class SavedModel:
    """A network for inference: its Program, its inputs and outputs, and the values of its variables."""

    program: Program
    inputs: list[str]
    outputs: list[str]
    values: dict[str, np.ndarray]
    """The value of each persistable variable."""
    training: Program | None = None
    """The Program in training mode, if there is one."""
    notes: dict[str, Any] = field(default_factory=dict)
    """Other information, as JSON values."""


def paths_of(prefix: Any) -> tuple[Path, Path]:
    """The files of a model, by their common prefix or by the name of the JSON file."""
    text = str(prefix).removesuffix(MODEL)
    return Path(text + MODEL), Path(text + WEIGHTS)


# Writing


def write_model(prefix: Any, model: SavedModel) -> None:
    """Write the files of a model; existing ones are replaced once the new ones are complete."""
    from safetensors.numpy import save as pack  # imported late: few programs save

    path, weights_path = paths_of(prefix)
    persistable = {v.name for program in _programs(model).values() for v in program.list_vars() if v.persistable}
    arrays = {name: np.array(value, order="C") for name, value in model.values.items() if name in persistable}
    weights = pack(arrays, {"format": "opsmith.weights"})  # one entry: the library orders several at random
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
"""The nesting depth of operators and variables, which are written on one line each."""


def _lines(value: Any, depth: int = 0) -> str:
    """Format data as JSON: short values and rows on one line, others with each item on its own line."""
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
    prefix: Any,
    custom_ops: Any = (),
    accept_changed: Collection[str] = (),
    how: str = "load_inference_model",
    links: bool = True,
) -> SavedModel:
    """Read a model that `write_model` wrote. `how` is the public function that reads it, for error messages.

    Without `links`, as in the folder of a run, its files are no symbolic links.
    """
    path, weights_path = paths_of(prefix)
    data = _checked(path, _content(path, weights_path, links))
    weights = _content(weights_path, path, links)
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


def _content(path: Path, partner: Path, links: bool) -> bytes:
    try:
        return read_file(path, LARGEST["model" if path.suffix == MODEL else "arrays"], links)
    except FileNotFoundError:
        reason = f"{partner} is useless without it" if partner.exists() else f"{partner} does not exist either"
        raise MissingFileError(f"there is no file {path}; {reason}") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from error


def _checked(path: Path, content: bytes) -> dict[str, Any]:
    """The data of a file, after its format, version and checksum were verified."""
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
        raise FileError(f"{path} is damaged: its checksum does not match its content")
    checked: dict[str, Any] = data
    return checked


def _values(weights: bytes, path: Path, programs: Sequence[Program]) -> dict[str, np.ndarray]:
    from safetensors import SafetensorError
    from safetensors.numpy import load as unpack

    try:
        values: Mapping[str, np.ndarray] = unpack(weights)
    except (SafetensorError, *DAMAGE_ERRORS) as error:
        raise FileError(f"{path} is not a file of weights: {error}") from error
    for variable in (v for program in programs for v in program.list_vars() if v.persistable):
        if variable.name not in values:
            raise FileError(f"{path} has no value for {variable.name}; it has {', '.join(values) or 'none'}")
        value = values[variable.name]
        if (value.shape, value.dtype.name) != (variable.shape, variable.dtype):
            raise FileError(f"{variable.name} is {variable.spec}, and in {path} it is {value.dtype}{list(value.shape)}")
    return dict(values)
