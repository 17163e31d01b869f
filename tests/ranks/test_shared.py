"""Arrays in memory that ranks share, here threads of one process: means without copies."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.ranks.shared import BLOCK, SharedArrays, is_free

SIZES = [1, 2, 1000, BLOCK // 4 - 1, BLOCK // 4 + 1, 3 * BLOCK]
STARTS = np.cumsum([0, *(4 * size for size in SIZES)]).tolist()


@pytest.mark.parametrize("ranks", [2, 3])
def test_means_are_in_place_and_have_the_same_bits_at_every_rank(ranks: int):
    given = [
        [np.random.default_rng(10 * r + s).random(size, "f4") for s, size in enumerate(SIZES)] for r in range(ranks)
    ]
    memories = [bytearray(STARTS[-1]) for _ in range(ranks)]
    window, meeting = SimpleNamespace(Sync=lambda: None), Barrier(ranks)

    def work(rank: int) -> list[np.ndarray]:
        shared = SharedArrays(given[rank], STARTS[:-1], memories, rank, window)
        for array, numbers in zip(shared.arrays, given[rank], strict=True):
            array[...] = numbers
            assert shared.holds(array)
            assert not shared.holds(numbers)
            shared.average(array, lambda: meeting.wait(20))
        return shared.arrays

    with ThreadPoolExecutor(ranks) as pool:
        results = list(pool.map(work, range(ranks)))
    for place, means in enumerate(zip(*results, strict=True)):
        np.testing.assert_allclose(means[0], np.mean([of_rank[place] for of_rank in given], axis=0), rtol=1e-6)
        assert len({mean.tobytes() for mean in means}) == 1


def test_shared_memory_is_free_only_up_to_the_limit_of_the_system(monkeypatch: pytest.MonkeyPatch):
    megabyte = 1 << 20
    container = SimpleNamespace(f_bavail=64 * 256, f_frsize=4096)
    monkeypatch.setattr("os.statvfs", lambda path: container)
    assert is_free(40 * megabyte)
    assert not is_free(60 * megabyte)

    def nowhere(path: str) -> Any:
        raise FileNotFoundError(path)

    monkeypatch.setattr("os.statvfs", nowhere)
    assert is_free(60 * megabyte)
