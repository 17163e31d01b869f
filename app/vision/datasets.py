"""MNIST as a data set of single examples."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from app.data import Dataset as Pictures
from app.data import load
from app.data.idx import read
from app.errors import DataError
from app.io import Dataset

__all__ = ["MNIST"]


def __dir__() -> list[str]:
    return __all__


@lru_cache(maxsize=1)
def _published() -> Pictures:
    return load()


class MNIST(Dataset):
    """Handwritten digits: example i is a picture of (28, 28) pixels from 0 to 255 and its label, an array of one.

    The picture is an array: of bytes, or with the backend 'cv2' of floats; `transform` works on it. Without paths of
    IDX files, which may be packed by gzip, the published ones are used, and fetched if they are not there.
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
            self.images, self.labels = _part(_published(), self.mode)
        else:
            self.images, self.labels = read(Path(image_path), 3), read(Path(label_path), 1).astype(np.int64)
        if len(self.images) != len(self.labels):
            raise DataError(f"MNIST: {len(self.images):,} pictures in {image_path}, {len(self.labels):,} labels")

    def __getitem__(self, index: int) -> tuple[Any, np.ndarray]:
        picture: Any = self.images[index].astype("float32" if self.backend == "cv2" else "uint8")
        if self.transform is not None:
            picture = self.transform(picture)
        return picture, self.labels[index : index + 1] if index >= 0 else self.labels[[index]]

    def __len__(self) -> int:
        return len(self.labels)


def _part(pictures: Pictures, mode: str) -> tuple[np.ndarray, np.ndarray]:
    images, labels = (
        (pictures.train_images, pictures.train_labels)
        if mode == "train"
        else (pictures.test_images, pictures.test_labels)
    )
    return images.reshape(-1, *pictures.image_shape), labels
