from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from app.data import idx
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


@given(st.binary(max_size=64))
def test_any_bytes_are_an_array_or_a_data_error(content):
    with suppress(DataError):
        parse(content)


@given(st.binary(max_size=64))
def test_any_dimensions_are_an_array_or_a_data_error(rest):
    with suppress(DataError):
        parse(b"\0\0\x08\x03" + rest)


@given(st.integers(0, len(IMAGES) - 1))
def test_a_file_that_was_cut_off_is_refused(end):
    with pytest.raises(DataError):
        parse(IMAGES[:end])


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
