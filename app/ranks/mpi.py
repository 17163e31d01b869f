"""A world of ranks over MPI, whose calls have a time limit.

A collective is started, and tested until it is done. Meanwhile a rank looks for notices of the others. When its time
is over, it asks all ranks where they are, and names those that do not answer.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from app.ranks import cores
from app.ranks.launch import Launch, hide_launch
from app.ranks.shared import SharedArrays, shared_arrays
from app.ranks.world import TIMEOUT, DistError, RankError, Reduction, World

_TESTS = 30
"""How often a call is tested before anything else happens."""
_YIELDING, _NAP = 0.02, 0.0002
"""Seconds in which a waiting rank only yields its core; afterwards, the seconds it sleeps between tests."""
_LOOK, _ANSWERS = 0.05, 2.0
"""Seconds between two checks for notices, and for the answers of other ranks."""


class Notice(msgspec.Struct):
    """A message between ranks besides their work, on a separate communicator."""

    rank: int
    call: int = 0
    name: str = ""
    """The call in which the rank waits."""
    asks: bool = False
    """Whether the others are asked where they are."""
    error: str | None = None
    """The message to print, if the rank ends because of an error."""
    status: int = 0


_read = msgspec.msgpack.Decoder(Notice).decode


def meet(launch: Launch) -> MPIWorld:
    """Connect to the other ranks."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of what is checked below
            from mpi4py import MPI
    except ImportError as error:
        raise DistError(
            f"training with many ranks needs mpi4py and an MPI library: {error}. Install them: python -m pip install "
            "mpi4py mpich, or in a checkout: .venv/bin/python -m pip install -e '.[mpi]'"
        ) from error
    found = MPI.COMM_WORLD.size
    if launch.size not in (0, found):
        raise DistError(
            f"the launcher started {launch.size} ranks, but each of them meets {found}: mpi4py uses "
            f"{MPI.Get_library_version().splitlines()[0].strip()}, and mpiexec belongs to another MPI library. "
            "Use the mpiexec of the one that mpi4py uses, such as .venv/bin/mpiexec"
        )
    hide_launch()
    return MPIWorld(MPI)


class MPIWorld(World):
    """The ranks that one launch of mpiexec started."""

    def __init__(self, mpi: Any):
        self._mpi = mpi
        self._communicator, self._aside = mpi.COMM_WORLD.Dup(), mpi.COMM_WORLD.Dup()
        self.rank, self.size = self._communicator.rank, self._communicator.size
        self._reductions = {"sum": mpi.SUM, "avg": mpi.SUM, "prod": mpi.PROD, "max": mpi.MAX, "min": mpi.MIN}
        self._timeout, self._calls = TIMEOUT, 0
        self._sent: list[tuple[bytes, Any]] = []  # what MPI may still be reading from
        self._heard: dict[int, Notice] = {}
        self._shared: list[SharedArrays] = []
        self._received = np.empty(0, np.uint8)
        self.host = socket.gethostname()
        ranks = self.gather((self.host, os.getpid()))
        self._places = [f"host {host}, process {process}" for host, process in ranks]
        self.said = cores.share(self)
        self._unlink_shared_files()

    def configure(self, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout

    def name(self, rank: int) -> str:
        return f"rank {rank} of {self.size} ({self._places[rank]})"

    @contextlib.contextmanager
    def time_limit(self) -> Iterator[None]:
        # Its thread, which is not Python's, prints where the rank is. A rank that waits for another names it before.
        faulthandler.dump_traceback_later(self._timeout + _ANSWERS + self.rank + 1, exit=True, file=2)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()

    # Collectives

    def allreduce(self, buffer: np.ndarray, how: Reduction = "sum") -> None:
        if how == "avg" and (array := next((s for s in self._shared if s.holds(buffer)), None)):
            array.average(buffer, lambda: self._finish("allreduce", self._communicator.Ibarrier()))
            return
        request = self._communicator.Iallreduce(self._mpi.IN_PLACE, buffer, self._reductions[how])
        self._finish("allreduce", request)
        if how == "avg":
            buffer /= self.size

    def reduce(self, buffer: np.ndarray, root: int = 0) -> None:
        if self.rank != root:  # sent one by one: a tenth of the time of MPICH's Ireduce
            self._finish("reduce", self._communicator.Isend(buffer, dest=root))
            return
        if self._received.nbytes < buffer.nbytes:
            self._received = np.empty(buffer.nbytes, np.uint8)
        received = self._received[: buffer.nbytes].view(buffer.dtype)
        for rank in (*range(root), *range(root + 1, self.size)):
            self._finish("reduce", self._communicator.Irecv(received, source=rank))
            buffer += received.reshape(buffer.shape)

    def broadcast(self, buffer: np.ndarray, root: int = 0) -> None:
        self._finish("broadcast", self._communicator.Ibcast(buffer, root=root))

    def gather(self, value: Any) -> list[Any]:
        mine = np.frombuffer(msgspec.msgpack.encode(value), np.uint8)
        sizes = np.empty(self.size, np.int64)
        self._finish("gather", self._communicator.Iallgather(np.array([mine.size], np.int64), sizes))
        everything = np.empty(int(sizes.sum()), np.uint8)
        self._finish("gather", self._communicator.Iallgatherv(mine, (everything, sizes.tolist())))
        ends = np.cumsum(sizes)
        return [msgspec.msgpack.decode(everything[a:b].tobytes()) for a, b in zip(ends - sizes, ends, strict=True)]

    def barrier(self) -> None:
        self._finish("barrier", self._communicator.Ibarrier())

    def shared(self, like: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        found = shared_arrays(like, self._communicator, self._mpi, lambda flag: all(self.gather(flag)))
        if found is None:
            return None
        self._shared.append(found)
        return found.arrays

    # The end

    def leave(self) -> None:
        self._timeout = max(self._timeout, TIMEOUT)  # rank 0 may have much to write
        self._finish("the end", self._aside.Ibarrier())

    def tell(self, rank: int, message: str, status: int, patience: float) -> None:
        """Tell a rank that this one ends because of an error, and give it some seconds to end all."""
        self._tell(Notice(self.rank, error=message, status=status), rank)
        until = time.monotonic() + patience
        while time.monotonic() < until:
            self._sent[-1][1].Test()
            time.sleep(_LOOK)

    def end(self, status: int) -> None:
        """End every rank at once."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # MPI would say that it was asked to
        self._mpi.COMM_WORLD.Abort(status)

    def _unlink_shared_files(self) -> None:
        """Unlink MPICH's files in /dev/shm, which would remain if ranks are killed."""
        try:
            with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
                mine = re.findall(r" (/dev/shm/mpich_shm_\w+)$", maps.read(), re.MULTILINE)
        except OSError:  # not Linux
            mine = []
        found = [set(names) for host, names in self.gather((self.host, mine)) if host == self.host]
        for name in set.intersection(*found):  # every rank of this host has it open
            with contextlib.suppress(OSError):  # another rank was first
                os.unlink(name)

    # Waiting

    def _finish(self, name: str, request: Any) -> None:
        """Wait for a call that needs the other ranks."""
        self._calls += 1
        try:
            for _ in range(_TESTS):
                if request.Test():
                    return
            self._wait(name, request.Test)
        except self._mpi.Exception as error:
            reason = str(error).partition(", error stack")[0]
            raise RankError(
                f"{self.name(self.rank)} failed in {name} (call {self._calls}): {reason}. A "
                "connection was lost, or the ranks make different calls"
            ) from error

    def _wait(self, name: str, done: Callable[[], bool]) -> None:
        since = time.monotonic()
        look_at, asked = since + _LOOK, 0.0
        while not done():
            now = time.monotonic()
            if now - since < _YIELDING:
                os.sched_yield()
            else:
                time.sleep(_NAP)
            if now < look_at:
                continue
            look_at = now + _LOOK
            self._look(name)
            if asked and now - asked > _ANSWERS:
                self._raise_who_is_missing(name, now - since)
            if not asked and now - since > self._timeout:
                asked = now
                self._heard.clear()
                for rank in range(self.size):
                    if rank != self.rank:
                        self._tell(Notice(self.rank, self._calls, name, asks=True), rank)

    def _tell(self, notice: Notice, rank: int) -> None:
        text = msgspec.msgpack.encode(notice)
        self._sent.append((text, self._aside.Isend([text, self._mpi.BYTE], dest=rank)))

    def _look(self, name: str) -> None:
        """Read and answer notices. An error of another rank is raised here."""
        self._sent = [(text, request) for text, request in self._sent if not request.Test()]
        status = self._mpi.Status()
        while (message := self._aside.Improbe(status=status)) is not None:
            text = bytearray(status.Get_count(self._mpi.BYTE))
            message.Recv([text, self._mpi.BYTE])
            notice = _read(text)
            if notice.error is not None:
                raise RankError(notice.error, notice.status)
            self._heard[notice.rank] = notice
            if notice.asks:
                self._tell(Notice(self.rank, self._calls, name), notice.rank)

    def _raise_who_is_missing(self, name: str, waited: float) -> None:
        """Name the ranks that did not answer; if all did, say in which call each of them waits."""
        missing = [rank for rank in range(self.size) if rank not in {self.rank, *self._heard}]
        if missing:
            raise RankError(
                f"{' and '.join(map(self.name, missing))} did not come to {name} (call {self._calls}) within "
                f"{self._timeout:g} seconds (dist.timeout), nor answered: stopped, stuck, or at work on something that "
                "takes longer"
            )
        calls = {self.rank: Notice(self.rank, self._calls, name), **self._heard}
        where = ", ".join(f"rank {rank} in {calls[rank].name} (call {calls[rank].call})" for rank in sorted(calls))
        raise RankError(f"the ranks have waited {waited:.0f} seconds for each other: {where}")
