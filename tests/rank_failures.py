"""What can befall a rank, and what its user then reads."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from launches import Ended, main, program, run

WHO = r"rank 1 of \d \(host \S+, process \d+\)"

# mpiexec's words, with the process of rank 1
ENDED = r"PID {process} RUNNING AT [\s\S]*terminated with the exit string: "

FAILURES = {
    # what rank 1 does, the message, the exit status
    "is killed": ("os.kill(os.getpid(), signal.SIGKILL)", f"{ENDED}Killed \\(signal 9\\)", 9),
    "crashes": ("os.kill(os.getpid(), signal.SIGSEGV)", f"{ENDED}Segmentation fault \\(signal 11\\)", 11),
    "exits in the middle": ("os._exit(3)", "", 3),
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
    "leaves early": (
        "return 0",
        r"error: the ranks have waited \d+ seconds for each other: rank 0 in allreduce \(call (\d+)\), "
        r"rank 1 in the end \(call \1\)",
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
        r"rank 1 in broadcast \(call \1\)",
        1,
    ),
}


def fail(folder: Path, ranks: int, what: str, launcher: Sequence[str] = ()) -> Ended:
    """A job, one of whose ranks does something between two collectives."""
    lines = [
        "world.configure(timeout=0.5)",
        "a = numpy.ones(1000)",
        "world.allreduce(a)",
        "print(world.said, flush=True)",
        "if world.rank == 1: open('began', 'w').close()",
        f"if world.rank == 1: {what}",
        "world.allreduce(a)",
        "world.allreduce(a)",
    ]
    ended = run(ranks, program(folder, main(lines)), folder=folder, launcher=launcher)
    return replace(ended, seconds=time.time() - (folder / "began").stat().st_mtime)


def check(ended: Ended, name: str) -> None:
    """One message, which names the rank or its process, and the cause; no status of success; ten seconds at most."""
    _, message, status = FAILURES[name]
    processes = re.findall(r"processes ([\d ]+);", ended.out)
    process = " ".join(processes).split()[1]
    text = "\n".join(line for line in (ended.out + ended.err).splitlines() if not line.startswith("[mpiexec"))
    assert re.search(message.replace("{process}", process), text, re.IGNORECASE), ended.err
    assert sum(line.startswith("error:") for line in text.splitlines()) == message.startswith("error:")
    assert ended.status == status
    assert ended.seconds < 10
