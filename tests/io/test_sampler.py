"""Samplers: which examples, in which order, and which make a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import app
from app import io
from app.errors import DataError

TEN = range(10)


def test_samplers_give_indices_in_order_or_at_random():
    assert list(io.SequenceSampler(TEN)) == list(TEN)
    app.seed(0)
    shuffled = io.RandomSampler(TEN)
    first, second = list(shuffled), list(shuffled)
    assert sorted(first) == sorted(second) == list(TEN)
    assert first != second
    app.seed(0)
    assert list(io.RandomSampler(TEN)) == first
    assert len(list(io.RandomSampler(TEN, replacement=True, num_samples=25))) == 25
    assert len(set(io.RandomSampler(TEN, num_samples=4))) == 4
    assert list(io.RandomSampler(TEN, num_samples=3, generator=iter([5, 5, 1]))) == [5, 5, 1]
    own = [list(io.RandomSampler(TEN, generator=np.random.default_rng(1))) for _ in range(2)]
    assert own[0] == own[1]


@pytest.mark.parametrize(("drop_last", "batches"), [(False, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]),
                                                    (True, [[0, 1, 2, 3], [4, 5, 6, 7]])])  # fmt: skip
def test_a_batch_sampler_groups_indices(drop_last: bool, batches: list[list[int]]):
    for sampler in (
        io.BatchSampler(TEN, batch_size=4, drop_last=drop_last),
        io.BatchSampler(sampler=io.SequenceSampler(TEN), batch_size=4, drop_last=drop_last),
    ):
        assert (list(sampler), len(sampler)) == (batches, len(batches))


def test_distributed_samplers_share_the_examples():
    parts = [io.DistributedBatchSampler(TEN, 2, 3, rank, shuffle=True) for rank in range(3)]
    first = [list(part) for part in parts]
    assert [len(part) for part in parts] == [2, 2, 2]
    assert {n for part in first for batch in part for n in batch} == set(TEN)
    assert [list(part) for part in parts] != first
    for part in parts:
        part.set_epoch(0)
    assert [list(part) for part in parts] == first


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: io.BatchSampler(), "takes either a data set or a sampler"),
        (lambda: io.BatchSampler(TEN, io.SequenceSampler(TEN)), "takes either a data set or a sampler"),
        (lambda: io.BatchSampler(TEN, batch_size=0), "found batch_size = 0"),
        (lambda: io.RandomSampler(TEN, num_samples=11), "11 of 10 examples need replacement=True"),
        (lambda: io.RandomSampler(TEN, num_samples=0), "num_samples must be at least 1"),
        (lambda: io.DistributedBatchSampler(TEN, 1, 2, 2), "there is no rank 2 among 2"),
    ],
)
def test_wrong_arguments_are_errors(make: Callable[[], Any], told: str):
    with pytest.raises(DataError, match=told):
        make()
