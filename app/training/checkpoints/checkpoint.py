"""One checkpoint: all that a run depends on from here on, and the file that holds it.

The file is one of `app.save`'s: arrays and what is told of them, with a checksum; opening it runs no code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from app.errors import AppError, FileError
from app.saving import load, save
from app.training.comparison import Start

KIND, VERSION = "opsmith.checkpoint", 1


class Checkpoint(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A run between two iterations."""

    start: Start
    """Where it goes on."""
    config: dict[str, Any]
    operators: dict[str, str | None]
    """Of each operator, the hash of its source, if it has one."""
    data: str
    """What tells the data set from others."""
    metrics: np.ndarray
    """The bytes of metrics.jsonl."""
    learners: dict[str, dict[str, np.ndarray]]
    """The state of each operator's network."""
    elsewhere: dict[str, np.ndarray]
    """Where random numbers stand that are not drawn from the framework."""


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write the file; it is there once it is whole, and on the disk."""
    save({"kind": KIND, "version": VERSION, **msgspec.structs.asdict(checkpoint)}, path)


def read_checkpoint(path: Path) -> Checkpoint:
    """What was written so; a FileError for anything else, and another AppError for one of another release."""
    if not path.is_file():
        raise FileError(f"{path} is no file")
    try:
        data = load(path, return_numpy=True)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from error
    kind, version = (data.pop(key, None) for key in ("kind", "version")) if isinstance(data, dict) else (None, None)
    if kind != KIND:
        raise FileError(f"{path} is no checkpoint")
    if version != VERSION:
        raise AppError(f"{path} has version {version} of its format, and this release reads {VERSION}")
    try:
        return msgspec.convert(data, Checkpoint)
    except msgspec.ValidationError as error:
        raise FileError(f"{path} is no checkpoint: {error}") from error
