import numpy as np
import pytest

from app.data import files
from app.data.mnist import load
from app.data.sample import SAMPLE, load_sample
from app.errors import DataError

# The counts of each digit in MNIST.
TRAIN = np.array([5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949])
TEST = np.array([980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009])


def test_the_sample_has_each_digit_as_often_as_mnist():
    sample = load_sample()
    assert (sample.train_images.shape, sample.test_images.shape) == ((10_000, 784), (2_000, 784))
    assert sample.image_shape == (28, 28)
    assert sample.is_sample
    assert sample.verified
    assert np.all(abs(np.bincount(sample.train_labels) - TRAIN / 6) < 1)
    assert np.all(abs(np.bincount(sample.test_labels) - TEST / 5) < 1)


def test_a_damaged_sample_is_an_error_that_says_how_to_get_it_back(tmp_path, monkeypatch):
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(files, "CHECKOUT", data)
    with pytest.raises(DataError, match=r"cannot be read.*\n`git checkout data/mnist-sample.npz`"):
        load_sample()
    (data / SAMPLE.name).write_bytes(b"PK\x03\x04")
    with pytest.raises(DataError, match=r"mnist-sample.npz should be .* bytes; found 4.*\n`git checkout"):
        load_sample()


def test_the_sample_is_every_sixth_training_image_of_each_digit_and_every_fifth_test_image():
    try:
        full = load("auto", sources=[], say=lambda _: None)
    except DataError:
        pytest.skip("the full set is not in the cache: `python -m app data fetch` fetches it")
    sample = load_sample()
    for part, one_of in (("train", 6), ("test", 5)):
        images, labels = getattr(full, f"{part}_images"), getattr(full, f"{part}_labels")
        chosen = np.sort(np.argsort(labels, kind="stable")[::one_of])
        np.testing.assert_array_equal(getattr(sample, f"{part}_images"), images[chosen])
        np.testing.assert_array_equal(getattr(sample, f"{part}_labels"), labels[chosen])
