"""Operators that never return, at every stage of every command; and the processes that a command has left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forked

ROOT = Path(__file__).parents[1]

OPERATORS = '''
import ctypes
import os
import time
from pathlib import Path

import numpy as np

import app

calls = 0


def native_loop(x):
    while x.size:
        x += 1


if os.environ["STUCK_IN"] == "native_loop":
    from numba import njit

    native_loop = njit("void(float64[:])")(native_loop)


def native_lock(x):
    mutex, native = ctypes.create_string_buffer(128), ctypes.PyDLL(None)  # which holds on to the interpreter
    native.pthread_mutex_lock(mutex)
    native.pthread_mutex_lock(mutex)


def plain_loop(x):
    while True:
        pass


def sleep(x):
    time.sleep(1000)


def swallow(x):
    while True:
        try:
            while True:
                time.sleep(0.01)
        except BaseException:
            pass


def fork(x):
    os.fork()
    plain_loop(x)


def get_stuck(x):
    """Get stuck at a call with so many rows, the first of them if no other is named."""
    global calls
    rows, at = map(int, os.environ["STUCK_AT"].split(","))
    calls += x.shape[0] == rows or not rows
    if calls >= at and (x.shape[0] == rows or not rows):
        Path("stuck").touch()
        globals()[os.environ["STUCK_IN"]](np.ones(3))


@app.custom_op
def stuck(x):
    get_stuck(x)
    return np.array(x)


@stuck.backward
def _(dy):
    return dy
'''


@dataclass(frozen=True)
class Stage:
    """A command, and the call of the operator that does not return: so many rows, and the number of such calls."""

    words: Sequence[str]
    rows: int
    call: int = 1
    ranks: int = 0


SMALL = (
    "data.source=sample", "engine=reference", "train.epochs=2", "train.batch_size=50", "model.hidden=[5]",
    "train.eval_batch_size=70", "report=false",
)  # fmt: skip
TRAIN = (str(ROOT / "train.py"), "model.activation=ops.py:stuck", "output=run", *SMALL)
COMPARE = ("-m", "app", "compare", "--with", "relu,ops.py:stuck", "--seeds", "2", "output=run", *SMALL)
STAGES = {
    "gradient check": Stage(TRAIN, 0),
    "first step": Stage((*TRAIN, "check=false"), 50),
    "first compiled step": Stage((*TRAIN, "check=false", "engine=compiled"), 50),
    "training step": Stage((*TRAIN, "check=false"), 50, 20),
    "eager step": Stage((*TRAIN, "check=false", "engine=eager"), 50, 20),
    "test pass": Stage((*TRAIN, "check=false"), 70),
    "timing": Stage((*TRAIN, "check=false", "train.epochs=1"), 50, 202),  # after 200 steps
    "json": Stage((*TRAIN, "check=false", "--json"), 50, 20),
    "check": Stage(("-m", "app", "check", "ops.py:stuck"), 0),
    "inspect": Stage(("-m", "app", "inspect", "model.activation=ops.py:stuck", *SMALL), 0),
    "compare": Stage((*COMPARE, "check=false"), 50, 20),
    "compare with workers": Stage((*COMPARE, "check=false", "--workers", "2"), 50, 20),
    "watch": Stage(("-m", "app", "watch", "ops.py:stuck", *SMALL), 0),
    "ranks": Stage((*TRAIN, "check=false", "dist.shape=allreduce"), 25, 20, ranks=2),
}


class Stuck:
    """A command whose operator does not return."""

    def __init__(self, stage: Stage, how: str, folder: Path):
        (folder / "ops.py").write_text(OPERATORS)
        self._folder = str(folder.resolve())
        self.process: subprocess.Popen[bytes] | forked.Command
        settings = {
            **os.environ, "PYTHONPATH": str(ROOT), "STUCK_IN": how, "STUCK_AT": f"{stage.rows},{stage.call}"
        }  # fmt: skip
        with open(os.devnull, "w") as nowhere, (folder / "err").open("w") as err:
            places: dict[str, Any] = {"cwd": folder, "env": settings, "stdout": nowhere, "stderr": err}
            if stage.ranks:
                launcher = [str(Path(sys.executable).with_name("mpiexec")), "-n", str(stage.ranks)]
                words = [*launcher, sys.executable, *stage.words]
                self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, **places)
            else:
                self.process = forked.start(stage.words, **places)
        until = time.monotonic() + 60
        while not (folder / "stuck").exists():
            assert self.process.poll() is None, (folder / "err").read_text()
            assert time.monotonic() < until, "it did not get stuck"
            time.sleep(0.02)
        time.sleep(0.3)

    def send(self, number: int) -> None:
        """Send a signal to the command alone, or Ctrl-C to all its processes, as a terminal does."""
        for process in self.left() if number == signal.SIGINT else [self.process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    def end(self, seconds: float = 2.0) -> int:
        """Wait until the command and all its processes have ended; the exit status.

        The seconds are those of a machine with a free core; where more processes compute than it has cores, they
        count for longer.
        """
        seconds *= max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        until = time.monotonic() + seconds
        status = self.process.wait(seconds)
        while (left := self.left()) and time.monotonic() < until:
            time.sleep(0.01)
        assert not left, left
        return status

    def left(self) -> list[int]:
        """The processes of the command that run: those in its folder."""
        processes = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):  # it has ended, or is somebody else's
                if entry.name.isdecimal() and os.readlink(entry / "cwd") == self._folder:
                    processes.append(int(entry.name))
        return processes

    def kill(self) -> None:
        """Kill what is left."""
        for process in [*self.left(), self.process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def stuck(name: str, how: str, folder: Path) -> Iterator[Stuck]:
    """A command that is stuck at a stage in a native loop, a native lock, a plain loop or a sleep."""
    command = Stuck(STAGES[name], how, folder)
    try:
        yield command
    finally:
        command.kill()
