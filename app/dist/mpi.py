"""A world of many ranks over MPI, whose calls do not outwait a rank that will never come.

Collectives are begun without blocking, and asked for until they are done: in between, a rank looks for notices of
the others' ends, and when its patience is over it calls the roll, which names who is missing.
"""

from __future__ import annotations

import os
import socket
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from app.dist import cores
from app.dist.errors import DistError, RankError
from app.dist.host_memory import LARGE, is_free, shared_by
from app.dist.launch import Launch, line, no_more
from app.dist.leftovers import forget_names
from app.dist.notices import Asking, Left, Missing, Notices, Waiting
from app.dist.protocol import TIMEOUT, Reduction

_AT_ONCE = 30
"""How often a call is asked for before anything else is looked at."""
_YIELDING, _NAP = 0.02, 0.0002
"""Seconds for which a waiting rank lets only those processes pass that want its core; then how long it sleeps."""
_LOOK, _ANSWERS, _AFTER_LEFT = 0.05, 2.0, 2.0
"""Seconds from look to look for notices; for the answers to a roll call; and for a call that a rank left before."""


def enter(launch: Launch) -> MPIWorld:
    """Meet the other ranks."""
    line.tell(line.ARRIVED)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of what is checked below
            from mpi4py import MPI
    except ImportError as error:
        raise DistError(
            "training with many ranks needs mpi4py and an MPI library, which `pip install 'opsmith[mpi]'` brings: "
            f"{error}"
        ) from error
    found = MPI.COMM_WORLD.size
    if launch.size not in (0, found):
        raise DistError(
            f"the launcher started {launch.size} ranks, but each of them meets {found}: mpi4py uses "
            f"{MPI.Get_library_version().splitlines()[0].strip()}, and mpiexec belongs to another MPI library. "
            "Use the mpiexec of the one that mpi4py uses, such as .venv/bin/mpiexec"
        )
    no_more()
    return MPIWorld(MPI)


class MPIWorld:
    """The ranks that one launch of mpiexec started."""

    def __init__(self, mpi: Any):
        self._mpi = mpi
        self._communicator = mpi.COMM_WORLD.Dup()
        self.notices = Notices(mpi.COMM_WORLD.Dup(), mpi.BYTE, mpi.Status())
        self.rank, self.size = self._communicator.rank, self._communicator.size
        self._reductions = {"sum": mpi.SUM, "avg": mpi.SUM, "prod": mpi.PROD, "max": mpi.MAX, "min": mpi.MIN}
        self.host = socket.gethostname()
        self._calls = 0
        self._timeout = TIMEOUT
        line.tell(line.STARTED)
        ranks = self.gather((self.host, os.getpid()))
        self._places = [f"host {host}, process {process}" for host, process in ranks]
        self.local_rank = sum(host == self.host for host, _ in ranks[: self.rank])
        self._memory = shared_by(self._communicator, mpi)
        self.said = cores.share(self)
        forget_names(self)

    def configure(self, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout

    def name(self, rank: int) -> str:
        """What a message calls a rank."""
        return f"rank {rank} of {self.size} ({self._places[rank]})"

    # Collectives

    def allreduce(self, buffer: np.ndarray, how: Reduction = "sum") -> None:
        if self._memory is not None and buffer.nbytes >= LARGE and how in ("sum", "avg"):
            self._memory.add_up(buffer, self._meet_in("allreduce"), how == "avg")
            return
        request = self._communicator.Iallreduce(self._mpi.IN_PLACE, buffer, self._reductions[how])
        self._finish("allreduce", request)
        if how == "avg":
            buffer /= self.size

    def rooms(self, like: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        if self._memory is None or not all(self.gather(is_free(self.size * sum(array.nbytes for array in like)))):
            return None
        try:
            return self._memory.rooms(like)
        except self._mpi.Exception:  # of memory that they could share, there is no more
            return None
        finally:
            forget_names(self)

    def reduce(self, buffer: np.ndarray, root: int = 0) -> None:
        if self._memory is not None and buffer.nbytes >= LARGE:
            self._memory.add_up_at(root, buffer, self._meet_in("reduce"))
            return
        ends = (self._mpi.IN_PLACE, buffer) if self.rank == root else (buffer, None)
        self._finish("reduce", self._communicator.Ireduce(*ends, root=root))

    def broadcast(self, buffer: np.ndarray, root: int = 0) -> None:
        if self._memory is not None and buffer.nbytes >= LARGE:
            self._memory.spread_from(root, buffer, self._meet_in("broadcast"))
            return
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

    def leave(self) -> None:
        """Wait until every rank has done all that it had to do."""
        self._timeout = max(self._timeout, TIMEOUT)  # rank 0 may have much to write
        self.notices.send(Left(self.rank))
        self._wait("the end", lambda: len(self.notices.left) == self.size - 1)

    def end(self, status: int) -> None:
        """End every rank, at once and in silence."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # MPI would say that it was asked to
        self._mpi.COMM_WORLD.Abort(status)

    # Waiting

    def _meet_in(self, name: str) -> Callable[[], None]:
        """What waits, in a collective, until every rank has come."""
        return lambda: self._finish(name, self._communicator.Ibarrier())

    def _finish(self, name: str, request: Any) -> None:
        """Wait for a collective."""
        self._wait(name, request.Test)

    def _wait(self, name: str, done: Callable[[], bool]) -> None:
        """Wait until something is done that needs the other ranks."""
        self._calls += 1
        try:
            for _ in range(_AT_ONCE):
                if done():
                    return
            _Waiting(self, name).until(done)
        except self._mpi.Exception as error:
            time.sleep(_ANSWERS)  # where a rank was killed, its watcher knows more, and ends this one
            told = str(error).partition(", error stack")[0]
            raise RankError(
                f"{self.name(self.rank)} got no further in {name} (call {self._calls}), as MPI says: {told}. A "
                "connection was lost, or the ranks do not do the same"
            ) from error


class _Waiting:
    """One rank, waiting for the others in one call."""

    def __init__(self, world: MPIWorld, name: str):
        self._world, self._notices, self._name = world, world.notices, name
        self._call = world._calls
        self._since = time.monotonic()
        self._asked: float | None = None

    def until(self, done: Callable[[], bool]) -> None:
        look_at = self._since + _LOOK
        while not done():
            now = time.monotonic()
            if now - self._since < _YIELDING:
                os.sched_yield()
            else:
                time.sleep(_NAP)
            if now >= look_at:
                look_at = now + _LOOK
                self._look(now)

    def _look(self, now: float) -> None:
        world, notices = self._world, self._notices
        notices.look()
        for fault in notices.faults.values():
            text = fault.text.removeprefix("error: ")
            raise RankError(f"{world.name(fault.rank)}: {text}" if fault.own else text)
        for rank in notices.asking:
            notices.send(Waiting(world.rank, self._call, self._name), rank)
        notices.asking.clear()
        if notices.left and self._name != "the end" and now - self._since > _AFTER_LEFT:
            raise RankError(
                f"{world.name(min(notices.left))} has come to its end, while rank {world.rank} waits for it "
                f"in {self._name} (call {self._call})"
            )
        if self._asked is None and now - self._since > world._timeout:
            self._asked = now
            notices.waiting.clear()
            notices.send(Asking(world.rank))
        elif self._asked is not None and now - self._asked > _ANSWERS:
            self._call_the_roll(now - self._since)

    def _call_the_roll(self, waited: float) -> None:
        """Say who gave no answer; or, if all did, what each of them waits in."""
        world, waiting = self._world, self._notices.waiting
        missing = [rank for rank in range(world.size) if rank not in {world.rank, *waiting}]
        if missing:
            self._notices.missing.update(missing)
            self._notices.send(Missing(world.rank, tuple(missing)))
            names = " and ".join(map(world.name, missing))
            raise RankError(
                f"{names} did not come to {self._name} (call {self._call}) within {world._timeout:g} seconds "
                "(dist.timeout), nor answered: stopped, stuck, or at work on something that takes longer"
            )
        calls = {world.rank: Waiting(world.rank, self._call, self._name), **waiting}
        where = ", ".join(f"rank {rank} in {calls[rank].name} (call {calls[rank].call})" for rank in sorted(calls))
        raise RankError(f"the ranks have waited {waited:.0f} seconds for each other: {where}")
