import gzip
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.data.unpack import unpack
from app.errors import DataError


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
def test_damage_is_a_data_error_and_nothing_else(rest):
    with suppress(DataError):
        unpack(b"\x1f\x8b" + rest, limit=1000)


@given(st.data())
def test_a_packed_file_that_was_cut_off_is_a_data_error(data):
    packed = gzip.compress(b"a few bytes of content")
    end = data.draw(st.integers(2, len(packed) - 1))
    with pytest.raises(DataError, match="damaged"):
        unpack(packed[:end], limit=1000)
