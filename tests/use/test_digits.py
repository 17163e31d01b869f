"""Pictures of digits become what MNIST's own makers would have made of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.data.sample import load_sample
from app.errors import DataError
from app.use.digits import find_ink, prepare


@pytest.fixture(scope="module")
def digits() -> np.ndarray:
    """Two hundred test digits of the sample."""
    return load_sample().test_images[:200].reshape(-1, 28, 28)


def as_picture(digit: np.ndarray) -> np.ndarray:
    return (digit.astype("float32") / 255)[..., None]


def centre(digit: np.ndarray) -> np.ndarray:
    mass = digit.astype(float)
    return np.array([(mass.sum(axis) @ np.arange(28)) / mass.sum() for axis in (1, 0)])


def test_a_digit_of_mnist_stays_as_it_is(digits: np.ndarray):
    differences = [np.abs(prepare(as_picture(digit)).astype(int) - digit).mean() for digit in digits]
    assert np.mean(differences) < 0.5  # of 255
    assert np.quantile(differences, 0.98) < 1  # the others lie a pixel beside where they were


def test_the_ink_fits_the_box_and_its_centre_of_mass_is_pixel_14(digits: np.ndarray):
    for digit in digits[:50]:
        large = np.pad(np.kron(as_picture(digit)[..., 0], np.ones((5, 5))), ((31, 7), (60, 9)))
        prepared = prepare(1 - large[..., None])
        rows, columns = (np.flatnonzero((prepared > 20).any(axis)) for axis in (1, 0))
        assert 18 <= max(np.ptp(rows), np.ptp(columns)) + 1 <= 20
        assert np.abs(centre(prepared) - 14).max() <= 0.75
        assert prepared.max() == 255


@given(
    ground=st.tuples(*[st.floats(0, 1)] * 3),
    ink=st.tuples(*[st.floats(0, 1)] * 3),
    at=st.tuples(st.integers(2, 30), st.integers(2, 30)),
)
def test_colours_and_place_do_not_matter(ground: tuple, ink: tuple, at: tuple):
    picture = np.full((60, 50, 3), ground, "float32")
    shape = np.zeros((60, 50), bool)
    shape[at[0] : at[0] + 20, at[1] : at[1] + 5] = True
    shape[at[0] : at[0] + 5, at[1] : at[1] + 14] = True
    picture[shape] = ink
    if np.abs(np.subtract(ground, ink)).max() < 0.1:
        return
    expected = np.zeros((60, 50, 1), "float32")
    expected[shape] = 1
    np.testing.assert_array_equal(prepare(picture), prepare(expected))


def test_prepare_drops_specks_and_keeps_separate_parts_of_a_digit():
    picture = np.zeros((100, 100, 1), "float32")
    picture[30:70, 40:50] = 1
    alone = prepare(picture)
    picture[5:8, 90] = 1
    np.testing.assert_array_equal(prepare(picture), alone)
    picture[20:26, 40:60] = 1  # as the bar of a 5 that does not touch the rest
    assert not np.array_equal(prepare(picture), alone)


def test_find_ink_ignores_noise():
    random = np.random.default_rng(0)
    picture = np.clip(0.8 + random.normal(0, 0.02, (120, 90, 3)), 0, 1).astype("float32")
    picture[40:90, 30:40] = 0.2
    ink = find_ink(picture)
    assert ink[40:90, 30:40].min() > 0.85
    assert np.quantile(ink[:30], 0.99) < 0.1


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 50, 3), (40, 30, 3)])
def test_a_picture_of_one_colour_is_an_error(shape: tuple[int, ...]):
    with pytest.raises(DataError, match="the picture is empty: it has a single colour"):
        prepare(np.full(shape, 0.7, "float32"))
