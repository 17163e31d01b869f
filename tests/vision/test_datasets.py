"""MNIST as a data set: from files that are named, and from where the framework has it."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from app import io
from app.data import load
from app.errors import DataError
from app.vision import datasets, transforms

PICTURES = np.arange(3 * 28 * 28, dtype=np.int64).reshape(3, 28, 28).astype("uint8")
LABELS = np.array([7, 0, 9], "uint8")


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    images, labels = tmp_path / "images.gz", tmp_path / "labels"
    images.write_bytes(gzip.compress(struct.pack(">BBBB3I", 0, 0, 8, 3, 3, 28, 28) + PICTURES.tobytes()))
    labels.write_bytes(struct.pack(">BBBBI", 0, 0, 8, 1, 3) + LABELS.tobytes())
    return str(images), str(labels)


@pytest.mark.parametrize(("backend", "dtype"), [(None, "uint8"), ("pil", "uint8"), ("cv2", "float32")])
def test_mnist_reads_pictures_and_labels_from_files(files: tuple[str, str], backend: str | None, dtype: str):
    data = datasets.MNIST(*files, backend=backend)
    picture, label = data[2]
    assert (len(data), picture.dtype.name, label.dtype.name, label.tolist()) == (3, dtype, "int64", [9])
    np.testing.assert_array_equal(picture, PICTURES[2])
    assert data[-1][1].tolist() == [9]


def test_mnist_with_transforms_gives_batches_for_a_network(files: tuple[str, str]):
    normal = transforms.Compose([transforms.ToTensor(), transforms.Normalize([0.5], [0.5])])
    ((x, y),) = io.DataLoader(datasets.MNIST(*files, transform=normal), batch_size=3)
    assert (x.shape, y.shape, y.numpy().ravel().tolist()) == ([3, 1, 28, 28], [3, 1], [7, 0, 9])
    np.testing.assert_allclose(x.numpy()[:, 0], PICTURES / 127.5 - 1, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["train", "test"])
def test_mnist_without_files_is_the_published_set(monkeypatch: pytest.MonkeyPatch, mode: str):
    sample = load("sample")
    monkeypatch.setattr(datasets, "_published", lambda: sample)
    data = datasets.MNIST(mode=mode)
    images, labels = getattr(sample, f"{mode}_images"), getattr(sample, f"{mode}_labels")
    assert len(data) == len(labels)
    np.testing.assert_array_equal(data[5][0].ravel(), images[5])
    assert data[5][1].item() == labels[5]


def test_wrong_arguments_are_errors(files: tuple[str, str], tmp_path: Path):
    with pytest.raises(DataError, match="mode is 'train' or 'test', not 'valid'"):
        datasets.MNIST(mode="valid")
    with pytest.raises(DataError, match="backend is 'pil' or 'cv2', not 'x'"):
        datasets.MNIST(backend="x")
    with pytest.raises(DataError, match="image_path and label_path belong together"):
        datasets.MNIST(files[0])
    with pytest.raises(DataError, match="is not an IDX file of unsigned bytes in 3 dimension"):
        datasets.MNIST(files[1], files[1])
    with pytest.raises(DataError, match="cannot be read: No such file"):
        datasets.MNIST(str(tmp_path / "none"), files[1])
