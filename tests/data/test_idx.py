"""IDX files, alone and as a folder of the user's. What damaged ones cost is in tests/fuzz."""

import gzip
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as npst

from app.data import idx, load
from app.data.idx import unpack
from app.errors import DataError

from .conftest import idx_bytes

IMAGES = idx_bytes(np.arange(24).reshape(4, 3, 2))
NAME = "train-images-idx3-ubyte"


def parse(content: bytes, dimensions: int = 3) -> np.ndarray:
    return idx.parse(np.frombuffer(content, np.uint8), dimensions, "a file")


@given(npst.arrays(np.uint8, npst.array_shapes(min_dims=1, max_dims=3, max_side=5)))
def test_an_array_is_read_as_it_was_written(array):
    read = parse(idx_bytes(array), array.ndim)
    assert read.dtype == np.uint8
    np.testing.assert_array_equal(read, array)


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
def test_errors_name_what_was_expected_and_found(content, message):
    with pytest.raises(DataError, match=message):
        parse(content)


def test_a_truncated_gzip_file_is_an_error():
    packed = gzip.compress(b"a few bytes of content")
    for end in range(2, len(packed)):
        with pytest.raises(DataError, match="damaged"):
            unpack(packed[:end], limit=1000)


# -- folders of the user


@pytest.fixture
def folder(tmp_path, contents):
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize("packed", [False, True])
def test_a_folder_of_four_files_is_a_dataset(folder, contents, packed):
    """The files may be packed, and some archives unpack to a dot before "idx"."""
    if packed:
        for name, content in contents.items():
            (folder / name).unlink()
            spelling = name if "train" in name else name.replace("-idx", ".idx")
            (folder / f"{spelling}.gz").write_bytes(gzip.compress(content))
    data = load(str(folder))
    assert (data.train_images.shape, data.test_images.shape, data.image_shape) == ((20, 6), (10, 6), (3, 2))
    assert (data.train_images.dtype, data.train_labels.dtype) == (np.uint8, np.int64)
    assert data.train_images.tobytes() == contents[NAME][16:]
    assert data.test_labels.tolist() == list(range(10))
    assert data.train_images.flags.writeable
    assert data.origin == f"the folder {folder}"
    assert not data.verified
    assert not data.is_sample


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train-labels-idx1-ubyte", idx_bytes(np.zeros(19)), "20 training images but 19 training labels"),
        ("t10k-labels-idx1-ubyte", idx_bytes(np.arange(1, 11)), "test label 9 is 10; labels must be 0 to 9"),
        (
            "t10k-images-idx3-ubyte",
            idx_bytes(np.zeros((10, 2, 3))),
            r"training images are \(3, 2\) .* test images \(2, 3\)",
        ),
        (NAME, idx_bytes(np.zeros(20)), f"{NAME} is not an IDX file .* 3 dimension"),
        (f"{NAME}.gz", b"\x1f\x8b damaged", f"{NAME}.gz: the gzip file is damaged"),
        (
            f"{NAME}.gz",
            gzip.compress(idx_bytes(np.zeros((10_000, 100, 10)))),
            f"{NAME}.gz announces 10,000,000 bytes compressed to",
        ),
        (f"{NAME}.csv", b"", f"lacks {NAME}: looked for {NAME}, {NAME}.gz, train-images.idx3-ubyte.*{NAME}.csv"),
    ],
    ids=["fewer labels", "a label 10", "another size", "two dimensions", "damaged", "a gzip bomb", "another name"],
)
def test_files_that_do_not_fit_together_are_errors(folder, monkeypatch, name, content, message):
    monkeypatch.setattr(idx, "_UNPACKED_AT_LEAST", 1000)
    os.rename(folder / name.removesuffix(".gz").removesuffix(".csv"), folder / name)
    (folder / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        load(str(folder))


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"no data folder .*smaple.*`auto`, `sample` or a folder"):
        load(str(tmp_path / "smaple"))
