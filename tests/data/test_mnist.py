import subprocess
import sys

import numpy as np
import pytest

from app.data import load
from app.data import mnist as mnist_module
from app.errors import ConfigError, DataError

from .conftest import respond, serve_packed


@pytest.fixture
def mnist(files, server, contents, monkeypatch):
    """`load` in a world where MNIST is the small stand-in and one mirror has it."""
    monkeypatch.setattr(mnist_module, "FILES", files)
    server.answer = serve_packed(contents)
    return server


def test_auto_fetches_and_afterwards_needs_no_source_and_says_nothing(mnist, tmp_path):
    said: list[str] = []
    data = load(sources=[mnist.url], folder=tmp_path, say=said.append)
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


def test_when_only_the_sample_can_be_had_it_is_said_and_written_on_the_data(mnist, tmp_path):
    mnist.answer = respond(b"?", 404)
    said: list[str] = []
    data = load(sources=[mnist.url, "sample"], folder=tmp_path, say=said.append)
    assert data.is_sample
    assert len(data.train_images) == 10_000
    assert "could not be had" in data.origin
    assert "Only the committed sample is available: 10,000 training" in said[-1]
    with pytest.raises(DataError, match="No source could give"):
        load(sources=[mnist.url], folder=tmp_path, say=said.append)


def test_a_source_that_is_no_source_is_an_error_even_when_nothing_need_be_fetched(mnist, tmp_path):
    load(sources=[mnist.url], folder=tmp_path, say=lambda _: None)
    with pytest.raises(ConfigError, match="'nonsense' is not a source"):
        load(sources=["nonsense", "sample"], folder=tmp_path)


def test_sample_and_folders_are_sources_of_their_own(tmp_path, contents):
    assert load("sample").is_sample
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    assert load(str(tmp_path)).image_shape == (3, 2)


def test_importing_the_package_imports_nothing_that_downloads():
    code = (
        "import sys, app.data; "
        "print(*sorted({'requests', 'urllib3', 'tqdm', 'subprocess', 'tarfile'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_environment_can_say_the_source_where_none_is_given(monkeypatch):
    monkeypatch.setenv("OPSMITH_DATA", "sample")
    assert load().is_sample
    with pytest.raises(DataError, match="there is no data folder '~nobody-of-that-name/data'"):
        load("~nobody-of-that-name/data")
