"""torchvision.utils and torchvision.io: grids of images, and files of them"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from app.compat.torch._creation import from_numpy
from app.errors import DataError
from app.vision import images
from app.vision.reading import read_pixels


def make_grid(
    tensor: Any,
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[float, float] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Any:
    """Images side by side in one Tensor, `nrow` in each row; with `normalize`, scaled to between 0 and 1."""
    arrays = [t._array for t in tensor] if isinstance(tensor, (list, tuple)) else tensor._array
    pictures = np.asarray(arrays)
    if pictures.ndim not in (2, 3, 4):
        raise DataError(f"make_grid takes images of 2 to 4 axes, found shape {list(pictures.shape)}")
    if pictures.ndim == 2:
        pictures = pictures[None]
    if pictures.ndim == 3:
        pictures = pictures[None]
    if normalize:
        axes = (1, 2, 3) if scale_each else None
        low, high = value_range or (pictures.min(axes, keepdims=True), pictures.max(axes, keepdims=True))
        pictures = (np.clip(pictures, low, high) - low) / np.maximum(high - low, 1e-5, dtype=pictures.dtype)
    return from_numpy(images.grid(pictures, nrow, padding, pad_value))


def save_image(tensor: Any, fp: Any, format: str | None = None, **settings: Any) -> None:
    """Write a grid of images, of numbers from 0 to 1, to a file."""
    sheet = make_grid(tensor, **settings)._array
    pixels = np.clip(sheet * 255 + 0.5, 0, 255).astype(np.uint8)
    images.to_image(pixels.transpose(1, 2, 0)).save(fp, format=format)


def read_image(path: Any, mode: str = "UNCHANGED") -> Any:
    """The bytes of an image file as a Tensor, its channels in front."""
    if mode != "UNCHANGED":
        raise DataError(
            f"read_image: mode is 'UNCHANGED' in this façade, found {mode!r}; transforms.Grayscale converts"
        )
    return from_numpy(np.ascontiguousarray(read_pixels(Path(path)).transpose(2, 0, 1)))


def decode_image(input: Any, mode: str = "UNCHANGED") -> Any:
    """The bytes of an image file, given by its path, as a Tensor, its channels in front."""
    if not isinstance(input, (str, PathLike)):
        raise DataError(f"decode_image takes the path of a file in this façade, found {type(input).__name__}")
    return read_image(input, mode)
