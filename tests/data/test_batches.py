import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.data.batches import Batches, epoch_order
from app.errors import DataError


@st.composite
def batches(draw: st.DrawFn) -> Batches:
    count = draw(st.integers(0, 40))
    images = np.arange(count * 3, dtype=np.uint8).reshape(count, 3)
    order = epoch_order(draw(st.integers(0, 9)), 0, count)[: draw(st.integers(0, 40))]
    return Batches(images, np.arange(count), draw(st.sampled_from([None, order])), batch_size=draw(st.integers(1, 12)))


@given(batches())
def test_every_row_of_the_order_comes_once_with_its_label_in_batches_of_one_size_but_for_the_last(some):
    given = list(some)
    assert len(given) == len(some)
    rows = [int(label) for _, labels in given for label in labels]
    assert rows == list(range(len(some.images)) if some.order is None else some.order)
    assert some.count == len(rows)
    for images, labels in given:
        assert labels.ndim == 1
        np.testing.assert_array_equal(images, some.images[labels])
    sizes = [len(labels) for _, labels in given]
    assert all(size == some.batch_size for size in sizes[:-1])
    assert all(0 < size <= some.batch_size for size in sizes[-1:])


@given(batches(), st.slices(6))
def test_a_slice_holds_the_batches_that_a_list_would(some, cut):
    if cut.step not in (None, 1):
        cut = slice(cut.start, cut.stop)
    part = some[cut]
    expected = list(some)[cut]
    assert isinstance(part, Batches)
    assert len(part) == len(expected)
    for (images, labels), (expected_images, expected_labels) in zip(part, expected, strict=True):
        np.testing.assert_array_equal(images, expected_images)
        np.testing.assert_array_equal(labels, expected_labels)


def test_one_batch_is_found_from_either_end_and_steps_are_refused():
    some = Batches(np.zeros((10, 3), np.uint8), np.arange(10), None, batch_size=4)
    assert some[0][1].tolist() == [0, 1, 2, 3]
    assert some[-1][1].tolist() == [8, 9]
    for index in (3, -4):
        with pytest.raises(IndexError):
            some[index]
    with pytest.raises(DataError, match="found step 2"):
        some[::2]


@pytest.mark.parametrize(
    ("labels", "order", "batch_size", "message"),
    [
        (np.zeros(4), None, 0, "batch_size = 0"),
        (np.zeros(3), None, 1, "4 images but 3 labels"),
        (np.zeros(4), np.array([0, 4]), 1, "rows 0 to 4 for 4 images"),
        (np.zeros(4), np.array([-1, 2]), 1, "rows -1 to 2 for 4 images"),
    ],
)
def test_what_does_not_fit_together_is_an_error(labels, order, batch_size, message):
    with pytest.raises(DataError, match=message):
        Batches(np.zeros((4, 3), np.uint8), labels, order, batch_size)


@given(st.integers(0, 2**64), st.integers(0, 1000), st.integers(0, 100))
def test_an_epochs_order_is_a_permutation_that_its_numbers_determine(seed, epoch, count):
    order = epoch_order(seed, epoch, count)
    assert order.dtype == np.int64
    assert sorted(order) == list(range(count))
    np.testing.assert_array_equal(order, epoch_order(seed, epoch, count))


def test_seeds_and_epochs_have_orders_of_their_own():
    seeds_and_epochs = [(seed, epoch) for seed in (0, 1, 2**32, 2**32 + 1) for epoch in range(5)]
    orders = {tuple(epoch_order(seed, epoch, 100)) for seed, epoch in seeds_and_epochs}
    assert len(orders) == len(seeds_and_epochs)
