"""Picture files of all kinds are read; what is none, is damaged or could do harm is refused in one line."""

from __future__ import annotations

import contextlib
import io
import os
import struct
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from app.errors import DataError
from app.use.image_files import read_picture

# A dark L on a light ground, which stands upright.
L = np.full((40, 30), 240, np.uint8)
L[5:35, 5:10] = 10
L[30:35, 5:25] = 10


def written(tmp_path: Path, image: Image.Image, name: str, **settings: Any) -> np.ndarray:
    image.save(tmp_path / name, **settings)
    return read_picture(tmp_path / name)


def shows_l(picture: np.ndarray) -> bool:
    grey = picture.mean(-1)
    return grey.shape == (40, 30) and grey[10, 7] < 0.3 < 0.7 < grey[10, 20] and grey[32, 20] < 0.3


HOLDS = {
    "a.png": ("L", "RGB", "P", "1", "RGBA", "LA", "I;16"),
    "a.jpg": ("L", "RGB", "CMYK"),
    "a.bmp": ("L", "RGB", "P", "1"),
    "a.gif": ("L", "RGB", "P", "1"),
    "a.webp": ("L", "RGB", "RGBA"),
    "a.tif": ("L", "RGB", "P", "1", "CMYK", "RGBA", "I;16", "I", "F"),
    "a.ppm": ("L", "RGB", "1", "I;16"),
}
"""The ways to hold pixels, by Pillow's names, that a format has."""


def held_as(mode: str) -> Image.Image:
    """The L in another way to hold pixels."""
    if mode == "I;16":
        return Image.fromarray(L.astype(np.uint16) * 257)
    return Image.fromarray(L).convert("RGB" if mode in ("CMYK", "RGBA") else "L").convert(mode)


@pytest.mark.parametrize(("name", "mode"), [(name, mode) for name, modes in HOLDS.items() for mode in modes])
def test_files_of_any_kind_are_read(tmp_path: Path, name: str, mode: str):
    assert shows_l(written(tmp_path, held_as(mode), name))


def test_a_picture_is_turned_as_the_camera_says(tmp_path: Path):
    turned = Image.fromarray(L).transpose(Image.Transpose.ROTATE_90)
    exif = turned.getexif()
    exif[0x0112] = 6  # the camera was held upright
    assert shows_l(written(tmp_path, turned, "a.jpg", exif=exif))


@pytest.mark.parametrize("ink", [0, 255])
def test_transparent_pixels_are_background(tmp_path: Path, ink: int):
    pixels = np.full((40, 30, 4), ink, np.uint8)
    pixels[..., 3] = np.where(L < 100, 255, 0)
    picture = written(tmp_path, Image.fromarray(pixels), "a.png").mean(-1)
    assert abs(picture[10, 7] - picture[10, 20]) == 1


def test_large_pictures_are_reduced_at_once(tmp_path: Path):
    picture = written(tmp_path, Image.fromarray(L).resize((3000, 4000)), "a.png")
    assert 400 <= max(picture.shape) <= 1600


def test_the_first_picture_of_several_is_read(tmp_path: Path):
    frames = [Image.fromarray(L), Image.fromarray(255 - L)]
    assert shows_l(written(tmp_path, frames[0], "a.gif", save_all=True, append_images=frames[1:]))


def refused(path: Path, why: str) -> None:
    with pytest.raises(DataError, match=why) as caught:
        read_picture(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_paths_that_are_not_files_are_errors(tmp_path: Path):
    refused(tmp_path / "nothing.png", "no such file")
    refused(tmp_path, "it is not a file")
    os.mkfifo(tmp_path / "pipe.png")
    refused(tmp_path / "pipe.png", "it is not a file")


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", b"%PDF-1.7", b"<svg/>"]
)
def test_files_that_are_not_pictures_are_errors(tmp_path: Path, content: bytes):
    (tmp_path / "a.png").write_bytes(content)
    refused(tmp_path / "a.png", "it is not a picture in a supported format: PNG, JPEG, ")


def bomb(side: int) -> bytes:
    """A PNG of a few bytes that says it has `side` x `side` pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 99)) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("side", [5_000, 11_000, 20_000, 2**30])
def test_a_decompression_bomb_is_refused(tmp_path: Path, side: int):
    (tmp_path / "a.png").write_bytes(bomb(side))
    refused(tmp_path / "a.png", "too large|claims .* pixels, more than the 16,000,000 that are read of it")


def test_a_file_that_is_too_long_is_refused(tmp_path: Path):
    with (tmp_path / "a.png").open("wb") as file:
        file.truncate(100_000_001)
    refused(tmp_path / "a.png", "it has 100,000,001 bytes, more than the 100,000,000 that are read")


def many_scans() -> bytes:
    """A small JPEG that is refined a thousand times."""
    stream = io.BytesIO()
    Image.new("L", (2000, 2000), 128).save(stream, "JPEG", progressive=True)
    content = stream.getvalue()
    scan = content[content.rindex(b"\xff\xda") : -2]
    return content[:-2] + 1000 * scan + b"\xff\xd9"


SLOW = {
    "a.jpg": many_scans,
    "a.ppm": lambda: b"P3 4000 4000 255 " + b"1 " * 12_000_000,
    "a.pbm": lambda: b"P1 4000 4000 " + b"1 " * 4_000_000,
}


@pytest.mark.parametrize("name", ["a.jpg", "a.ppm", pytest.param("a.pbm", marks=pytest.mark.soak)])
@pytest.mark.slow
def test_a_picture_that_is_slow_to_read_is_given_up(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.use.image_files.SECONDS", 0.2)
    (tmp_path / name).write_bytes(SLOW[name]())
    start = time.thread_time()
    refused(tmp_path / name, "reading it takes more than 0.2 seconds, as no picture of a digit does")
    assert time.thread_time() - start < 2


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(["a.png", "a.jpg", "a.gif", "a.tif", "a.webp", "a.bmp"]), data=st.data())
def test_a_damaged_file_is_refused_or_read(tmp_path: Path, name: str, data: st.DataObject):
    Image.fromarray(L).convert("RGB").save(tmp_path / name)
    content = bytearray((tmp_path / name).read_bytes())
    cut = data.draw(st.integers(0, len(content)))
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=4)):
        content[place] ^= data.draw(st.integers(1, 255))
    (tmp_path / name).write_bytes(content[:cut])
    with contextlib.suppress(DataError):
        assert read_picture(tmp_path / name).ndim == 3
