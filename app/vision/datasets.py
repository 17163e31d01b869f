"""MNIST and data sets in its format, as data sets of single examples."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from app.data import Dataset as Pictures
from app.data import load
from app.data.idx import find, read
from app.errors import DataError
from app.files import without_tilde
from app.io import Dataset

__all__ = ["MNIST", "FashionMNIST"]


def __dir__() -> list[str]:
    return __all__


@lru_cache(maxsize=1)
def _published(source: str | None) -> Pictures:
    return load(source)


class MNIST(Dataset):
    """Handwritten digits: example i is a picture of (28, 28) pixels from 0 to 255 and its label, an array of one.

    The picture is an array: of bytes, or with the backend 'cv2' of floats; `transform` works on it. Without paths of
    IDX files, which may be gzipped, the published files are used, and downloaded if missing.
    """

    def __init__(
        self,
        image_path: str | None = None,
        label_path: str | None = None,
        mode: str = "train",
        transform: Callable[[Any], Any] | None = None,
        download: bool = True,
        backend: str | None = None,
    ):
        if mode.lower() not in ("train", "test"):
            raise DataError(f"MNIST: mode is 'train' or 'test', not {mode!r}")
        if backend not in (None, "pil", "cv2"):
            raise DataError(f"MNIST: backend is 'pil' or 'cv2', not {backend!r}")
        if (image_path is None) != (label_path is None):
            raise DataError("MNIST: image_path and label_path belong together; give both, or none")
        self.mode, self.transform, self.backend = mode.lower(), transform, backend or "pil"
        if image_path is None or label_path is None:
            self.images, self.labels = self._own()
        else:
            self.images, self.labels = _read(image_path, label_path)

    def _own(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the images and labels if no paths are given."""
        return _part(_published(os.environ.get("OPSMITH_DATA")), self.mode)

    def __getitem__(self, index: int) -> tuple[Any, np.ndarray]:
        picture: Any = self.images[index].astype("float32" if self.backend == "cv2" else "uint8")
        if self.transform is not None:
            picture = self.transform(picture)
        return picture, self.labels[[index]]

    def __len__(self) -> int:
        return len(self.labels)


class FashionMNIST(MNIST):
    """Fashion-MNIST, in MNIST's format. The files are not downloaded: they are read from `data/FashionMNIST/raw`."""

    def _own(self) -> tuple[np.ndarray, np.ndarray]:
        return _read(*paths_of("FashionMNIST", self.mode))


SOURCES = {
    "EMNIST": "https://www.nist.gov/itl/products-and-services/emnist-dataset",
    "FashionMNIST": "https://github.com/zalandoresearch/fashion-mnist",
    "KMNIST": "http://codh.rois.ac.jp/kmnist",
}
"""The URLs of the data sets in MNIST's format."""


def paths_of(name: str, mode: str, root: Any = "data", begin: str = "") -> tuple[str, str]:
    """Find the image and label files of a data set, possibly gzipped, in the usual folders.

    These are `NAME/raw` and `NAME` inside `root`, and inside the folder that OPSMITH_DATA names. `begin` is the prefix
    of its file names before those of MNIST.
    """
    part = "train" if mode == "train" else ("t10k", "test")[bool(begin)]
    names = [f"{begin}{part}-{kind}-ubyte" for kind in ("images-idx3", "labels-idx1")]
    roots = [without_tilde(folder) for folder in (root, os.environ.get("OPSMITH_DATA")) if folder]
    folders = [folder / name / inside for folder in roots for inside in ("raw", "")]
    there = next((folder for folder in folders if folder.is_dir() and any(folder.iterdir())), None)
    if there is None:
        raise DataError(
            f"{name}: its files are missing, and are not downloaded automatically; download them from "
            f"{SOURCES[name]} and put "
            f"{' and '.join(names)} (packed by gzip or not) into {folders[0]}"
        )
    images, labels = (str(find(there, file)) for file in names)
    return images, labels


def _read(image_path: Any, label_path: Any) -> tuple[np.ndarray, np.ndarray]:
    images, labels = read(Path(image_path), 3), read(Path(label_path), 1).astype(np.int64)
    if len(images) != len(labels):
        raise DataError(f"{len(images):,} pictures in {image_path}, {len(labels):,} labels in {label_path}")
    return images, labels


def _part(pictures: Pictures, mode: str) -> tuple[np.ndarray, np.ndarray]:
    images, labels = (
        (pictures.train_images, pictures.train_labels)
        if mode == "train"
        else (pictures.test_images, pictures.test_labels)
    )
    return images.reshape(-1, *pictures.image_shape).copy(), labels.copy()  # the program may change them
