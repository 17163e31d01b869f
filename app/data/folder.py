"""Data sets in the user's folders: four IDX files with MNIST's names, compressed or not.

This is how Fashion-MNIST is used. Nobody knows its bytes here, so they are checked for sense, not verified.
"""

from __future__ import annotations

import os
from pathlib import Path

from app.data import idx
from app.data.dataset import Dataset
from app.data.files import FILES
from app.errors import DataError


def read_folder(folder: Path) -> Dataset:
    """Read the data set in `folder`."""
    if not os.path.isdir(folder):  # unlike a Path's, it never raises
        raise DataError(
            f"there is no data folder {str(folder)!r}: the source of data is `auto`, `sample`"
            f" or a folder that holds {', '.join(file.name for file in FILES)}"
        )
    arrays = [idx.read(find(folder, file.name), file.dimensions) for file in FILES]
    return Dataset.of(arrays, origin=f"the folder {folder}", verified=False)


def find(folder: Path, name: str) -> Path:
    """The file in a folder that has a name of MNIST's, packed or not."""
    # Some archives unpack to a dot before "idx".
    names = [spelling + end for spelling in (name, name.replace("-idx", ".idx")) for end in ("", ".gz")]
    for candidate in names:
        if os.path.isfile(folder / candidate):
            return folder / candidate
    try:
        there = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise DataError(f"{folder} cannot be looked into: {error.strerror or error}") from error
    listed = ", ".join(there[:10]) + (f" and {len(there) - 10} more" if len(there) > 10 else "")
    raise DataError(f"{folder} lacks {name}: looked for {', '.join(names)}; found {listed or 'nothing at all'}")
