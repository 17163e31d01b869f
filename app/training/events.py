"""The lines of a run's metrics, each checked as its kind: what is read is what a run could have written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from app.errors import FileError, MissingFileError
from app.files import open_file
from app.training.run_folder import METRICS

Number = float | None
"""What was infinite, or no number, is None."""
Index = Annotated[int, Meta(ge=0, le=10**12)]


class Iteration(msgspec.Struct, frozen=True):
    """The loss and the accuracy of one batch in training."""

    operator: str
    epoch: Index
    iteration: Index
    loss: Number
    accuracy: Number
    seed: int | None = None


class Epoch(msgspec.Struct, frozen=True):
    """What an epoch cost, and what the network was worth after it."""

    operator: str
    epoch: Index
    seconds: Number
    test_accuracy: Number
    test_loss: Number
    seed: int | None = None


class Activations(msgspec.Struct, frozen=True):
    """What the units of a hidden layer did on the test images after an epoch."""

    operator: str
    epoch: Index
    layer: Index
    mean: Number
    zeros: Number
    dead: Number
    seed: int | None = None


class Cost(msgspec.Struct, frozen=True):
    """The seconds of a call of an operator alone on an array of so many elements."""

    operator: str
    size: Index
    forward: Number
    backward: Number


class Data(msgspec.Struct, frozen=True):
    """What a run was trained and tested on."""

    origin: str
    verified: bool
    sample: bool
    training: Index
    test: Index
    shape: list[Index]


class Start(msgspec.Struct, frozen=True):
    """On what machine and data a run began, and how the engine runs each operator's network."""

    at: str
    machine: dict[str, str]
    data: Data
    engines: dict[str, str]


class _Kind(msgspec.Struct, frozen=True):
    event: str


KINDS: dict[str, type[msgspec.Struct]] = {
    "start": Start,
    "iteration": Iteration,
    "epoch": Epoch,
    "activations": Activations,
    "cost": Cost,
}
"""The events that are read. There are others, which are passed over."""


def read(folder: Path) -> Iterator[Any]:
    """The events of the run in a folder. A last line that is not whole, as a killed run leaves one, is none."""
    path = folder / METRICS
    try:
        with open_file(path) as lines:
            for number, line in enumerate(lines, 1):
                event = _event(line, f"{path}, line {number}") if line.endswith(b"\n") else None
                if event is not None:
                    yield event
    except FileNotFoundError:
        raise MissingFileError(f"{folder} is not the folder of a run: it has no {METRICS}") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from error


def _event(line: bytes, where: str) -> Any:
    try:
        kind = KINDS.get(msgspec.json.decode(line, type=_Kind).event)
        return None if kind is None else msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{where}: {error}; the run wrote no such line") from error
