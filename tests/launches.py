"""Programs that tests run on many ranks, and what came of them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
_LAUNCH = "OPSMITH_TEST_LAUNCH"


@dataclass
class Ended:
    """What a launch left behind."""

    status: int
    out: str
    err: str
    seconds: float

    @property
    def messages(self) -> list[str]:
        """The lines on standard error, less mpiexec's own."""
        return [line for line in self.err.splitlines() if line.strip() and not line.startswith("[mpiexec")]


def mpiexec() -> str:
    """The launcher that belongs to this Python's MPI, or the system's."""
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec") or "mpiexec"


def start(ranks: int, *words: str, folder: Path, launcher: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Start a program on so many ranks of one thread each, by mpiexec or a launcher that is given."""
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    marked = ["sh", "-c", f'export {_LAUNCH}=$$; exec "$@"', "sh"]  # by which ranks can be found
    return subprocess.Popen(
        [*marked, *(launcher or [mpiexec()]), "-n", str(ranks), sys.executable, *words],
        cwd=folder,
        env=settings,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def run(ranks: int, *words: str, folder: Path, launcher: Sequence[str] = (), timeout: float = 100) -> Ended:
    """Run a program on so many ranks; whatever it does, it ends."""
    begun = time.monotonic()
    return wait(start(ranks, *words, folder=folder, launcher=launcher), begun, timeout)


def wait(process: subprocess.Popen[str], begun: float | None = None, timeout: float = 100) -> Ended:
    """Wait for the end of what was started."""
    begun = time.monotonic() if begun is None else begun
    processes = _of_launch(process.pid)
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
    while any(map(_runs, processes)):
        time.sleep(0.01)  # the launcher waits for those that watch over the ranks alone
    return Ended(process.returncode, out, err, time.monotonic() - begun)


def _runs(process: int) -> bool:
    """Whether a process is still there, and has files open."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _of_launch(launcher: int) -> list[int]:
    """The processes that a launcher has started, and that are still there."""
    mark = f"{_LAUNCH}={launcher}".encode()
    processes = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # it has ended, or is somebody else's
            if entry.name.isdecimal() and mark in entry.joinpath("environ").read_bytes().split(b"\0"):
                processes.append(int(entry.name))
    return processes


def process_of(rank: int, launch: subprocess.Popen[str]) -> int:
    """The process that is a rank of what was started."""
    for process in _of_launch(launch.pid):
        entry = Path("/proc") / str(process)
        if b"PMI_RANK=%d" % rank in entry.joinpath("environ").read_bytes().split(b"\0"):
            return process
    raise LookupError(f"rank {rank} is not there")


def program(folder: Path, text: str) -> str:
    """A file with a program in it."""
    file = folder / "program.py"
    file.write_text(text, encoding="utf-8")
    return str(file)


def main(lines: Sequence[str]) -> str:
    """A program that runs these lines as a command of many ranks, with `world` and `numpy` at hand."""
    body = "\n".join(f"    {line}" for line in lines)
    return (
        "import os, signal, sys, time\nimport numpy\nfrom app.ranks import ending\nfrom app.ranks.world import *\n\n"
        f"def command():\n    world = connect()\n{body}\n    return 0\n\n"
        "sys.exit(ending.run(command))\n"
    )
