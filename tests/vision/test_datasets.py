"""MNIST as a data set: from files that are named, and as it is published; and LeNet."""

from __future__ import annotations

import gzip
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

import app
from app import io
from app.data import load
from app.errors import DataError
from app.vision import datasets, transforms
from app.vision.models import LeNet

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
    monkeypatch.setattr(datasets, "_published", lambda source: sample)
    data = datasets.MNIST(mode=mode)
    images, labels = getattr(sample, f"{mode}_images"), getattr(sample, f"{mode}_labels")
    assert len(data) == len(labels)
    np.testing.assert_array_equal(data[5][0].ravel(), images[5])
    assert data[5][1].item() == labels[5]


def test_what_a_program_changes_in_a_data_set_is_its_own(monkeypatch: pytest.MonkeyPatch, files: tuple[str, str]):
    monkeypatch.setenv("OPSMITH_DATA", "sample")
    digits = datasets.MNIST(mode="test")
    label, total = digits[5][1].item(), int(digits.images[5].sum())
    digits.images[5] = 0
    digits.labels[5] = (label + 1) % 10
    for again in (datasets.MNIST(mode="test"), datasets.MNIST(*files)):
        first = again[0][1]
        first += 1
        assert again[0][1].item() == first.item() - 1
    again = datasets.MNIST(mode="test")
    assert (again[5][1].item(), int(again.images[5].sum())) == (label, total)


def test_the_published_set_is_that_of_the_current_folder(monkeypatch: pytest.MonkeyPatch, files: tuple[str, str]):
    monkeypatch.setenv("OPSMITH_DATA", "sample")
    assert len(datasets.MNIST(mode="test")) == 2000
    folder = Path(files[0]).parent
    for part in ("train", "t10k"):
        shutil.copy(files[0], folder / f"{part}-images-idx3-ubyte.gz")
        shutil.copy(files[1], folder / f"{part}-labels-idx1-ubyte")
    monkeypatch.setenv("OPSMITH_DATA", str(folder))
    assert len(datasets.MNIST(mode="test")) == 3


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"mode": "valid"}, "mode is 'train' or 'test', not 'valid'"),
        ({"backend": "x"}, "backend is 'pil' or 'cv2', not 'x'"),
        ({"image_path": "a file"}, "image_path and label_path belong together"),
        ({"image_path": __file__, "label_path": __file__}, "is not an IDX file of unsigned bytes in 3 dimension"),
        ({"image_path": "none", "label_path": __file__}, "cannot be read: No such file"),
    ],
    ids=["mode", "backend", "one path", "no IDX file", "no file"],
)
def test_wrong_arguments_are_errors(arguments: dict[str, str], told: str):
    with pytest.raises(DataError, match=told):
        datasets.MNIST(**arguments)


def test_lenet_has_the_shapes_of_paddle():
    net = LeNet()
    shapes = {name: p.shape for name, p in net.named_parameters()}
    assert shapes["features.0.weight"] == [6, 1, 3, 3]
    assert shapes["features.3.weight"] == [16, 6, 5, 5]
    assert [shapes[f"fc.{i}.weight"] for i in range(3)] == [[400, 120], [120, 84], [84, 10]]
    assert net(app.zeros([2, 1, 28, 28])).shape == [2, 10]
    assert LeNet(num_classes=0)(app.zeros([2, 1, 28, 28])).shape == [2, 16, 5, 5]
