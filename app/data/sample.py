"""The committed sample: a sixth of MNIST, for quick runs and for use without a network."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.data import cache
from app.data.dataset import Dataset
from app.data.files import File
from app.errors import DataError
from app.files import write_whole

SAMPLE = File(
    "mnist-sample.npz",
    1_976_460,
    "09a5e6d0e4902d6751c8b895a698c3c62bd2cbec150c2152ad8b5a0694830a05",
)
_ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")


def home() -> Path:
    """The folder of the sample: `data/` in a checkout, this file's folder in an installed package."""
    return cache.CHECKOUT if cache.in_checkout() else Path(__file__).resolve().parent


def load_sample() -> Dataset:
    """10,000 training and 2,000 test images. Verified before it is opened, like every other file."""
    try:
        content = cache.read(SAMPLE, home())
    except DataError as error:
        way = f"`git checkout data/{SAMPLE.name}`" if cache.in_checkout() else "Installing the package again"
        raise DataError(f"{error}\n{way} brings the committed sample back.") from error
    with np.load(io.BytesIO(content.data), allow_pickle=False) as arrays:
        return Dataset.of(
            [arrays[name] for name in _ARRAYS], origin="the committed sample", verified=True, is_sample=True
        )


def choose(labels: NDArray[np.int64], keep_one_of: int) -> NDArray[np.int64]:
    """The rows of a stratified sample: every n-th of each digit, in order."""
    by_digit = np.argsort(labels, kind="stable")
    return np.sort(by_digit[::keep_one_of])


def write_sample(full: Dataset, path: Path) -> None:
    """Make the sample from the full set. The same zlib gives the same bytes."""
    train, test = choose(full.train_labels, 6), choose(full.test_labels, 5)
    content = io.BytesIO()
    np.savez_compressed(
        content,
        train_images=full.train_images[train].reshape(-1, *full.image_shape),
        train_labels=full.train_labels[train].astype(np.uint8),
        test_images=full.test_images[test].reshape(-1, *full.image_shape),
        test_labels=full.test_labels[test].astype(np.uint8),
    )
    write_whole(path, content.getvalue())
