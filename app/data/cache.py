"""The folder that keeps verified files between runs: what is read from it is verified every time.

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
from app.files import write_whole

# The top-level data/ of the checkout that this package lies in: the home of the sample.
CHECKOUT = Path(__file__).resolve().parents[2] / "data"


def in_checkout() -> bool:
    """Whether this package lies in a checkout. Installed, `CHECKOUT` may be a stranger's folder in site-packages."""
    return CHECKOUT.is_dir() and (CHECKOUT.parent / "pyproject.toml").is_file()


def default_folder() -> Path:
    """The first that is complete or can be written: the checkout's `data/`, the user's own cache, a temporary one."""
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


def holds(file: File, folder: Path) -> bool:
    """Whether there is anything in the place of `file`, be it whole or not."""
    return os.path.lexists(folder / file.name)


def read(file: File, folder: Path) -> NDArray[np.uint8]:
    """The verified content of `file`, as bytes that may be written to."""
    path = folder / file.name
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise DataError(f"{path} is not a file")
        # No more than one byte too many: whatever lies there, it cannot fill the memory.
        content = np.fromfile(path, np.uint8, count=file.size + 1)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    file.check(content.data)
    return content


def keep(content: bytes, file: File, folder: Path, origin: str) -> None:
    """Put a verified file in its place, and beside it a note of where it came from."""
    try:
        write_whole(folder / file.name, content)
        write_whole(_note(file, folder), f"{origin}\n".encode(errors="backslashreplace"))
    except (FileError, ValueError) as error:
        raise DataError(f"{file.name} cannot be kept: {error}") from error


def origin(file: File, folder: Path) -> str:
    """Where a file in the cache came from, as `keep` noted it."""
    try:
        return _note(file, folder).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "an origin that was not noted"


def _note(file: File, folder: Path) -> Path:
    return folder / f"{file.name}.from"
