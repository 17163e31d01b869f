"""The folder of a run: its configuration, metrics, weights and summary. The folder of a comparison
holds one for each seed."""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TextIO

import numpy as np

from app.errors import AppError, ConfigError, MissingFileError
from app.files import LARGEST, PART, open_to_append, read_file, without_tilde, write_whole
from app.run import events
from app.run.config import (
    CompareConfig,
    Config,
    dump_config,
    load_kept_config,
    operators_of,
    with_absolute_paths,
)
from app.run.events import METRICS, Event
from app.run.weights import WEIGHTS, write_weights

CONFIG, SUMMARY = "config.yaml", "summary.txt"
COMPARISON, PREDICTIONS, DESCRIPTIONS = "comparison.json", "predictions.safetensors", "operators.json"


def seed_folder(seed: int) -> str:
    """Return the name of the folder of a comparison's run with this seed."""
    return f"seed-{seed}"


def folder_name(operators: Sequence[str]) -> str:
    """Return a name for the folder of a run of these operators, such as `swish-relu`."""
    names = (re.sub(r"[^\w.]+", "-", operator.rpartition(":")[2]).strip(".-") for operator in operators)
    return "-".join(names)[:60].strip(".-")


def new_folder(output: str | None, name: str, config: Config | None = None) -> Path:
    """Create the folder that the user chose, or one named after `name` and the time, and write the configuration into
    it. What is in it already is refused, as it could be replaced, unless it is of a run or a comparison that was begun
    with this configuration."""
    with _writing(Path(output or "runs")):
        path = _chosen(output) if output else _new(Path("runs") / f"{name}-{_now()}")
    with _writing(path):
        _refuse_taken(path, config)
        if config is not None:
            try:
                with (path / CONFIG).open("xb") as file:
                    file.write(_content(config))
            except FileExistsError:  # another run may have begun
                _refuse_taken(path, config)
    return path


def require_folder(path: Path) -> None:
    """Refuse a path that is no folder."""
    if not path.is_dir():
        raise MissingFileError(f"no such folder: {path}; {latest_run()}")


def latest_run() -> str:
    """Return what a message about the name of a run ends with: the latest run in runs/, if there is one."""
    times = {file.parent: file.stat().st_mtime for file in Path("runs").glob(f"*/{CONFIG}") if file.is_file()}
    latest = max(times, key=times.__getitem__, default=None)
    return f"the latest run here is {latest}" if latest else "name the folder of a run, such as those in runs/"


def refuse_comparison(path: Path, config: Config) -> None:
    """Refuse to resume a comparison as a run."""
    if isinstance(config, CompareConfig):
        raise ConfigError(f"{path} holds a comparison; it is continued with opsmith compare --resume {path}")


def require_free(config: Config) -> None:
    """Refuse an `output` that is taken, before anything is downloaded or compiled. Nothing is created."""
    path = without_tilde(config.output or "")
    if config.output is None or not path.exists():
        return
    _require_no_file(path)
    with _writing(path):
        _refuse_taken(path, config)


class RunFolder:
    """Writes the files of a run. Metrics are flushed immediately."""

    def __init__(self, path: Path, metrics: TextIO):
        self.path = path
        self._metrics = metrics
        self._weights: list[Path] = []
        if not _lock(metrics):
            metrics.close()
            raise AppError(f"another process is using {path}; wait for it, or end it")

    @classmethod
    def new(cls, config: Config) -> RunFolder:
        """Create the folder of a new run. The metrics are created last, so their presence means the folder is
        complete."""
        path = new_folder(config.output, folder_name(operators_of(config)), config)
        with _writing(path):
            try:
                return cls(path, (path / METRICS).open("x", encoding="utf-8"))
            except FileExistsError:
                raise _holds_a_run(path) from None

    @classmethod
    def again(cls, path: Path) -> RunFolder:
        """Open the folder of a run to resume it, and lock it."""
        require_folder(path)
        missing = [name for name in (CONFIG, METRICS) if not (path / name).is_file()]
        if missing == [METRICS]:
            refuse_comparison(path, load_kept_config(path / CONFIG))
        if missing:
            raise AppError(
                f"{path} holds no run that can be resumed: it has no {' and no '.join(missing)}. Start a new run"
            )
        with _writing(path / METRICS):
            folder = cls(path, open_to_append(path / METRICS))
            for part in path.glob(f".*{PART}"):  # of a process that was killed while it wrote
                part.unlink()
            return folder

    def go_on(self, config: Config, metrics: bytes) -> None:
        """Restore the configuration and the metrics of an interrupted run."""
        for number, line in enumerate(metrics.splitlines(), 1):  # what is not an event would be written to the file
            events.parsed(line, f"the metrics of a checkpoint of {self.path}, line {number}")
        write_whole(self.path / CONFIG, dump_config(with_absolute_paths(config)).encode())
        with _writing(self.path / METRICS):
            if not self.metrics().startswith(metrics):
                self._metrics.truncate(0)
                self._metrics.write(metrics.decode())
            self._metrics.truncate(len(metrics))

    def metrics(self) -> bytes:
        """Return the contents of metrics.jsonl."""
        self._metrics.flush()
        return read_file(self.path / METRICS, LARGEST["metrics"], links=False)

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with _writing(self.path / METRICS):  # after a full disk, a line may still be buffered
            self._metrics.close()

    def record(self, event: Event) -> None:
        """Append one line to metrics.jsonl."""
        with _writing(self.path / METRICS):
            self._metrics.write(events.line(event) + "\n")
            self._metrics.flush()

    def save_weights(self, operator: str, weights: Mapping[str, np.ndarray]) -> None:
        """Write the weights of one operator's network."""
        short = re.sub(r"[^\w.]+", "-", operator)[-60:].strip("-")
        names = (self.path / WEIGHTS.replace("*", short + end) for end in _endings())
        file = next(name for name in names if name not in self._weights)
        write_weights(file, operator, weights)
        self._weights.append(file)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with _writing(self.path / name):
            (self.path / name).unlink(missing_ok=True)

    def save_text(self, name: str, text: str) -> None:
        """Write a text file."""
        write_whole(self.path / name, text.encode())


def _refuse_taken(path: Path, config: Config | None) -> None:
    """Refuse a folder with a run, or with other files than those of a comparison with this configuration."""
    if (path / METRICS).exists() and not isinstance(config, CompareConfig):
        raise _holds_a_run(path)
    files = sorted(os.listdir(path))
    if not files or (
        config is not None
        and CONFIG in files
        and read_file(path / CONFIG, LARGEST["configuration"], links=False) == _content(config)
    ):
        return
    named = ", ".join(files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else "")
    raise AppError(
        f"{path} is not empty, and not the folder of a run with these settings: it has {named}. Choose a new or empty "
        f"folder, such as output={path / 'run'}"
    )


def _content(config: Config) -> bytes:
    """The content of the file of the configuration."""
    return dump_config(with_absolute_paths(config)).encode()


def _holds_a_run(path: Path) -> AppError:
    return AppError(f"{path} already holds a run; choose another output=, resume it (--resume) or remove it first")


def _lock(file: TextIO) -> bool:
    """Lock an open file until it is closed or this process ends; False if another process holds the lock."""
    try:
        import fcntl  # not on Windows

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # a file system without locks
        pass
    return True


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Convert an OSError into an error that names the file."""
    try:
        yield
    except OSError as error:
        raise AppError(f"{error.filename or path} cannot be written: {error.strerror or error}") from error


def _now() -> str:
    return time.strftime("%Y%m%d-%H%M%S")


def _endings() -> Iterator[str]:
    """Suffixes that make names unique: nothing, -2, -3 …"""
    return ("" if number == 1 else f"-{number}" for number in itertools.count(1))


def _chosen(output: str) -> Path:
    """Return the folder that the user chose, which may exist."""
    path = without_tilde(output)
    _require_no_file(path)
    path.mkdir(parents=True, exist_ok=True)
    return path


def _require_no_file(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise AppError(f"{path} is a file, and output= names a folder")


def _new(path: Path) -> Path:
    """Create a new folder: the path, with a number appended if it exists."""
    path.parent.mkdir(parents=True, exist_ok=True)
    endings = _endings()
    while True:
        candidate = path.with_name(path.name + next(endings))
        try:
            candidate.mkdir()
        except FileExistsError:
            continue
        return candidate
