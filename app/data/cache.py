"""The cache folder of verified files. Files are verified every time they are read.

Verifying on each read costs 25 ms for all of MNIST, about as long as reading it. A stamp of size and time
would save them and believe a file that a disk has damaged since.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.data.files import FILES, File
from app.errors import DataError, FileError
from app.files import open_file, write_whole

# The top-level data/ of the checkout that this package lies in: the home of the sample.
CHECKOUT = Path(__file__).resolve().parents[2] / "data"


def in_checkout() -> bool:
    """Whether this package is in a checkout. Installed, `CHECKOUT` may be another package's folder."""
    return CHECKOUT.is_dir() and (CHECKOUT.parent / "pyproject.toml").is_file()


def default_folder() -> Path:
    """The first folder that is complete or writable: the checkout's `data/`, the user's cache, a temporary one."""
    temporary = Path(tempfile.gettempdir()) / f"opsmith-{os.getuid() if hasattr(os, 'getuid') else 'data'}"
    candidates = [CHECKOUT] if in_checkout() else []
    return next((folder for folder in [*candidates, *_of_user()] if _usable(folder)), temporary)


def _of_user() -> list[Path]:
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        # The standard for that variable: what is not absolute does not count.
        return [(Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "opsmith"]
    except RuntimeError:  # there is no home
        return []


def _usable(folder: Path) -> bool:
    if all(os.path.isfile(folder / file.name) for file in FILES):  # unlike a Path's, it never raises
        return True
    there = next((above for above in [folder, *folder.parents] if os.path.exists(above)), folder)
    return os.path.isdir(there) and os.access(there, os.W_OK | os.X_OK)


class OccupiedError(DataError):
    """A file with the name of one of MNIST's and other content. It may be the user's, so it is never replaced."""


def holds(file: File, folder: Path) -> bool:
    """Whether anything exists at the path of `file`."""
    return os.path.lexists(folder / file.name)


def read(file: File, folder: Path) -> NDArray[np.uint8]:
    """The verified content of `file`, as writable bytes."""
    path = folder / file.name
    try:
        with open_file(path) as opened:
            size = os.fstat(opened.fileno()).st_size
            # No more than one byte too many: whatever lies there, it cannot fill the memory.
            content = np.fromfile(opened, np.uint8, count=file.size + 1)
    except FileError as error:
        raise DataError(str(error)) from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    file.check(content.data, size)
    return content


def read_if_there(file: File, folder: Path) -> NDArray[np.uint8] | None:
    """The verified content of `file`; None if it does not exist; an OccupiedError if it is something else."""
    if not holds(file, folder):
        return None
    try:
        return read(file, folder)
    except DataError as error:
        path = folder / file.name
        raise OccupiedError(
            f"{path} is not MNIST's file of that name: {error}. It is your own, or was changed or damaged since it was "
            "fetched, so it was left as it is. MNIST is kept in that folder: name another one (data.folder=FOLDER, or "
            "`data fetch --folder FOLDER`), or remove the file to have MNIST's fetched. To train on your own data set "
            f"in that folder, write data.source={folder}"
        ) from error


def keep(content: bytes, file: File, folder: Path) -> None:
    """Store a verified file, unless something exists at its path."""
    try:
        if read_if_there(file, folder) is None:
            write_whole(folder / file.name, content)
    except (FileError, ValueError, OccupiedError) as error:
        raise DataError(f"{file.name} cannot be kept: {error}") from error
