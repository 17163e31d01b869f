"""MNIST and its committed sample, as `load` gives them."""

import subprocess
import sys

import numpy as np
import pytest

from app.data import load
from app.data import mnist as mnist_module
from app.data.sample import SAMPLE, load_sample
from app.errors import ConfigError, DataError

from .conftest import respond, serve_packed


@pytest.fixture
def mirror(files, server, contents, monkeypatch):
    """A mirror of the small stand-in, which is what `load` takes for MNIST."""
    monkeypatch.setattr(mnist_module, "FILES", files)
    server.answer = serve_packed(contents)
    return server


def test_auto_fetches_once_and_then_needs_no_source(mirror, tmp_path):
    lines: list[str] = []
    data = load(sources=[mirror.url], folder=tmp_path, say=lines.append)
    assert lines
    assert data.verified
    assert not data.is_sample
    assert str(tmp_path) in data.origin
    assert data.train_images.shape == (20, 6)
    assert data.train_images.flags.writeable
    lines.clear()
    again = load(sources=[], folder=str(tmp_path), say=lines.append)
    assert lines == []
    np.testing.assert_array_equal(again.train_images, data.train_images)
    np.testing.assert_array_equal(again.test_labels, data.test_labels)
    with pytest.raises(ConfigError, match="'nonsense' is not a source"):
        load(sources=["nonsense", "sample"], folder=tmp_path)


def test_the_sample_replaces_mnist_only_where_it_is_listed(mirror, tmp_path):
    mirror.answer = respond(b"?", 404)
    lines: list[str] = []
    data = load(sources=[mirror.url, "sample"], folder=tmp_path, say=lines.append)
    assert data.is_sample
    assert "could not be had" in data.origin
    assert "Only the committed sample is available: 10,000 training" in lines[-1]
    with pytest.raises(DataError, match="No source could give"):
        load(sources=[mirror.url], folder=tmp_path, say=lines.append)


def test_the_environment_names_the_default_source(monkeypatch):
    monkeypatch.setenv("OPSMITH_DATA", "sample")
    assert load().is_sample
    with pytest.raises(DataError, match="there is no data folder '~nobody-of-that-name/data'"):
        load("~nobody-of-that-name/data")


def test_importing_the_package_loads_no_library_for_downloads():
    code = "import sys, app.data; print({'requests', 'urllib3', 'tqdm', 'subprocess', 'tarfile'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


# The sample

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
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "default.yaml").touch()
    monkeypatch.setattr("app.files.PACKAGE_FOLDER", tmp_path / "app")
    with pytest.raises(DataError, match=r"cannot be read.*\n`git checkout data/mnist-sample.npz`"):
        load_sample()
    (data / SAMPLE.name).write_bytes(b"PK\x03\x04")
    with pytest.raises(DataError, match=r"mnist-sample.npz should be .* bytes; found 4.*\n`git checkout"):
        load_sample()


def test_the_sample_is_every_sixth_training_image_of_each_digit_and_every_fifth_test_image():
    try:
        full = load("auto", sources=[], say=lambda _: None)
    except DataError:
        pytest.skip("the full set is not in the cache: `opsmith data fetch` fetches it")
    sample = load_sample()
    for part, one_of in (("train", 6), ("test", 5)):
        images, labels = getattr(full, f"{part}_images"), getattr(full, f"{part}_labels")
        chosen = np.sort(np.argsort(labels, kind="stable")[::one_of])
        np.testing.assert_array_equal(getattr(sample, f"{part}_images"), images[chosen])
        np.testing.assert_array_equal(getattr(sample, f"{part}_labels"), labels[chosen])
