"""torchvision.transforms"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from app.compat.torch._creation import from_numpy
from app.errors import DataError


class ToTensor:
    """An image of bytes as a Tensor of numbers from 0 to 1, its channels in front."""

    def __call__(self, pic: Any) -> Any:
        pixels = np.asarray(pic)
        if pixels.ndim not in (2, 3):
            raise DataError(f"ToTensor takes an image with 2 or 3 axes, found {pixels.ndim}")
        channels = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
        if channels.dtype != np.uint8:
            return from_numpy(np.ascontiguousarray(channels))
        return from_numpy(np.ascontiguousarray(channels, np.float32) / np.float32(255))

    def __repr__(self) -> str:
        return "ToTensor()"


class Normalize:
    """Each channel less a mean, over a standard deviation."""

    def __init__(self, mean: Any, std: Any, inplace: bool = False):
        self.mean, self.std = mean, std

    def __call__(self, tensor: Any) -> Any:
        mean, std = (np.asarray(value, np.float32).reshape(-1, 1, 1) for value in (self.mean, self.std))
        return (tensor - mean) / std

    def __repr__(self) -> str:
        return f"Normalize(mean={self.mean}, std={self.std})"


class Lambda:
    """A function of one's own."""

    def __init__(self, lambd: Callable[[Any], Any]):
        if not callable(lambd):
            raise TypeError(f"Lambda takes a function, found {type(lambd).__name__}")
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        return self.lambd(img)

    def __repr__(self) -> str:
        return "Lambda()"
