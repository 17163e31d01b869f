"""Every row of a batch is one rank's, and the shares are what the rows are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.data import Batches
from app.dist.shards import rows_of, shards


class Place(NamedTuple):
    rank: int
    size: int


def batches(count: int, batch: int, shuffled: bool = True) -> Batches:
    order = np.random.default_rng(0).permutation(count) if shuffled else None
    return Batches(np.arange(count, dtype=np.uint8)[:, None], np.arange(count), order, batch)


@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 6), st.booleans())
def test_the_ranks_parts_of_a_batch_are_the_batch(count: int, size: int, ranks: int, shuffled: bool):
    whole = batches(count, size, shuffled)
    parts = [
        [(shard.share, labels) for shard in shards(whole, Place(rank, ranks)) for _, labels in shard.batches]
        for rank in range(ranks)
    ]
    for index, (_, expected) in enumerate(whole):
        here = [part[index] for part in parts]
        assert sum(share for share, _ in here) == pytest.approx(1)
        rows = [label for share, labels in here if share for label in labels]
        assert rows == expected.tolist()
        for share, labels in here:
            assert share == (pytest.approx(len(labels) / len(expected)) if share else 0)
            assert len(labels) >= 1
    assert {len(part) for part in parts} == {len(whole)}


def test_the_first_ranks_have_one_row_more():
    assert [rows_of(10, Place(rank, 4)) for rank in range(4)] == [(0, 3), (3, 3), (6, 2), (8, 2)]


def test_a_rank_without_rows_computes_the_first_one_for_nothing():
    (shard,) = shards(batches(2, 2, shuffled=False), Place(2, 3))
    assert shard.share == 0
    assert [labels.tolist() for _, labels in shard.batches] == [[0]]


def test_full_batches_stay_together_so_that_an_engine_may_run_them_in_one_call():
    assert [(shard.share, len(shard.batches)) for shard in shards(batches(23, 4), Place(0, 2))] == [(0.5, 5), (2 / 3, 1)]
