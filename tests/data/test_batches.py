import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.data.batches import Batches, epoch_order
from app.errors import DataError


@given(st.integers(0, 40), st.none() | st.integers(0, 40), st.integers(1, 12), st.slices(6))
def test_batches_are_consecutive_rows_of_the_order_and_slice_like_a_list(count, ordered, batch_size, cut):
    images = np.arange(count * 3, dtype=np.uint8).reshape(count, 3)
    order = None if ordered is None else epoch_order(0, 0, count)[:ordered]
    batches = Batches(images, np.arange(count), order, batch_size)
    rows = list(range(count)) if order is None else order.tolist()
    expected = [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]
    assert (batches.count, len(batches)) == (len(rows), len(expected))
    for batch, labels in zip(batches, expected, strict=True):
        assert batch[1].tolist() == labels
        np.testing.assert_array_equal(batch[0], images[labels])
    if cut.step not in (None, 1):
        with pytest.raises(DataError, match=f"found step {cut.step}"):
            batches[cut]
        return
    part = batches[cut]
    assert isinstance(part, Batches)
    assert [labels.tolist() for _, labels in part] == expected[cut]


def test_an_index_counts_from_either_end():
    batches = Batches(np.zeros((10, 3), np.uint8), np.arange(10), None, batch_size=4)
    assert batches[0][1].tolist() == [0, 1, 2, 3]
    assert batches[-1][1].tolist() == [8, 9]
    for index in (3, -4):
        with pytest.raises(IndexError):
            batches[index]


@pytest.mark.parametrize(
    ("labels", "order", "batch_size", "message"),
    [
        (4, None, 0, "batch_size = 0"),
        (3, None, 1, "4 images but 3 labels"),
        (4, [0, 4], 1, "rows 0 to 4 for 4 images"),
        (4, [-1, 2], 1, "rows -1 to 2 for 4 images"),
        (4, [True, False, True, False], 1, r"must be integers, found bool; np.flatnonzero\(mask\)"),
    ],
)
def test_wrong_arguments_are_errors(labels, order, batch_size, message):
    with pytest.raises(DataError, match=message):
        Batches(np.zeros((4, 3), np.uint8), np.zeros(labels), None if order is None else np.array(order), batch_size)


def test_an_order_is_a_permutation_that_seed_and_epoch_determine():
    places = [(seed, epoch) for seed in (0, 1, 2**32, 2**32 + 1, 2**64) for epoch in range(5)]
    orders = {tuple(epoch_order(*place, 100)) for place in places}
    assert orders == {tuple(epoch_order(*place, 100)) for place in places}
    assert len(orders) == len(places)
    assert all(sorted(order) == list(range(100)) for order in orders)
    assert epoch_order(0, 0, 0).dtype == np.int64
