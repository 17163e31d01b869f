"""What travels in one message, and that every number comes back to where it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.ranks.current import using
from app.ranks.messages import in_messages
from app.ranks.same import check_agreement
from app.ranks.world import DistError, World


def test_small_arrays_of_one_type_travel_together_and_large_ones_where_they_lie():
    large, matrix, number = np.ones(100, "float32"), np.ones((2, 3), "float32"), np.array(1.0, "float32")
    double = np.ones(4)
    sent = []
    run = in_messages([large, matrix, double, number], 100, sent.append)
    run()
    assert [(message.size, message.dtype.name) for message in sent] == [
        (100, "float32"),
        (7, "float32"),
        (4, "float64"),
    ]
    assert np.shares_memory(sent[0], large)


def test_what_is_done_to_a_message_is_done_to_the_arrays_each_time():
    arrays = [np.ones((3, 2), "float32"), np.array(2.0, "float32"), np.ones(50, "float32")]

    def double(message: np.ndarray) -> None:
        message *= 2

    run = in_messages(arrays, 100, double)
    run()
    run()
    assert [np.unique(array).tolist() for array in arrays] == [[4], [8], [4]]


@pytest.mark.parametrize("bucket", [0, 1 << 20])
def test_any_bucket_brings_every_number(bucket: int):
    arrays = [np.arange(6.0).reshape(2, 3), np.arange(4, dtype="float32"), np.array(7.0)]
    seen: list[float] = []
    in_messages(arrays, bucket, lambda message: seen.extend(message.tolist()))()
    assert sorted(seen) == sorted([*range(6), *range(4), 7])


class Second(World):
    """A world of two, where the other rank has other parameters."""

    size = 2

    def gather(self, value: Any) -> list[Any]:
        return [value, [*value[:-1], "other"]]


def test_a_parameter_that_differs_stops_every_rank_by_name():
    parameters = {"layers.0.weight": np.ones(3), "layers.1.bias": np.zeros(2)}
    with (
        using(Second()) as world,
        pytest.raises(DistError, match=r"layers\.1\.bias differs between ranks: rank 1 .* rank 0"),
    ):
        check_agreement(world, parameters)
    check_agreement(World(), parameters)
