import gzip

import numpy as np
import pytest

from app.data import idx
from app.data.folder import read_folder
from app.errors import DataError

from .conftest import idx_bytes


@pytest.fixture
def folder(tmp_path, contents):
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_a_folder_of_idxs_is_a_dataset(folder, contents):
    data = read_folder(folder)
    assert data.train_images.shape == (20, 6)
    assert data.test_images.shape == (10, 6)
    assert data.image_shape == (3, 2)
    assert data.train_images.dtype == np.uint8
    assert data.train_labels.dtype == np.int64
    assert data.train_images.tobytes() == contents["train-images-idx3-ubyte"][16:]
    assert data.test_labels.tolist() == list(range(10))
    assert str(folder) in data.origin
    assert not data.verified
    assert not data.is_sample


def test_files_may_be_packed_and_spelled_with_a_dot(folder, contents):
    expected = read_folder(folder)
    for number, (name, content) in enumerate(contents.items()):
        (folder / name).unlink()
        spelling = name.replace("-idx", ".idx") if number % 2 else name
        (folder / f"{spelling}.gz").write_bytes(gzip.compress(content))
    found = read_folder(folder)
    np.testing.assert_array_equal(found.train_images, expected.train_images)
    np.testing.assert_array_equal(found.test_labels, expected.test_labels)
    assert found.train_images.flags.writeable


def test_a_folder_that_does_not_exist_is_an_error_that_says_what_may_stand_there(tmp_path):
    with pytest.raises(DataError, match=r"no data folder .*smaple.*`auto`, `sample` or a folder"):
        read_folder(tmp_path / "smaple")


def test_a_missing_file_is_an_error_that_says_what_was_looked_for_and_what_is_there(folder):
    (folder / "train-labels-idx1-ubyte").rename(folder / "labels.csv")
    with pytest.raises(DataError) as error:
        read_folder(folder)
    for text in ["train-labels-idx1-ubyte, train-labels-idx1-ubyte.gz, train-labels.idx1-ubyte", "labels.csv"]:
        assert text in str(error.value)


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("train-labels-idx1-ubyte", np.zeros(19), "20 training images but 19 training labels"),
        ("t10k-labels-idx1-ubyte", np.arange(1, 11), "test label 9 is 10; labels must be 0 to 9"),
        ("t10k-images-idx3-ubyte", np.zeros((10, 2, 3)), r"training images are \(3, 2\) .* test images \(2, 3\)"),
        ("train-images-idx3-ubyte", np.zeros(20), "train-images-idx3-ubyte is not an IDX file .* 3 dimension"),
    ],
)
def test_files_that_do_not_fit_together_are_an_error(folder, name, array, message):
    (folder / name).write_bytes(idx_bytes(array))
    with pytest.raises(DataError, match=message):
        read_folder(folder)


def test_a_damaged_packed_file_is_named(folder):
    path = folder / "train-images-idx3-ubyte"
    path.unlink()
    path.with_name(f"{path.name}.gz").write_bytes(b"\x1f\x8b damaged")
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte.gz: the gzip file is damaged"):
        read_folder(folder)


def test_a_bomb_is_named(folder, monkeypatch):
    monkeypatch.setattr(idx, "_UNPACKED_AT_LEAST", 1000)
    path = folder / "train-images-idx3-ubyte"
    path.unlink()
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(idx_bytes(np.zeros((10_000, 100, 10)))))
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte.gz announces 10,000,000 bytes packed into"):
        read_folder(folder)
