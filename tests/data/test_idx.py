import gzip
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from app.data import idx
from app.data.idx import unpack
from app.data.mnist import read_folder
from app.errors import DataError

from .conftest import idx_bytes

IMAGES = idx_bytes(np.arange(24).reshape(4, 3, 2))
images = npst.array_shapes(min_dims=3, max_dims=3, max_side=5)
labels = npst.array_shapes(min_dims=1, max_dims=1, max_side=20)


def parse(content: bytes, dimensions: int = 3) -> np.ndarray:
    return idx.parse(np.frombuffer(content, np.uint8), dimensions, "a file")


@given((images | labels).flatmap(lambda shape: npst.arrays(np.uint8, shape)))
def test_what_was_written_is_read(array):
    read = parse(idx_bytes(array), array.ndim)
    assert read.dtype == np.uint8
    np.testing.assert_array_equal(read, array)


@given(st.sampled_from([b"", b"\0\0\x08\x03"]), st.binary(max_size=64))
def test_any_bytes_are_those_of_an_array_or_a_data_error(start, rest):
    with suppress(DataError):
        assert idx_bytes(parse(start + rest)) == start + rest


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"should begin with the bytes 00 00 08 03, found nothing"),
        (b"<!doctype html>", r"should begin with the bytes 00 00 08 03, found 3c 21 64 6f"),
        (idx_bytes(np.arange(9)), r"IDX file of unsigned bytes in 3 dimension\(s\).* found 00 00 08 01"),
        (IMAGES[:9], r"ends inside its header: 16 bytes expected, found 9"),
        (IMAGES[:-1], r"announces 4 x 3 x 2 = 24 bytes after its header, found 23"),
        (IMAGES + b"?", r"announces 4 x 3 x 2 = 24 bytes after its header, found 25"),
        (b"\0\0\x08\x03" + b"\xff" * 12, r"announces 4294967295 x 4294967295 x 4294967295 = "),
        (idx_bytes(np.zeros((0, 28, 28))), r"is empty: its header announces 0 x 28 x 28 values"),
    ],
)
def test_errors_say_what_was_expected_and_what_was_found(content, message):
    with pytest.raises(DataError, match=message):
        parse(content)


# -- gzip


@given(st.binary(max_size=5000))
def test_what_was_packed_is_unpacked(content):
    assert unpack(gzip.compress(content), limit=5000) == content


def test_what_is_not_packed_stays_as_it_is():
    assert unpack(b"<!doctype html>", limit=100) == b"<!doctype html>"


def test_a_bomb_is_cut_off_one_byte_after_the_limit_and_costs_no_more_memory():
    bomb = gzip.compress(bytes(200_000_000), compresslevel=1)
    tracemalloc.start()
    try:
        assert len(unpack(bomb, limit=1000)) == 1001
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000


@given(st.binary(max_size=200))
def test_damage_is_a_data_error_or_content_within_the_limit(rest):
    with suppress(DataError):
        assert len(unpack(b"\x1f\x8b" + rest, limit=1000)) <= 1001


@given(st.data())
def test_a_packed_file_that_was_cut_off_is_a_data_error(data):
    packed = gzip.compress(b"a few bytes of content")
    end = data.draw(st.integers(2, len(packed) - 1))
    with pytest.raises(DataError, match="damaged"):
        unpack(packed[:end], limit=1000)


# -- folders of the user


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


@pytest.mark.parametrize(
    ("packed", "message"),
    [
        (b"\x1f\x8b damaged", r"train-images-idx3-ubyte.gz: the gzip file is damaged"),
        (
            gzip.compress(idx_bytes(np.zeros((10_000, 100, 10)))),
            r"train-images-idx3-ubyte.gz announces 10,000,000 bytes compressed to",
        ),
    ],
    ids=["damage", "a bomb"],
)
def test_a_packed_file_that_cannot_be_unpacked_is_named(folder, monkeypatch, packed, message):
    monkeypatch.setattr(idx, "_UNPACKED_AT_LEAST", 1000)
    path = folder / "train-images-idx3-ubyte"
    path.rename(path.with_name(f"{path.name}.gz")).write_bytes(packed)
    with pytest.raises(DataError, match=message):
        read_folder(folder)
