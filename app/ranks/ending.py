"""How ranks end: when one of them fails, it prints its message and ends all through MPI's Abort.

If all fail, such as at a wrong configuration, only rank 0 prints: the others wait some seconds first.
"""

from __future__ import annotations

import io
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable

from app import command_line
from app.ranks.launch import Launch, launched

_FOR_RANK_0, _FOR_EACH_RANK, _FOR_MPIEXEC = 1.5, 0.5, 0.2
"""Seconds for rank 0 to end all, for each rank before this one, and for mpiexec to pass on the message."""


def run(command: Callable[[], int]) -> int:
    """Run a command as `command_line.run` does, as one of many ranks if a launcher started many."""
    launch = launched()
    if launch is None:
        return command_line.run(command)
    if launch.rank:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until the process ends
        sys.stderr = io.StringIO()

    def connected() -> int:
        from app.ranks.world import connect  # imported late: one process needs none of it, and --help no NumPy

        connect()
        return command()

    try:
        status = command_line.run(connected)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else command_line.FAILED if end.code else 0
    except BaseException:
        traceback.print_exc()
        status = command_line.FAILED
    if status:
        _end(launch, status)
    return status


def _end(launch: Launch, status: int) -> None:
    """Print this rank's message, if it is not rank 0, which has done so; and end all ranks."""
    if isinstance(sys.stderr, io.StringIO):
        time.sleep(_FOR_RANK_0 + _FOR_EACH_RANK * min(launch.rank, 8))
        place = f"rank {launch.rank} of {launch.size} (host {socket.gethostname()}, process {os.getpid()})"
        message = sys.stderr.getvalue().strip().removeprefix("error: ")
        print(f"error: {place}: {message}", file=sys.__stderr__, flush=True)
    time.sleep(_FOR_MPIEXEC)
    if mpi := sys.modules.get("mpi4py.MPI"):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # MPI would say that it was asked to
        mpi.COMM_WORLD.Abort(status)
    os._exit(status)
