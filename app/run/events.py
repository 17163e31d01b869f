"""The events of a run: types for writing and reading the lines of metrics.jsonl."""

from __future__ import annotations

import itertools
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec
from msgspec import Meta

from app import machine
from app.data import Dataset
from app.errors import FileError, MissingFileError
from app.files import LARGEST, open_file

METRICS = "metrics.jsonl"

Number = float | None
"""A number that is written to JSON, and read back, as None if it is NaN or infinite."""
Fraction = Annotated[float, Meta(ge=0, le=1)]
Seconds = Annotated[float, Meta(ge=0, le=1e12)]
Index = Annotated[int, Meta(ge=0, le=10**12)]


class Event(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event"):
    """The base of events recorded during a run. The key `event` of a line holds its kind."""


class Data(msgspec.Struct, frozen=True, omit_defaults=True):
    """The training and test data of a run."""

    origin: str
    verified: bool
    sample: bool
    training: Index
    test: Index
    shape: list[Index]
    validation: Index = 0
    """The number of training images held back for validation after every epoch."""
    hash: str = ""
    """The hash of all images and labels."""


class Start(Event, frozen=True, tag="start"):
    """The machine and the data of a run, how the engine runs each operator's network, and the hash of each operator's
    source, which built-in operators have not."""

    at: str
    machine: dict[str, str]
    data: Data
    engines: dict[str, str]
    sources: dict[str, str | None] = {}

    @classmethod
    def now(cls, dataset: Dataset, digest: str, engines: dict[str, str], sources: Mapping[str, str | None]) -> Start:
        """Return the first event of a run that starts now, on this machine; `digest` is the hash of the images."""
        data = Data(
            origin=dataset.origin.replace(f"{Path.cwd()}{os.sep}", ""),  # reports are forwarded
            verified=dataset.verified,
            sample=dataset.is_sample,
            training=len(dataset.train_images),
            test=len(dataset.test_images if dataset.final_images is None else dataset.final_images),
            shape=list(dataset.image_shape),
            validation=0 if dataset.final_images is None else len(dataset.test_images),
            hash=digest,
        )
        return cls(time.strftime("%Y-%m-%d %H:%M:%S"), machine.describe(), data, engines, dict(sources))


class Checked(Event, frozen=True, tag="checked"):
    """The result of checking an operator's gradient before training; see `opsmith.checking.before_training`."""

    operator: str
    state: str
    words: str


class Iteration(Event, frozen=True, tag="iteration"):
    """The loss and the accuracy of one batch in training."""

    operator: str
    epoch: Index
    iteration: Index
    loss: Number
    accuracy: Fraction | None


class Epoch(Event, frozen=True, tag="epoch"):
    """The training time of an epoch, and the accuracy and loss of the network after it.

    They are measured on the test images, or on the validation images if some were held back.
    """

    operator: str
    epoch: Index
    seconds: Annotated[float, Meta(gt=0, le=1e12)]
    test_accuracy: Fraction
    test_loss: Number
    alone: bool = True
    """Whether no other training ran at the same time, by which the seconds would depend on it."""


class Parameters(Event, frozen=True, tag="parameters"):
    """How far the last step of an epoch moved each parameter of a network, and what the operator's own ones are."""

    operator: str
    epoch: Index
    steps: Mapping[str, Number]
    """The norm of the step of each parameter over the learning rate: with plain SGD, the norm of its gradient."""
    own: Mapping[str, tuple[Number, Number, Number]] = {}
    """The mean, the minimum and the maximum of each parameter of the operator."""


class Tested(Event, frozen=True, tag="tested"):
    """The test accuracy and loss of a trained network whose epochs were tested on validation images."""

    operator: str
    accuracy: Fraction
    loss: Number


class Nonfinite(Event, frozen=True, tag="nonfinite"):
    """A step after which the loss or the weights were NaN or infinite, and the operator that made them so."""

    operator: str
    epoch: Index
    iteration: Index
    where: str
    what: str


class Cost(Event, frozen=True, tag="cost"):
    """The time of a call of an operator by itself, on arrays of the size that it has in the network: the minimum of
    several calls."""

    operator: str
    forward: Seconds
    backward: Seconds


class End(Event, frozen=True, tag="end"):
    """The last line of a run that ended: without it, lines may be missing."""

    weights: dict[str, str] = {}
    """The hash of each operator's trained weights."""


NO_END = f"its {METRICS} has no last line, as the run has not ended or the file was cut off, so figures may be missing"
"""The message for the folder of a run without an `End`."""

Record = Callable[[Event], None]
AnyEvent = Start | Checked | Iteration | Epoch | Parameters | Tested | Nonfinite | Cost | End


def line(event: Event) -> str:
    """Format an event as a line of JSON."""
    return json_line(msgspec.to_builtins(event))


def json_line(data: dict[str, Any]) -> str:
    """Format data as JSON; NaN and infinity become null."""
    return json.dumps(finite(data), allow_nan=False)


def finite(value: Any) -> Any:
    """Return data for JSON with None in place of NaN and infinity, also inside lists and dictionaries."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read(folder: Path) -> Iterator[Event]:
    """Read the events of the run in a folder. An incomplete last line, as after a killed run, is ignored."""
    path = folder / METRICS
    try:
        with open_file(path, links=False) as file:
            for number, line in enumerate(_lines(file, path), 1):
                if line.endswith(b"\n"):
                    yield parsed(line, f"{path}, line {number}")
    except FileNotFoundError:
        raise MissingFileError(f"{folder} is not the folder of a run: it has no {METRICS}") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from error


def _lines(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """The lines of the metrics; a FileError if the file, or one of its lines, is larger than any that a run writes."""
    most, longest = LARGEST["metrics"], LARGEST["line of metrics"]
    if os.fstat(file.fileno()).st_size > most:
        raise FileError(f"{path} is larger than {most:,} bytes, more than is read of such a file")
    for number in itertools.count(1):
        line = file.readline(longest + 1)
        if not line or file.tell() > most:
            return
        if len(line) > longest:
            raise FileError(f"{path}, line {number}: it is longer than {longest:,} bytes; the run wrote no such line")
        yield line


def parsed(line: bytes, where: str) -> Event:
    """Parse a line. A FileError if it is none that `line` writes: lines of a checkpoint are written to a file again."""
    try:
        return msgspec.json.decode(line, type=AnyEvent)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{where}: {str(error)[:200]}; the run wrote no such line") from error
