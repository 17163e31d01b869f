import subprocess
import sys

import numpy as np
import pytest

from app.data import load
from app.data import mnist as mnist_module
from app.errors import ConfigError, DataError

from .conftest import respond, serve_packed


@pytest.fixture
def mirror(files, server, contents, monkeypatch):
    """A mirror of the small stand-in, which is what `load` takes for MNIST."""
    monkeypatch.setattr(mnist_module, "FILES", files)
    server.answer = serve_packed(contents)
    return server


def test_auto_fetches_once_and_then_needs_no_source(mirror, tmp_path):
    said: list[str] = []
    data = load(sources=[mirror.url], folder=tmp_path, say=said.append)
    assert said
    assert data.verified
    assert not data.is_sample
    assert str(tmp_path) in data.origin
    assert data.train_images.shape == (20, 6)
    assert data.train_images.flags.writeable
    said.clear()
    again = load(sources=[], folder=str(tmp_path), say=said.append)
    assert said == []
    np.testing.assert_array_equal(again.train_images, data.train_images)
    np.testing.assert_array_equal(again.test_labels, data.test_labels)
    with pytest.raises(ConfigError, match="'nonsense' is not a source"):
        load(sources=["nonsense", "sample"], folder=tmp_path)


def test_the_sample_replaces_mnist_only_where_it_is_listed(mirror, tmp_path):
    mirror.answer = respond(b"?", 404)
    said: list[str] = []
    data = load(sources=[mirror.url, "sample"], folder=tmp_path, say=said.append)
    assert data.is_sample
    assert "could not be had" in data.origin
    assert "Only the committed sample is available: 10,000 training" in said[-1]
    with pytest.raises(DataError, match="No source could give"):
        load(sources=[mirror.url], folder=tmp_path, say=said.append)


def test_the_environment_names_the_default_source(monkeypatch):
    monkeypatch.setenv("OPSMITH_DATA", "sample")
    assert load().is_sample
    with pytest.raises(DataError, match="there is no data folder '~nobody-of-that-name/data'"):
        load("~nobody-of-that-name/data")


def test_importing_the_package_loads_no_library_for_downloads():
    code = "import sys, app.data; print({'requests', 'urllib3', 'tqdm', 'subprocess', 'tarfile'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
