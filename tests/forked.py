"""Commands as users type them, each in a process of its own, which a server forks that has imported everything.

A new interpreter takes a second or two for imports, and for compiling `custom.relu`, before it does what is tested.
What depends on how an interpreter starts (`PYTHON...` variables, closed streams) is tested with new ones.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[1]
NUMBER = struct.Struct("i")
PIPE, STDOUT = subprocess.PIPE, subprocess.STDOUT


# Those who ask


class Command:
    """A command that runs: what tests use of `subprocess.Popen`."""

    def __init__(self, words: Sequence[str | Path], cwd: str | Path, env: Mapping[str, str] | None, **ends: Any):
        terminal = ends.pop("terminal", False)
        order = {
            "words": list(map(str, words)), "cwd": str(cwd), "env": dict(os.environ if env is None else env),
            "terminal": terminal,
        }  # fmt: skip
        self.words, self.returncode = order["words"], None
        self.stdout, self.stderr = None, None
        handles: list[int] = []
        opened: list[int] = []
        for name in ("stdin", "stdout", "stderr"):
            end = ends.pop(name, None if name == "stdin" else PIPE)
            if end == PIPE:
                ours, end = os.pipe()
                setattr(self, name, os.fdopen(ours, encoding="utf-8"))
                opened.append(end)
            elif end == STDOUT:
                end = handles[1]
            elif end is None:
                end = os.open(os.devnull, os.O_RDWR)
                opened.append(end)
            handles.append(end if isinstance(end, int) else end.fileno())
        assert not ends, f"a command has no {list(ends)}"
        self._keeper, theirs = socket.socketpair()
        socket.send_fds(_server(), [b"!"], [*handles, theirs.fileno()])
        theirs.close()
        for end in opened:
            os.close(end)
        self._keeper.sendall(json.dumps(order).encode() + b"\n")
        self.pid = self._number()

    stdout: IO[str] | None
    stderr: IO[str] | None
    returncode: int | None

    def _number(self) -> int:
        return int(NUMBER.unpack(self._keeper.recv(NUMBER.size, socket.MSG_WAITALL))[0])

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._keeper], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._keeper], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.words, timeout or 0)
            self.returncode = self._number()
            self._keeper.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for the end; gives what came on standard output and on standard error."""
        read = ["", ""]

        def take(index: int, stream: IO[str]) -> None:
            with stream:
                read[index] = stream.read()

        streams = [(i, stream) for i, stream in enumerate((self.stdout, self.stderr)) if stream and not stream.closed]
        readers = [threading.Thread(target=take, args=pair) for pair in streams]
        for reader in readers:
            reader.start()
        try:
            self.wait(timeout)
        finally:
            self.kill()
            for reader in readers:
                reader.join()
        return read[0], read[1]


@dataclass
class Done:
    """How a command ended, and what it said."""

    returncode: int
    stdout: str
    stderr: str


def start(
    words: Sequence[str | Path], *, cwd: str | Path = ROOT, env: Mapping[str, str] | None = None, **ends: Any
) -> Command:
    """Start `FILE.py ...` or `-m MODULE ...`; standard output and standard error are pipes unless something is given.

    `terminal=True` makes standard input the terminal that controls the process.
    """
    return Command(words, cwd, env, **ends)


def run(words: Sequence[str | Path], timeout: float = 120, **options: Any) -> Done:
    """Run such a command to its end."""
    command = start(words, **options)
    out, err = command.communicate(timeout)
    return Done(command.wait(), out, err)


@functools.cache
def _server() -> socket.socket:
    """The server, which ends when this process does."""
    ours, theirs = socket.socketpair()
    words = [sys.executable, __file__, str(theirs.fileno())]
    server = subprocess.Popen(words, pass_fds=[theirs.fileno()])
    theirs.close()
    # closing would not do: a process that was forked from this one, and still runs, has the socket, too
    atexit.register(lambda: (ours.shutdown(socket.SHUT_RDWR), server.wait()))
    return ours


# The server


def _serve(orders: socket.socket) -> None:
    """Fork a process for each command; returns in that of the command, with all set up for it."""
    _prepare()
    askers: dict[int, socket.socket] = {}
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler nothing is written to the pipe
    while True:
        ready, _, _ = select.select([orders.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 1000)
            _tell_of_the_ended(askers)
        if orders.fileno() in ready:
            _, ends, _, _ = socket.recv_fds(orders, 1, 4)
            if not ends:
                os._exit(0)
            *streams, asker = ends
            connection = socket.socket(fileno=asker)
            with connection.makefile() as lines:
                order = json.loads(lines.readline())
            number = os.fork()
            if number == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for ours in (orders, connection, *askers.values()):
                    ours.close()
                os.close(woken)
                os.close(wakes)
                _become(order, *streams)
                return
            for end in streams:
                os.close(end)
            connection.sendall(NUMBER.pack(number))
            askers[number] = connection


def _tell_of_the_ended(askers: dict[int, socket.socket]) -> None:
    """Send the status of each process that has ended to who asked for it."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            with askers.pop(ended[0]) as connection, contextlib.suppress(OSError):  # who asked may be gone
                connection.sendall(NUMBER.pack(os.waitstatus_to_exitcode(ended[1])))


def _prepare() -> None:
    """Import what commands import, and compile the operator that most of them use."""
    sys.path[0] = str(ROOT)
    from app.__main__ import COMMANDS

    late = (
        "app.experiment.train_command",
        "app.engine.compiled.engine",
        "app.onnx",
        "app.report.report",
        "scipy.special",
    )
    for module in (*(command.module for command in COMMANDS.values()), *late, "scipy.special"):
        importlib.import_module(module, "app")
    import numpy as np

    import app
    from app.run.activation import find_activation

    relu = find_activation("custom.relu").operator
    x = app.to_tensor(np.ones((2, 3), "float32"), stop_gradient=False)
    relu(x).sum().backward()
    del sys.path[0], sys.modules["app.__main__"]  # which is what runs as a command
    sys.modules.pop("opsmith.__main__", None)
    gc.freeze()


def _become(order: dict[str, Any], *ends: int) -> None:
    """Take over what an interpreter has from its start: the streams, the folder, the variables and the words."""
    import fcntl
    import termios

    if order["terminal"]:
        os.setsid()
        fcntl.ioctl(ends[0], termios.TIOCSCTTY, 0)
    for number, end in enumerate(ends):
        os.dup2(end, number)
        os.close(end)
    sys.stdin, sys.stdout = os.fdopen(0, encoding="utf-8"), os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    words = order["words"]
    sys.argv = words[1:] if words[0] == "-m" else words
    first = "" if words[0] == "-m" else str(Path(words[0]).parent.absolute())
    sys.path[:0] = [first or os.getcwd(), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]


def _end(status: int) -> None:
    """End as an interpreter does, but for the objects in its modules: clearing them takes longer than many commands."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stderr.flush()
    with contextlib.suppress(OSError, ValueError):  # an interpreter has sentences and a status for them
        sys.stdout.flush()
        os._exit(status)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as orders:
        _serve(orders)
    import runpy

    run_it = runpy.run_path if sys.argv[0].endswith(".py") else functools.partial(runpy.run_module, alter_sys=True)
    try:
        run_it(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            raise
        _end(end.code or 0)
    _end(0)
