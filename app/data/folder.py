"""A data set from a folder of the user's own: four IDX files with MNIST's names, packed or not.

This is how Fashion-MNIST is used. Nobody knows its bytes here, so they are checked for sense, not verified.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.data import idx
from app.data.dataset import Dataset
from app.data.files import FILES
from app.data.unpack import unpack
from app.errors import DataError

# What a packed file may unpack to, at the least and as a multiple of its size: images shrink to a fifth.
_UNPACKED_AT_LEAST = 1 << 26
_UNPACKED_TIMES = 64


def read_folder(folder: Path) -> Dataset:
    """The data set that `folder` holds."""
    if not folder.is_dir():
        raise DataError(
            f"there is no data folder {str(folder)!r}: the source of data is `auto`, `sample`"
            f" or a folder that holds {', '.join(file.name for file in FILES)}"
        )
    arrays = [_read(_find(folder, file.name), file.dimensions) for file in FILES]
    return Dataset.of(arrays, origin=f"the folder {folder}", verified=False)


def _find(folder: Path, name: str) -> Path:
    # Some archives unpack to a dot before "idx".
    names = [spelling + end for spelling in (name, name.replace("-idx", ".idx")) for end in ("", ".gz")]
    for candidate in names:
        if (folder / candidate).is_file():
            return folder / candidate
    there = sorted(path.name for path in folder.iterdir())
    listed = ", ".join(there[:10]) + (f" and {len(there) - 10} more" if len(there) > 10 else "")
    raise DataError(f"{folder} lacks {name}: looked for {', '.join(names)}; found {listed or 'nothing at all'}")


def _read(path: Path, dimensions: int) -> NDArray[np.uint8]:
    try:
        content = np.fromfile(path, np.uint8)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    if path.suffix == ".gz":
        content = _unpacked(content.tobytes(), path)
    return idx.parse(content, dimensions, str(path))


def _unpacked(packed: bytes, path: Path) -> NDArray[np.uint8]:
    limit = max(_UNPACKED_AT_LEAST, _UNPACKED_TIMES * len(packed))
    try:
        content = unpack(packed, limit)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    if len(content) > limit:
        raise DataError(f"{path} unpacks from {len(packed):,} bytes to more than {limit:,}: no images do that")
    return np.frombuffer(bytearray(content), np.uint8)
