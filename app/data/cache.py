"""The folder that keeps verified files between runs: what is read from it is verified every time.

Verifying on each read costs 25 ms for all of MNIST, about as long as reading it. A stamp of size and time
would save them and believe a file that a disk has damaged since.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.data.files import FILES, File
from app.errors import DataError

# The top-level data/ of the checkout that this package lies in: the home of the sample.
CHECKOUT = Path(__file__).resolve().parents[2] / "data"


def default_folder() -> Path:
    """The checkout's `data/` where there is one that can be used, otherwise the user's own cache folder."""
    # Installed as a package, `CHECKOUT` may be some stranger's folder in site-packages.
    in_checkout = CHECKOUT.is_dir() and (CHECKOUT.parent / "pyproject.toml").is_file()
    complete = all((CHECKOUT / file.name).is_file() for file in FILES)
    if in_checkout and (complete or os.access(CHECKOUT, os.W_OK | os.X_OK)):
        return CHECKOUT
    import pooch  # only here: importing it takes longer than reading MNIST

    return Path(pooch.os_cache("opsmith"))


def read(file: File, folder: Path) -> NDArray[np.uint8]:
    """The verified content of `file`, as bytes that may be written to."""
    path = folder / file.name
    try:
        # No more than one byte too many: whatever lies there, it cannot fill the memory.
        content = np.fromfile(path, np.uint8, count=file.size + 1)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    file.check(content.data)
    return content


def keep(content: bytes, file: File, folder: Path, origin: str) -> None:
    """Put a verified file in its place, and beside it a note of where it came from."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder / file.name, content)
        _replace(_note(file, folder), f"{origin}\n".encode())
    except OSError as error:
        raise DataError(f"{file.name} cannot be kept in {folder}: {error.strerror or error}") from error


def origin(file: File, folder: Path) -> str:
    """Where a file in the cache came from, as `keep` noted it."""
    try:
        return _note(file, folder).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "an origin that was not noted"


def _note(file: File, folder: Path) -> Path:
    return folder / f"{file.name}.from"


def _replace(path: Path, content: bytes) -> None:
    # A name of its own for each writer: two processes that fetch at once replace one good file by another.
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
