"""The four files of MNIST: what they contain, where they are kept, and how those that are missing are fetched.

A file is known by the SHA-256 of its *unpacked* content, so it may come from anywhere, packed in any way. It is
verified every time it is read, which takes 25 ms for all of MNIST, about as long as reading it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.data.download import UnreachableError
from app.data.sources import Source
from app.errors import DataError, FileError
from app.files import checkout, open_file, user_cache, write_whole


@dataclass(frozen=True)
class File:
    """A file whose content is known in advance."""

    name: str
    size: int
    sha256: str

    @property
    def dimensions(self) -> int:
        """The number of dimensions of the array, as given by MNIST's file names."""
        return 3 if "idx3" in self.name else 1

    def check(self, content: bytes | memoryview, size: int | None = None) -> None:
        """Raise a DataError that says what `content` is instead, unless it is exactly this file.

        `size` is that of the file which `content` was read from, of which the end may have been left unread.
        """
        if len(content) != self.size:
            beginning, length = bytes(content[:16]), max(len(content), size or 0)
            raise DataError(
                f"{self.name} should be {self.size:,} bytes; found {length:,} that begin with {beginning!r}"
            )
        digest = hashlib.sha256(content).hexdigest()
        if digest != self.sha256:
            raise DataError(f"{self.name} should have the SHA-256 {self.sha256}; found {digest}")


FILES = (
    File(
        "train-images-idx3-ubyte",
        47_040_016,
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    ),
    File(
        "train-labels-idx1-ubyte",
        60_008,
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    ),
    File(
        "t10k-images-idx3-ubyte",
        7_840_016,
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    ),
    File(
        "t10k-labels-idx1-ubyte",
        10_008,
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
)


class OccupiedError(DataError):
    """A file with the name of one of MNIST's and other content. It may be the user's, so it is never replaced."""


def default_folder() -> Path:
    """The first folder that is complete or writable: the checkout's `data/`, the user's cache, a temporary one."""
    user = os.getuid() if hasattr(os, "getuid") else "data"
    root = checkout()
    candidates = filter(None, (None if root is None else root / "data", user_cache()))
    return next(filter(_usable, candidates), Path(tempfile.gettempdir(), f"opsmith-{user}"))


def _usable(folder: Path) -> bool:
    if all(os.path.isfile(folder / file.name) for file in FILES):  # unlike a Path's, it never raises
        return True
    ancestor = next((above for above in [folder, *folder.parents] if os.path.exists(above)), folder)
    return os.path.isdir(ancestor) and os.access(ancestor, os.W_OK | os.X_OK)


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


def _read_if_present(file: File, folder: Path) -> NDArray[np.uint8] | None:
    """The verified content of `file`; None if it does not exist; an OccupiedError if it is something else."""
    path = folder / file.name
    if not os.path.lexists(path):
        return None
    try:
        return read(file, folder)
    except DataError as error:
        raise OccupiedError(
            f"{path} is not MNIST's file of that name: {error}. It is your own, or was changed or damaged since it was "
            "fetched, so it was left as it is. MNIST is kept in that folder: name another one (data.folder=FOLDER, or "
            "`data fetch --folder FOLDER`), or remove the file to have MNIST's fetched. To train on your own data set "
            f"in that folder, write data.source={folder}"
        ) from error


def fetch(
    files: Sequence[File], folder: Path, sources: Sequence[Source], say: Callable[[str], None]
) -> list[NDArray[np.uint8]]:
    """The verified contents of `files`, from `folder` or from the first source that has them.

    Those that the folder lacked are in it afterwards, if it can be written. If something else has the name of one, it
    may be the user's: an OccupiedError is raised before any source is asked.
    """
    contents = {file: content for file in files if (content := _read_if_present(file, folder)) is not None}
    for source in sources:
        missing = [file for file in files if file not in contents]
        if missing:
            say(f"Asking {source} for {len(missing)} {'file' if len(missing) == 1 else 'files'}")
        for file in missing:
            try:
                fetched = source.fetch(file.name, file.size)
                file.check(fetched)
            except UnreachableError as error:
                say(f"  {error}")
                break
            except DataError as error:
                say(f"  {file.name}: {error}")
            else:
                contents[file] = np.frombuffer(bytearray(fetched), np.uint8)
                say(f"  {file.name}: {file.size:,} bytes, verified")
                _keep(fetched, file, folder, say)
    lacking = [file.name for file in files if file not in contents]
    if lacking:
        source_names = ", ".join(map(str, sources)) or "none, since none is listed"
        raise DataError(
            f"No source could give {', '.join(lacking)} (asked: {source_names})."
            f" The unpacked files can also be put into {folder} by hand."
        )
    return [contents[file] for file in files]


def _keep(content: bytes, file: File, folder: Path, say: Callable[[str], None]) -> None:
    """Store a verified file, unless something exists at its path."""
    try:
        if _read_if_present(file, folder) is None:
            write_whole(folder / file.name, content)
    except (FileError, ValueError, OccupiedError) as error:
        say(f"  {file.name} cannot be kept: {error}; so it is there for this run alone")
