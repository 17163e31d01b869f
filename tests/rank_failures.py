"""What can befall a rank, and what its user then reads."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ranks import Ended, main, program, run

WHO = r"rank 1 of \d \(host \S+, process \d+\)"

FAILURES = {
    # what rank 1 does, the message, the exit status
    "is killed": (
        "os.kill(os.getpid(), signal.SIGKILL)",
        f"error: {WHO} was ended by signal 9 \\(SIGKILL\\), as by `kill -9`, or by a machine that runs out of memory. "
        "All ranks have ended; a run goes on from its last checkpoint with --resume.",
        137,
    ),
    "crashes": (
        "os.kill(os.getpid(), signal.SIGSEGV)",
        f"error: {WHO} was ended by signal 11 \\(SIGSEGV\\). All ranks have ended; .*",
        139,
    ),
    "exits in the middle": ("os._exit(3)", f"error: {WHO} ended with exit status 3, in the middle. .*", 3),
    "raises an error of ours": (
        "raise DistError('the disk is full')",
        f"error: {WHO}: the disk is full",
        1,
    ),
    "is given other words": (
        "import argparse; argparse.ArgumentParser('job').parse_args(['--fast'])",
        f"error: {WHO}: usage: job .*",
        2,
    ),
    "leaves early": (
        "return 0",
        f"error: {WHO} has come to its end, while rank \\d waits for it in allreduce \\(call \\d+\\)",
        1,
    ),
    "stalls": (
        "time.sleep(60)",
        f"error: {WHO} did not come to allreduce \\(call \\d+\\) within 0.5 seconds \\(dist.timeout\\), nor answered: "
        "stopped, stuck, or at work on something that takes longer",
        1,
    ),
    "is stopped": ("os.kill(os.getpid(), signal.SIGSTOP)", f"error: {WHO} did not come to allreduce .*", 1),
    "does something else": (
        "world.broadcast(a)",
        r"error: the ranks have waited \d+ seconds for each other: rank 0 in allreduce \(call (\d+)\), "
        r"rank 1 in broadcast \(call \1\).*",
        1,
    ),
}


def fail(folder: Path, ranks: int, what: str, launcher: Sequence[str] = ()) -> Ended:
    """A job, one of whose ranks does something between two collectives."""
    lines = [
        "world.configure(timeout=0.5)",
        "a = numpy.ones(1000)",
        "world.allreduce(a)",
        "print('all are there')",
        "if world.rank == 1: open('began', 'w').close()",
        f"if world.rank == 1: {what}",
        "world.allreduce(a)",
        "world.allreduce(a)",
    ]
    ended = run(ranks, program(folder, main(lines)), folder=folder, launcher=launcher)
    return replace(ended, seconds=time.time() - (folder / "began").stat().st_mtime)


def check(ended: Ended, name: str) -> None:
    """One message, which names the rank and the cause; no status of success; ten seconds at the most."""
    _, message, status = FAILURES[name]
    assert ended.out == "all are there\n"
    assert re.fullmatch(message, ended.messages[0]), ended.err
    assert sum("error:" in line for line in ended.messages if not line.startswith("job: ")) == 1
    assert ended.status == status
    assert ended.seconds < 10
