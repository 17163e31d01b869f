"""Files, written so that they are whole or not there, and read so that no file can hang or exhaust the process."""

from __future__ import annotations

import os
import stat
import uuid
from pathlib import Path
from typing import BinaryIO, TextIO

from app.errors import FileError

PACKAGE_FOLDER = Path(__file__).resolve().parent
"""The folder of this package."""
PART = ".part"
"""The end of the name of a file that is being written."""


def write_whole(path: Path, content: bytes) -> None:
    """Write a file and the folders that it lies in; an existing file is replaced once the new one is on the disk."""
    if not path.name:
        raise FileError(f"{path} is a folder, expected the name of a file")
    kind = _kind_of(path)
    if kind and kind != "a folder":  # replacing /dev/null would break the system
        raise FileError(f"{path} is {kind}, which is not replaced; name a file")
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}{PART}")  # a name of its own for each writer
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}") from error


def _kind_of(path: Path) -> str:
    """What is at a path if it is not a regular file, in words; '' if there is nothing."""
    try:
        return _kind(path.stat().st_mode)
    except OSError:
        return ""


def without_tilde(path: str | os.PathLike[str]) -> Path:
    """Expand `~` in a path, if the home folder is known. (A Path's own method raises a RuntimeError if it is not.)"""
    return Path(os.path.expanduser(path))


def checkout() -> Path | None:
    """The folder of the checkout that this package is in; None where it is installed."""
    root = PACKAGE_FOLDER.parent
    return root if (root / "configs" / "default.yaml").is_file() else None


def user_cache() -> Path | None:
    """The folder of opsmith in the user's cache, which need not exist; None if there is no home folder.

    Relative paths do not count, as XDG's specification has it: they would lead into the working folder, which may be a
    stranger's.
    """
    bases = (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~/.cache"))
    return next((Path(base, "opsmith") for base in bases if os.path.isabs(base)), None)


# Reading


LARGEST = {
    "configuration": 100_000,
    "metrics": 1 << 28,
    "line of metrics": 1 << 20,
    "operators": 5_000_000,
    "source": 10_000_000,
    "model": 1 << 26,
    "arrays": 1 << 28,
    "checkpoint": 1 << 30,
    "onnx": 1 << 29,
    "picture": 100_000_000,
    "package": 1 << 28,
}
"""The maximum bytes of each kind of file, far more than opsmith writes: a file from a stranger may be a sparse one of
terabytes, of which an archive is small."""


def open_file(path: str | os.PathLike[str], links: bool = True) -> BinaryIO:
    """Open a regular file for reading. A pipe or a device, which may never end, is a FileError.

    So is a symbolic link without `links`: in the folder of a run, which may be a stranger's, it could lead anywhere.
    """
    # Opening a pipe would wait for a writer; the check follows on the open file, so that nothing can be exchanged.
    handle = _open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0), links)
    try:
        kind = _kind(os.fstat(handle).st_mode)
        if kind:
            raise FileError(f"{os.fspath(path)} is {kind}, expected a file")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def open_to_append(path: str | os.PathLike[str]) -> TextIO:
    """Open an existing regular file to add text at its end. A symbolic link is a FileError."""
    handle = _open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_NONBLOCK", 0), links=False)
    try:
        kind = _kind(os.fstat(handle).st_mode)
        if kind:
            raise FileError(f"{os.fspath(path)} is {kind}, expected a file")
        return os.fdopen(handle, "a", encoding="utf-8")
    except BaseException:
        os.close(handle)
        raise


def _open(path: str | os.PathLike[str], flags: int, links: bool) -> int:
    try:
        return os.open(path, flags | getattr(os, "O_BINARY", 0) | (0 if links else getattr(os, "O_NOFOLLOW", 0)))
    except OSError:
        if not links and os.path.islink(path):
            raise FileError(f"{os.fspath(path)} is a symbolic link, expected a file; replace it by a copy") from None
        raise


def read_file(path: str | os.PathLike[str], most: int | None = None, links: bool = True) -> bytes:
    """The content of a regular file of at most `most` bytes, one of `LARGEST` (by default, what this machine's memory
    holds). Without `links`, the path is no symbolic link.

    What the operating system refuses stays an OSError.
    """
    limit = _memory() if most is None else most
    with open_file(path, links) as file:
        content = bytearray()
        # Its size tells how much to read at once, but is not relied on: files in /proc have the size 0.
        piece = min(os.fstat(file.fileno()).st_size, limit) + 1
        if os.fstat(file.fileno()).st_size <= limit:
            while len(content) <= limit and (read := file.read(min(piece, limit + 1 - len(content)))):
                content += read
                piece = 1 << 16
            if len(content) <= limit:
                return bytes(content)
    raise FileError(f"{os.fspath(path)} is larger than {limit:,} bytes, more than is read of such a file")


def refuse_foreign(path: Path, mark: str, within: int, instead: str) -> None:
    """Refuse to replace a file that this program did not write, that is, without a mark in its first bytes."""
    try:
        with open_file(path) as file:
            ours = mark.encode() in file.read(within)
    except FileNotFoundError:
        return
    except (OSError, FileError):
        ours = False
    if not ours:
        raise FileError(f"{path} exists and was not written by this program; {instead}")


def _kind(mode: int) -> str:
    """What a file is if it is not a regular one, in words."""
    kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
    if stat.S_ISREG(mode):
        return ""
    return next((name for test, name in kinds if test(mode)), "a device")


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 40
