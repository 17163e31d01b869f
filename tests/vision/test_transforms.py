"""What is done to pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import app
from app.errors import DataError
from app.vision import transforms as T  # noqa: N812 - the name that every tutorial uses

GREY = np.arange(20, dtype="uint8").reshape(4, 5) * 10
COLOUR = np.stack([GREY, GREY + 1, GREY + 2], 2)


def test_bytes_become_floats_with_the_channels_in_front():
    found = T.ToTensor()(GREY)
    assert (found.shape, found.dtype, found.max().item()) == ([1, 4, 5], "float32", np.float32(190 / 255))
    np.testing.assert_allclose(T.to_tensor(COLOUR).numpy(), COLOUR.transpose(2, 0, 1) / 255, rtol=1e-6)
    assert T.ToTensor("HWC")(COLOUR).shape == [4, 5, 3]
    np.testing.assert_array_equal(T.to_tensor(COLOUR.astype("float32")).numpy(), COLOUR.transpose(2, 0, 1))


def test_pictures_are_normalised():
    np.testing.assert_allclose(T.Normalize([127.5], [127.5])(GREY), (GREY[None] - 127.5) / 127.5, rtol=1e-6)
    np.testing.assert_allclose(T.Normalize(100, 50, "HWC")(COLOUR), (COLOUR - 100.0) / 50, rtol=1e-6)
    tensor = T.Compose([T.ToTensor(), T.Normalize([0.5, 0.4, 0.3], [0.5, 0.5, 0.25])])(COLOUR)
    expected = (COLOUR / 255 - [0.5, 0.4, 0.3]) / [0.5, 0.5, 0.25]
    np.testing.assert_allclose(tensor.numpy(), expected.transpose(2, 0, 1), rtol=1e-5, atol=1e-6)


def test_transpose_crop_pad_and_flip():
    np.testing.assert_array_equal(T.Transpose()(COLOUR), COLOUR.transpose(2, 0, 1))
    assert T.Transpose()(GREY).shape == (1, 4, 5)
    np.testing.assert_array_equal(T.CenterCrop(2)(GREY), GREY[1:3, 2:4])
    places = np.arange(9.0)[:, None] * 10 + np.arange(8.0)
    assert T.CenterCrop((4, 3))(places)[0, 0] == 22  # spare halves are rounded to even numbers, as there
    assert T.CenterCrop((2, 7))(places)[0, 0] == 40
    np.testing.assert_array_equal(T.Pad([1, 2])(GREY), np.pad(GREY, [(2, 2), (1, 1)]))
    np.testing.assert_array_equal(T.Pad(1, padding_mode="edge")(COLOUR)[1:-1, 1:-1], COLOUR)
    np.testing.assert_array_equal(T.RandomHorizontalFlip(1.0)(GREY), GREY[:, ::-1])
    np.testing.assert_array_equal(T.RandomVerticalFlip(1.0)(COLOUR), COLOUR[::-1])
    np.testing.assert_array_equal(T.RandomHorizontalFlip(0.0)(GREY), GREY)


def test_random_crops_are_uniform_and_repeat_after_a_seed():
    app.seed(0)
    crop = T.RandomCrop((2, 3))
    corners = {int(crop(GREY)[0, 0]) for _ in range(200)}
    assert corners == {int(n) for n in GREY[:3, :3].ravel()}
    assert T.RandomCrop(6, padding=1)(GREY).shape == (6, 6)
    app.seed(0)
    first = crop(GREY)
    app.seed(0)
    np.testing.assert_array_equal(crop(GREY), first)


def test_resize_interpolates():
    np.testing.assert_array_equal(T.Resize((8, 10), "nearest")(GREY), GREY.repeat(2, 0).repeat(2, 1))
    assert T.Resize(8)(GREY).shape == (8, 10)
    assert T.Resize(5)(np.zeros((12, 9))).shape == (6, 5)  # 6.67 rows, rounded down as Paddle and torchvision do
    ramp = np.tile(np.arange(8.0), (8, 1))
    np.testing.assert_allclose(T.Resize((4, 4))(ramp), np.tile([0.5, 2.5, 4.5, 6.5], (4, 1)))
    np.testing.assert_array_equal(T.Resize((4, 5))(COLOUR), COLOUR)


def test_transforms_change_the_picture_of_an_example():
    picture, label = T.ToTensor()((GREY, 3))
    assert (picture.shape, label) == ([1, 4, 5], 3)
    one, other = T.ToTensor(keys=("label", "image"))((3, GREY))
    assert (one, other.shape) == (3, [1, 4, 5])


def test_the_repr_of_transforms():
    assert repr(T.Compose([T.ToTensor(), T.Transpose()])) == "Compose(\n    ToTensor()\n    Transpose()\n)"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: T.CenterCrop(5)(GREY), "a part of 5 x 5 pixels does not fit into 4 x 5"),
        (lambda: T.ToTensor()(GREY[0]), r"rows, columns and perhaps channels, found shape \[5\]"),
        (lambda: T.Pad(1, (1, 2, 3)), "fill is one number for all channels, found"),
        (lambda: T.Pad(1, 300)(GREY.astype("uint8")), "a picture of uint8 cannot hold fill=300"),
        (lambda: T.Pad(1, float("nan"))(GREY.astype("uint8")), "a picture of uint8 cannot hold fill=nan"),
        (lambda: T.RandomCrop(2, 1, 0.5)(GREY.astype("uint8")), "a picture of uint8 cannot hold fill=0.5"),
        (lambda: T.Resize(3, "cubic"), "interpolation is 'bilinear' or 'nearest', not 'cubic'"),
        (lambda: T.Pad(1, padding_mode="no"), "padding_mode is one of constant"),
        (lambda: T.RandomRotation(10, center=(1, 1)), "leave center out"),
    ],
)
def test_wrong_arguments_are_errors(call: Callable[[], Any], told: str):
    with pytest.raises(DataError, match=told):
        call()
