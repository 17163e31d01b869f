"""Get every file, verified, from the cache or from the first source that has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.data import cache
from app.data.files import File
from app.data.sources import Source, UnreachableError
from app.errors import DataError


def fetch(
    files: Sequence[File], folder: Path, sources: Sequence[Source], say: Callable[[str], None]
) -> list[NDArray[np.uint8]]:
    """The verified contents of `files`; those that `folder` lacked are in it afterwards, if it can be written.

    What is in the place of one and is not that file may be the user's: a cache.OccupiedError, before any source is
    asked.
    """
    contents = {file: content for file in files if (content := cache.read_if_there(file, folder)) is not None}
    for source in sources:
        missing = [file for file in files if file not in contents]
        if missing:
            say(f"Asking {source} for {len(missing)} {'file' if len(missing) == 1 else 'files'}")
        for file in missing:
            try:
                fetched = source.fetch(file)
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
    missing = [file for file in files if file not in contents]
    if missing:
        asked = ", ".join(str(source) for source in sources) or "none, since none is listed"
        raise DataError(
            f"No source could give {_names(missing)} (asked: {asked})."
            f" The unpacked files can also be put into {folder} by hand."
        )
    return [contents[file] for file in files]


def _keep(content: bytes, file: File, folder: Path, say: Callable[[str], None]) -> None:
    try:
        cache.keep(content, file, folder)
    except DataError as error:
        say(f"  {error}; so it is there for this run alone")


def _names(files: Sequence[File]) -> str:
    return ", ".join(file.name for file in files)
