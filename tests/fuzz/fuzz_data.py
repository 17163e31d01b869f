"""The readers of data sets (IDX files, folders of them, gzip, packages, and the cache) and of pictures."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import tarfile
import tempfile
from pathlib import Path

import numpy as np
from fuzz_target import BETWEEN, Target, in_a_file
from PIL import Image

from app.data import idx
from app.data.files import FILES, File, read
from app.data.idx import unpack
from app.data.mnist import read_folder
from app.data.sources import NpmPackage
from app.use.digits import prepare
from app.use.image_files import FORMATS, read_picture


def idx_bytes(*shape: int) -> bytes:
    values = (np.arange(np.prod(shape)) % 10).astype(np.uint8).tobytes()
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + values


def _archive(name: str, content: bytes, format: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=format) as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def _read_folder(content: bytes) -> None:
    """Four files in a folder: the pieces between separators."""
    with tempfile.TemporaryDirectory() as folder:
        for file, piece in zip(FILES, content.split(BETWEEN), strict=False):
            (Path(folder) / (file.name + ".gz" * piece.startswith(b"\x1f"))).write_bytes(piece)
        read_folder(Path(folder))


def _read_cache(content: bytes) -> None:
    file = File("known", 7, hashlib.sha256(b"content").hexdigest())
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / file.name).write_bytes(content)
        read(file, Path(folder))


def _read_package(content: bytes) -> None:
    package = NpmPackage("a@1.0.0")
    package.__dict__["_archive"] = content  # as if npm had fetched it
    package.fetch(FILES[0].name, FILES[0].size)


_IMAGES, _LABELS = idx_bytes(4, 3, 2), idx_bytes(4)
_MEMBER = f"package/data/{FILES[0].name}"

DATA = {
    "idx": Target(lambda content: idx.parse(np.frombuffer(content, np.uint8), 3, "a file"), (_IMAGES,)),
    "idx_file": Target(
        in_a_file(lambda path: idx.read(path, 3)),
        (_IMAGES, gzip.compress(_IMAGES), gzip.compress(_IMAGES[:9]) + gzip.compress(_IMAGES[9:])),
    ),
    "folder": Target(
        _read_folder,
        (
            BETWEEN.join([_IMAGES, _LABELS, _IMAGES, _LABELS]),
            BETWEEN.join(gzip.compress(content) for content in (_IMAGES, _LABELS, _IMAGES, _LABELS)),
        ),
    ),
    "gzip": Target(lambda content: unpack(content, 10_000), (gzip.compress(b"content" * 99), gzip.compress(b""))),
    "package": Target(
        _read_package,
        (
            _archive(_MEMBER, _IMAGES, tarfile.USTAR_FORMAT),
            _archive(_MEMBER, _IMAGES, tarfile.GNU_FORMAT),
            _archive(_MEMBER + "x" * 200, _IMAGES, tarfile.PAX_FORMAT),
            _archive("ä" * 99, b"", tarfile.GNU_FORMAT),
        ),
    ),
    "cache": Target(_read_cache, (b"content", b"contend")),
}


def _picture(form: str, mode: str) -> bytes:
    pixels = np.arange(9 * 7 * 4, dtype=np.uint8).reshape(9, 7, 4)
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(buffer, form)
    return buffer.getvalue()


PICTURES = {
    "picture": Target(
        in_a_file(lambda path: prepare(read_picture(path))),
        tuple(_picture(form, "RGB" if form in ("PPM", "JPEG") else "RGBA") for form in FORMATS),
    ),
}
