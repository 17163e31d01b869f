"""Which arrays travel in one message, and how every number returns to its place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.ranks.current import using
from app.ranks.messages import in_messages
from app.ranks.same import check_agreement
from app.ranks.world import DistError, World


def test_small_arrays_of_one_type_share_a_message_and_large_arrays_are_sent_in_place():
    large, matrix, number = np.ones(100, "float32"), np.ones((2, 3), "float32"), np.array(1.0, "float32")
    sent = []
    in_messages([large, matrix, np.ones(4), number], 100, sent.append)()
    found = [(message.size, message.dtype.name) for message in sent]
    assert found == [(100, "float32"), (7, "float32"), (4, "float64")]
    assert np.shares_memory(sent[0], large)


@pytest.mark.parametrize("bucket", [0, 100, 1 << 20])
def test_changes_of_messages_reach_the_arrays_each_time(bucket: int):
    arrays = [np.arange(6.0).reshape(2, 3), np.arange(50, dtype="float32"), np.array(7.0), np.ones(4, "float32")]
    expected = [4 * array for array in arrays]

    def double(message: np.ndarray) -> None:
        message *= 2

    run = in_messages(arrays, bucket, double)
    run()
    run()
    for array, numbers in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(array, numbers)


class Second(World):
    """A world of two, where the other rank has other parameters."""

    size = 2

    def gather(self, value: Any) -> list[Any]:
        return [value, [*value[:-1], "other"]]


def test_a_parameter_that_differs_between_ranks_is_an_error_with_its_name():
    parameters = {"layers.0.weight": np.ones(3), "layers.1.bias": np.zeros(2)}
    check_agreement(World(), parameters)
    with (
        using(Second()) as world,
        pytest.raises(DistError, match=r"layers\.1\.bias differs between ranks: rank 1 .* rank 0"),
    ):
        check_agreement(world, parameters)
