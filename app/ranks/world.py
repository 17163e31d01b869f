"""`World`: the ranks of a run and their collective operations, which are those of mpi4py."""

from __future__ import annotations

import os
import re
import socket
import warnings
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from app.errors import AppError
from app.ranks import cores
from app.ranks.launch import Launch, launched

_BLOCK = 1 << 17
"""Bytes of shared arrays that are added at a time, few enough for the cache."""
_LINE = 64
"""Bytes of a cache line, at which shared arrays begin."""
_SPARE = 1 << 23
"""Bytes of shared memory that are left free: a process that writes into more than there are is killed."""


class DistError(AppError, RuntimeError):
    """Ranks that were started or used in a way that cannot work."""


class World:
    """All ranks, seen by one of them: here the only one, so that nothing has to be done.

    Every rank makes the same calls in the same order. Buffers are C-contiguous arrays that are changed in place. A sum
    has the same bits at every rank.
    """

    rank, size = 0, 1
    description = ""
    """A line about the ranks and their threads for the first lines of a run; '' for one rank."""

    def allreduce(self, buffer: np.ndarray) -> None:
        """Replace an array on every rank with its sum over all ranks."""

    def reduce(self, buffer: np.ndarray) -> None:
        """Replace an array on rank 0 with its sum over all ranks; the others keep theirs."""

    def broadcast(self, buffer: np.ndarray) -> None:
        """Replace an array on every rank with that of rank 0."""

    def copies_of_rank_0(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Copies of rank 0's arrays. `allreduce` is fastest of these: they are in memory that all ranks see, if they
        are on one host."""
        return list(arrays)

    def allgather(self, value: Any) -> list[Any]:
        """Collect a value of each rank, in order, on every rank."""
        return [value]


class MPIWorld(World):
    """The ranks that one launch of mpiexec started."""

    def __init__(self, mpi: Any):
        self._mpi, self._communicator = mpi, mpi.COMM_WORLD
        self.rank, self.size = self._communicator.rank, self._communicator.size
        self._shared: dict[int, tuple[Any, list[np.ndarray]]] = {}
        """By the address of each shared array: the window that it is in, and the arrays of all ranks."""
        host = socket.gethostname()
        neighbours = [rank for name, *rank in self.allgather((host, cores.usable(), _shared_files())) if name == host]
        for file in set.intersection(*(files for _, files in neighbours)):  # which would remain if ranks are killed
            with suppress(OSError):  # another rank was first
                os.unlink(file)
        threads = cores.limit(cores.share([usable for usable, _ in neighbours]))
        self.description = "\n".join(
            self.allgather(f"Rank {self.rank}: process {os.getpid()} on {host}; threads: {threads}")
        )

    def allreduce(self, buffer: np.ndarray) -> None:
        window, arrays = self._shared.get(buffer.ctypes.data, (None, [buffer]))
        if window is None or arrays[0].size != buffer.size:
            self._wait(self._communicator.Iallreduce(self._mpi.IN_PLACE, buffer))
            return
        self._barrier(window)
        first, last = (buffer.size * rank // self.size for rank in (self.rank, self.rank + 1))
        for start in range(first, last, _BLOCK // buffer.itemsize):  # each rank adds up its part of the arrays
            block = slice(start, min(start + _BLOCK // buffer.itemsize, last))
            total, *others = (array[block] for array in arrays)
            for other in others:
                total += other
            for other in others:
                other[:] = total
        self._barrier(window)

    def reduce(self, buffer: np.ndarray) -> None:
        both = (buffer, None) if self.rank else (self._mpi.IN_PLACE, buffer)
        self._wait(self._communicator.Ireduce(*both))

    def broadcast(self, buffer: np.ndarray) -> None:
        self._wait(self._communicator.Ibcast(buffer))

    def copies_of_rank_0(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        copies = [np.array(array, order="C") for array in arrays]
        for copy in copies:
            self.broadcast(copy.reshape(copy.size))
        *starts, end = accumulate((-(-copy.nbytes // _LINE) * _LINE for copy in copies), initial=0)
        host = self._communicator.Split_type(self._mpi.COMM_TYPE_SHARED)
        if not all(self.allgather(host.size == self.size and _is_free(self.size * end))):
            return copies
        window = self._mpi.Win.Allocate_shared(end, comm=self._communicator)
        window.Lock_all()
        memories = [window.Shared_query(rank)[0] for rank in range(self.size)]
        for index, (copy, start) in enumerate(zip(copies, starts, strict=True)):
            shared = [np.ndarray(copy.shape, copy.dtype, memory, start) for memory in memories]
            copies[index] = shared[self.rank]
            copies[index][...] = copy
            self._shared[copies[index].ctypes.data] = window, [array.reshape(array.size) for array in shared]
        return copies

    def allgather(self, value: Any) -> list[Any]:
        self._wait(self._communicator.Ibarrier())
        values: list[Any] = self._communicator.allgather(value)
        return values

    def _barrier(self, window: Any) -> None:
        """Wait until all ranks are here; afterwards each sees what the others wrote into shared memory."""
        window.Sync()
        self._wait(self._communicator.Ibarrier())
        window.Sync()

    def _wait(self, request: Any) -> None:
        """Wait for the other ranks. Meanwhile other processes may use the core, and Python handles signals."""
        while not request.Test():
            os.sched_yield()


def _is_free(size: int) -> bool:
    try:
        space = os.statvfs("/dev/shm")
    except OSError:  # not Linux
        return True
    return size + _SPARE <= space.f_bavail * space.f_frsize


def _shared_files() -> set[str]:
    """MPICH's files in /dev/shm that this process has open."""
    try:
        return set(re.findall(r" (/dev/shm/mpich_shm_\w+)$", Path("/proc/self/maps").read_text(), re.MULTILINE))
    except OSError:  # not Linux
        return set()


_world = World()


def current() -> World:
    """The world of this process: of one rank, unless `connect` was called."""
    return _world


def connect() -> World:
    """Connect to the other ranks that the launcher started, if it started several."""
    global _world
    launch = launched()
    if launch is not None and _world.size == 1:
        _world = MPIWorld(_mpi_of(launch))
    return _world


def _mpi_of(launch: Launch) -> Any:
    """mpi4py's module, after checks that it meets the ranks that the launcher started."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of what is checked below
            from mpi4py import MPI
    except ImportError as error:
        raise DistError(
            f"training with many ranks needs mpi4py and an MPI library: {error}. Install them: python -m pip install "
            "mpi4py mpich, or in a checkout: .venv/bin/python -m pip install -e '.[mpi]'"
        ) from error
    size = MPI.COMM_WORLD.size
    if launch.size not in (0, size):
        raise DistError(
            f"the launcher started {launch.size} ranks, but each of them meets {size}: mpi4py uses "
            f"{MPI.Get_library_version().splitlines()[0].strip()}, and mpiexec belongs to another MPI library. "
            "Use the mpiexec of the one that mpi4py uses, such as .venv/bin/mpiexec"
        )
    return MPI
