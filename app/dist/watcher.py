"""Waits for the end of a rank, and says how it ended where the rank itself could not: a program of its own.

    python watcher.py PROCESS PIPE RANK SIZE

It is what the MPI launcher knows as the rank: it passes signals on to it, and ends with its status. It imports
nothing but the standard library, so that a watcher costs a few megabytes.
"""

import contextlib
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
STARTING = 60.0
"""Seconds within which all ranks have to be there."""
PASSING_ON = 0.2
"""Seconds for the launcher to pass on what was said, before it is asked to end all."""
ARRIVED, STARTED, SPOKEN = b"a", b"s", b"e"
CAUSES: dict[int, str] = {
    signal.SIGKILL: "as by `kill -9`, or by a machine that runs out of memory",
    signal.SIGBUS: "as where /dev/shm, which holds the memory that ranks share, is full",
}
ADVICE = "All ranks have ended; a run goes on from its last checkpoint with --resume."


def main(process: int, pipe: int, rank: int, size: int) -> int:
    """Watch the process until it ends; gives its exit status."""
    passed_on: set[int] = set()
    for number in PASSED_ON:
        signal.signal(number, _passing_on(process, passed_on))
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # by which MPICH tells of ranks that have gone
    where = f"rank {rank}{f' of {size}' if size else ''} (host {socket.gethostname()}, process {process})"
    said = _until_started(process, pipe, where)
    _, state = os.waitpid(process, 0)
    status = os.waitstatus_to_exitcode(state)
    said += _rest(pipe)
    if SPOKEN in said:
        return status if status >= 0 else 1
    if abs(status) % 128 in passed_on:  # all ranks got it, from whoever wanted them to end
        return _abort("", 128 + abs(status) % 128)
    if status < 0:
        return _abort(f"error: {where} was ended by {_named(-status)}. {ADVICE}", 128 - status)
    if STARTED in said or status == 0:
        return _abort(f"error: {where} ended with exit status {status}, in the middle. {ADVICE}", status or 1)
    return status


def _passing_on(process: int, passed_on: set[int]) -> Callable[..., None]:
    def pass_on(number: int, frame: object) -> None:
        passed_on.add(number)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)

    return pass_on


def _until_started(process: int, pipe: int, where: str) -> bytes:
    """What the rank told until it had met the others, or had ended."""
    said, end = b"", time.monotonic() + STARTING
    while STARTED not in said and (left := end - time.monotonic()) > 0:
        if select.select([pipe], [], [], left)[0]:
            told = os.read(pipe, 1)
            if not told:
                return said
            said += told
    if STARTED not in said and ARRIVED not in said:
        os.kill(process, signal.SIGKILL)
        _abort(f"error: {where} has not come to meet the other ranks within {STARTING:.0f} seconds. {ADVICE}", 1)
    return said


def _rest(pipe: int) -> bytes:
    os.set_blocking(pipe, False)
    try:
        return os.read(pipe, 100)
    except BlockingIOError:  # a process that the rank started holds the other end
        return b""


def _named(number: int) -> str:
    name = f"signal {number} ({signal.Signals(number).name})"
    return f"{name}, {CAUSES[number]}" if number in CAUSES else name


def _abort(message: str, status: int) -> int:
    """Say so, and have the launcher end all ranks: with MPICH's in its own words, which spares us its banner."""
    if message:
        sys.stderr.write(message + "\n")
        sys.stderr.flush()
    time.sleep(PASSING_ON)
    channel = os.environ.get("PMI_FD", "")
    if channel.isdecimal():
        with contextlib.suppress(OSError):  # not there any more: its banner, then
            os.write(int(channel), f"cmd=abort exitcode={status}\n".encode())
            time.sleep(5)  # the launcher's answer ends this process
    return status


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
