import hashlib

import pytest

from app.data.files import FILES, File
from app.errors import DataError

HELLO = File("hello", 5, hashlib.sha256(b"hello").hexdigest())


def test_a_file_is_known_by_its_content():
    HELLO.check(b"hello")


def test_other_content_of_the_same_length_is_refused_with_both_hashes():
    with pytest.raises(DataError) as error:
        HELLO.check(b"jello")
    assert HELLO.sha256 in str(error.value)
    assert hashlib.sha256(b"jello").hexdigest() in str(error.value)


def test_another_length_is_refused_with_how_it_begins():
    with pytest.raises(DataError, match=r"hello should be 5 bytes; found 15 that begin with b'<!doctype html>'"):
        HELLO.check(b"<!doctype html>")


def test_the_four_files_are_as_large_as_their_arrays():
    assert [file.size for file in FILES] == [
        16 + 60_000 * 28 * 28,
        8 + 60_000,
        16 + 10_000 * 28 * 28,
        8 + 10_000,
    ]
    assert [file.dimensions for file in FILES] == [3, 1, 3, 1]
