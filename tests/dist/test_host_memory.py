"""Ranks that see each other's numbers, here threads of one process: more numbers than there is room for at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Barrier, Lock
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.dist.host_memory import CHUNK, HostMemory, is_free

SIZES = [1, 2, 1000, CHUNK // 4 - 1, CHUNK // 4 + 1, CHUNK]


class Window:
    """Memory that all have."""

    def __init__(self, ranks: int, size: int):
        self._memory = [np.zeros(size, np.uint8) for _ in range(ranks)]

    def Shared_query(self, rank: int) -> tuple[Any, int]:  # noqa: N802 - as MPI calls it
        return self._memory[rank].data, 1

    def Lock_all(self) -> None:  # noqa: N802
        pass

    Sync = Lock_all


def together(ranks: int, does: Callable[[HostMemory, int, Callable[[], Any]], Any]) -> list[Any]:
    """What each of some ranks gives that do the same at the same time."""
    meeting, allocating = Barrier(ranks), Lock()
    windows: list[list[int]] = [[] for _ in range(ranks)]
    window_of = cache(lambda number, size: Window(ranks, size))

    def work(rank: int) -> Any:
        def allocate(size: int) -> Window:
            windows[rank].append(size)
            with allocating:
                return window_of(len(windows[rank]), size)

        return does(HostMemory(allocate, SimpleNamespace(rank=rank, size=ranks)), rank, lambda: meeting.wait(20))

    with ThreadPoolExecutor(ranks) as pool:
        return list(pool.map(work, range(ranks)))


def test_no_more_is_asked_for_than_there_is(monkeypatch: pytest.MonkeyPatch):
    megabyte = 1 << 20
    monkeypatch.setattr("os.statvfs", lambda path: SimpleNamespace(f_bavail=64 * 256, f_frsize=4096))  # as in a container
    assert is_free(40 * megabyte)
    assert not is_free(60 * megabyte)

    def nowhere(path: str) -> Any:
        raise FileNotFoundError(path)

    monkeypatch.setattr("os.statvfs", nowhere)
    assert is_free(60 * megabyte)


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("ranks", [2, 3])
def test_sums_have_the_same_bits_at_every_rank(ranks: int, mean: bool):
    given = [[np.random.default_rng(10 * r + s).random(size, "f4") for s, size in enumerate(SIZES)] for r in range(ranks)]

    def add_up(memory: HostMemory, rank: int, meet: Callable[[], Any]) -> list[np.ndarray]:
        rooms = memory.rooms(given[rank])
        mine = [numbers.copy() for numbers in given[rank]]
        for numbers, room in zip(mine, rooms, strict=True):
            room[:] = numbers
            for place in (numbers, room):
                memory.add_up(place, meet, mean)
        meet()
        return [*mine, *(room.copy() for room in rooms)]

    results = together(ranks, add_up)
    for place, sums in enumerate(zip(*results, strict=True)):
        expected = sum(given[rank][place % len(SIZES)] for rank in range(ranks)) / (ranks if mean else 1)
        np.testing.assert_allclose(sums[0], expected, rtol=1e-6)
        assert len({numbers.tobytes() for numbers in sums}) == 1


@pytest.mark.parametrize("root", [0, 2])
def test_a_root_gathers_sums_and_spreads_numbers_in_turn(root: int):
    def work(memory: HostMemory, rank: int, meet: Callable[[], Any]) -> list[np.ndarray]:
        results = []
        for size in SIZES:
            sums, told = np.full(size, rank + 1, "f8"), np.full(size, rank + 1, "f8")
            memory.add_up_at(root, sums, meet)
            memory.spread_from(root, told, meet)
            results.append((np.unique(sums).tolist(), np.unique(told).tolist()))
        return results

    for rank, results in enumerate(together(3, work)):
        assert results == [([6] if rank == root else [rank + 1], [root + 1])] * len(SIZES)
