"""The checkpoint: a file from which a run resumes with bitwise identical results. It is replaced after every epoch."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from app.errors import AppError, FileError
from app.files import LARGEST
from app.graph.serialise import DAMAGE_ERRORS
from app.run import events
from app.run.callbacks import Callback
from app.run.config import Config, with_absolute_paths
from app.run.events import Start
from app.run.folder import RunFolder
from app.run.learners import Learner
from app.saving import load_own, save

CHECKPOINT = "checkpoint.safetensors"
"""The name of the file in the folder of a run that is not finished."""
KIND, VERSION = "opsmith.checkpoint", 4


class Checkpoint(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The state of a run between two epochs."""

    epoch: Annotated[int, msgspec.Meta(ge=1)]
    """How many epochs all operators have finished."""
    config: dict[str, Any]
    metrics: np.ndarray
    """The bytes of metrics.jsonl, whose first event has the hashes of the data and of the operators' sources."""
    learners: dict[str, dict[str, np.ndarray]]
    """The state of each operator's network."""
    random_state: dict[str, np.ndarray]
    """The state of the global random generators of NumPy and Python, which a user's operator may use."""

    @property
    def start(self) -> Start:
        """The first event of the run."""
        first = self.metrics.tobytes().partition(b"\n")[0]
        event = events.parsed(first, "the metrics of the checkpoint")
        if not isinstance(event, Start):
            raise FileError("the metrics of the checkpoint do not begin with the start of a run")
        return event


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write the file atomically."""
    save({"kind": KIND, "version": VERSION, **msgspec.structs.asdict(checkpoint)}, path)


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint. Raises FileError if the file is not one, and AppError if another release wrote it."""
    try:
        data = load_own(path, LARGEST["checkpoint"])
    except FileError as error:
        problem = str(error).removeprefix("load: ")
        raise FileError(
            f"{problem}. Without this file, the run starts from the beginning when it is resumed"
        ) from error
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from error
    kind, version = (data.pop(key, None) for key in ("kind", "version")) if isinstance(data, dict) else (None, None)
    if kind != KIND:
        raise FileError(f"{path} is no checkpoint")
    if version != VERSION:
        raise AppError(f"{path} has format version {version}; this release reads version {VERSION}")
    try:
        return msgspec.convert(data, Checkpoint)
    except msgspec.ValidationError as error:
        raise FileError(f"{path} is not a checkpoint: {error}") from error


def capture(config: Config, learners: Sequence[Learner], epoch: int, metrics: bytes) -> Checkpoint:
    """Copy everything that the rest of the run depends on."""
    return Checkpoint(
        epoch=epoch,
        config=msgspec.to_builtins(with_absolute_paths(config)),
        metrics=np.frombuffer(metrics, np.uint8),
        learners={learner.operator: learner.state() for learner in learners},
        random_state=random_state(),
    )


def restore(checkpoint: Checkpoint, start: Start, learners: Sequence[Learner]) -> None:
    """Restore the run to a checkpoint; `start` is how it starts now. Raises an error if it would not continue as it
    would have then."""
    if checkpoint.start.data.hash != start.data.hash:
        raise AppError("the images differ from those at the start of the run; see data.source in its config.yaml")
    try:
        for learner in learners:
            learner.restore(checkpoint.learners[learner.operator])
        restore_random_state(checkpoint.random_state)
    except AppError:
        raise
    except DAMAGE_ERRORS as error:
        raise FileError(f"the checkpoint does not fit its run: {type(error).__name__} {error}") from error


class Checkpoints(Callback):
    """Replaces the checkpoint of a run after every epoch of all networks."""

    def __init__(self, config: Config, learners: Sequence[Learner], folder: RunFolder):
        self._config, self._learners, self._folder = config, learners, folder

    def end_round(self, epoch: int) -> None:
        state = capture(self._config, self._learners, epoch + 1, self._folder.metrics())
        write_checkpoint(self._folder.path / CHECKPOINT, state)


def random_state() -> dict[str, np.ndarray]:
    """Return the state of the global random generators of NumPy and Python."""
    _, keys, place, has_spare, spare = np.random.get_state()
    _, words, gauss = random.getstate()
    return {
        "numpy": np.array(keys),
        "numpy.rest": np.array([place, has_spare, spare], np.float64),
        "python": np.array(words, np.uint32),
        "python.rest": np.array([] if gauss is None else [gauss], np.float64),
    }


def restore_random_state(state: Mapping[str, np.ndarray]) -> None:
    """Restore the global random generators."""
    try:
        place, has_spare, spare = state["numpy.rest"].tolist()
        if not 0 <= place <= len(state["numpy"]):
            raise ValueError(f"place {place}")  # NumPy does not validate it
        gauss = state["python.rest"].tolist()
        np.random.set_state(("MT19937", state["numpy"], int(place), int(has_spare), spare))
        random.setstate((3, tuple(state["python"].tolist()), gauss[0] if gauss else None))
    except (KeyError, ValueError, TypeError) as error:
        raise FileError(f"cannot restore the state of the random generators: {error}") from error
