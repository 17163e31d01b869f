"""What can befall a rank, and what its user then reads."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from launches import Ended, main, program, run

WHO = r"rank 1 of \d \(host \S+, process \d+\)"

# A process that ends without a word of opsmith's is the launcher's to report. MPICH 5.0.2 may name a process that it
# killed afterwards, and give that one's status; on two hosts its proxy fails an assertion of its own (`assert
# (!closed)`), and the status may be 255. It does the same for a program of mpi4py alone.
ENDED = r"BAD TERMINATION [\s\S]*PID \d+ RUNNING AT "
FAILED = None
"""Any status but that of success."""

FAILURES: dict[str, tuple[str, str, int | None]] = {
    # what rank 1 does, the message, the exit status
    "is killed": ("os.kill(os.getpid(), signal.SIGKILL)", ENDED, FAILED),
    "crashes": ("os.kill(os.getpid(), signal.SIGSEGV)", ENDED, FAILED),
    "exits in the middle": ("os._exit(3)", "", FAILED),
    "raises an error of ours": ("raise DistError('the disk is full')", f"error: {WHO}: the disk is full", 1),
    "raises an error that nobody expected": (
        "raise ValueError('no such thing')",
        f"error: {WHO}: Traceback [\\s\\S]*, in command\n.*\n.*\n?ValueError: no such thing",
        1,
    ),
    "is given other words": (
        "import argparse; argparse.ArgumentParser('job').parse_args(['--fast'])",
        f"error: {WHO}: usage: job .*",
        2,
    ),
}


def fail(folder: Path, ranks: int, what: str, launcher: Sequence[str] = ()) -> Ended:
    """A job, one of whose ranks does something between two collectives."""
    lines = [
        "a = numpy.ones(1000)",
        "world.allreduce(a)",
        "print(world.description, flush=True)",
        "if world.rank == 1: open('began', 'w').close()",
        f"if world.rank == 1: {what}",
        "world.allreduce(a)",
        "world.allreduce(a)",
    ]
    ended = run(ranks, program(folder, main(lines)), folder=folder, launcher=launcher)
    return replace(ended, seconds=time.time() - (folder / "began").stat().st_mtime)


def check(ended: Ended, name: str) -> None:
    """One message, which names a rank and the cause, or a process; no status of success; ten seconds at most."""
    _, message, status = FAILURES[name]
    text = "\n".join(line for line in (ended.out + ended.err).splitlines() if not line.startswith("[mpiexec"))
    assert re.search(message, text, re.IGNORECASE), ended.err
    errors = sum(line.startswith("error:") for line in text.splitlines())
    assert errors == message.startswith("error:")  # else mpiexec alone says it
    assert ended.status == status if status is not FAILED else ended.status != 0
    assert ended.seconds < 10
