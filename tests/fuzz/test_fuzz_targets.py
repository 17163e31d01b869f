"""No bytes make a reader crash, hang, or take more than a small multiple of their own length in memory."""

from __future__ import annotations

import gzip
import tarfile
import time
import tracemalloc
from collections.abc import Callable

import pytest
from fuzz_data import DATA, idx_bytes
from fuzz_target import Target
from fuzz_targets import TARGETS
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.slow

TIMES, AT_LEAST = 12, 2 << 20
"""Memory that a reader may take: a multiple of what it is given, and what it needs anyhow; Pillow reads by the MiB."""
SECONDS = 5.0


@pytest.fixture(autouse=True, scope="module")
def _imported() -> None:
    """What readers import when they are first called is not counted as memory that they take for an input."""
    for target in TARGETS.values():
        for seed in target.seeds:
            target(seed)


def check(target: Target, content: bytes) -> bool:
    """Give bytes to a reader, and look at what it costs."""
    start = time.monotonic()
    tracemalloc.start()
    try:
        accepted = target(content)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most <= TIMES * len(content) + AT_LEAST
    assert time.monotonic() - start < SECONDS
    return accepted


@st.composite
def damaged(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """A good input with some of it overwritten, left out, or said twice; or no good input at all."""
    content = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 4))):
        at, length = draw(st.integers(0, len(content))), draw(st.integers(0, 16))
        new = draw(st.binary(max_size=16) | st.sampled_from([b"\xff" * 4, b"\0" * 8, b"\x7f\xff\xff\xff", b"77777777"]))
        content[at : at + draw(st.sampled_from([0, length, len(new)]))] = new
    return bytes(content)


@pytest.mark.parametrize("name", TARGETS)
def test_a_good_input_is_taken(name):
    assert any(check(TARGETS[name], seed) for seed in TARGETS[name].seeds)


@pytest.mark.parametrize("name", TARGETS)
def test_a_damaged_input_is_taken_or_the_error_of_the_reader(name):
    target = TARGETS[name]

    @settings(max_examples=10, deadline=None)
    @given(damaged(target.seeds) | st.binary(max_size=300))
    def holds(content: bytes) -> None:
        check(target, content)

    holds()


@pytest.mark.parametrize("name", TARGETS)
def test_a_truncated_input_is_taken_or_the_error_of_the_reader(name):
    for seed in TARGETS[name].seeds:
        for end in range(0, len(seed), max(1, len(seed) // 20)):
            TARGETS[name](seed[:end])  # which raises any error that is not the reader's own


def header(kind: bytes, content: bytes) -> bytes:
    """What in a tar says something about the member that comes next."""
    member = tarfile.TarInfo("next")
    member.type, member.size = kind, len(content)
    return member.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % 512)


HUGE = b"\0\0\x08\x03" + b"\x00\x10\x00\x00" * 3  # a header that announces 2^60 bytes
LARGE = b"\0\0\x08\x03\0\0\0\1" + b"\0\0\x1f\x40" * 2  # one that announces 64 million
MUCH = 10_000_000
LIES: dict[str, Callable[[], bytes]] = {
    "a header of much": lambda: HUGE,
    "a packed header of much": lambda: gzip.compress(HUGE),
    "a packed header of 64 million, and less": lambda: gzip.compress(LARGE + bytes(999)),
    "a bomb": lambda: gzip.compress(bytes(MUCH)),
    "a bomb behind a header": lambda: gzip.compress(idx_bytes(4, 3, 2) + bytes(MUCH)),
    "a bomb behind a header that fits": lambda: gzip.compress(HUGE + bytes(MUCH)),
    "many files of nothing": lambda: gzip.compress(b"") * 2000,
    "a length beyond all numbers": lambda: header(tarfile.XHDTYPE, b"8" * 128),
    "a negative length": lambda: header(tarfile.XHDTYPE, b"-9 size=-9\n"),
    "a name of a name of a name": lambda: header(tarfile.GNUTYPE_LONGNAME, b"name") * 3000,
}
"""Made when they are needed: packing millions of bytes would take each worker a while."""


@pytest.mark.parametrize("lie", LIES)
def test_compression_bombs_and_huge_announced_sizes_cost_little(lie):
    content = LIES[lie]()
    for target in DATA.values():
        check(target, content)
