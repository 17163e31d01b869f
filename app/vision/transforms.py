"""Transforms of pictures: arrays of (rows, columns) or (rows, columns, channels), or Pillow's images."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.errors import DataError
from app.ops.random import generator
from app.tensor import Tensor
from app.tensor import to_tensor as tensor_of

__all__ = [
    "BaseTransform",
    "CenterCrop",
    "Compose",
    "Normalize",
    "Pad",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomRotation",
    "RandomVerticalFlip",
    "Resize",
    "ToTensor",
    "Transpose",
    "normalize",
    "to_tensor",
]


def __dir__() -> list[str]:
    return __all__


class Compose:
    """Applies several transforms in order."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]):
        self.transforms = list(transforms)

    def __call__(self, data: Any) -> Any:
        for transform in self.transforms:
            data = transform(data)
        return data

    def __repr__(self) -> str:
        return "\n".join(["Compose(", *(f"    {transform!r}" for transform in self.transforms), ")"])


class BaseTransform:
    """The base class: subclasses define `_apply_image`.

    For a tuple, the elements that `keys` calls "image" are transformed; without keys, the first.
    """

    def __init__(self, keys: Sequence[str] | None = None):
        self.keys = ("image",) if keys is None else tuple(keys)

    def __call__(self, inputs: Any) -> Any:
        if not isinstance(inputs, tuple):
            return self._apply_image(inputs)
        done = [self._apply_image(x) if k == "image" else x for k, x in zip(self.keys, inputs, strict=False)]
        return (*done, *inputs[len(done) :])

    def _apply_image(self, image: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} needs a method _apply_image")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _with_channels(image: Any) -> np.ndarray:
    array = np.asarray(image)
    if array.ndim not in (2, 3):
        raise DataError(f"a picture has rows, columns and perhaps channels, found shape {list(array.shape)}")
    return array[:, :, None] if array.ndim == 2 else array


def to_tensor(pic: Any, data_format: str = "CHW") -> Tensor:
    """Convert a picture to floats of shape [channels, height, width]; bytes are scaled to [0, 1]."""
    array = _with_channels(pic)
    floats = array.astype("float32") / np.float32(255) if array.dtype == np.uint8 else array.astype("float32")
    return tensor_of(floats if data_format == "HWC" else np.ascontiguousarray(floats.transpose(2, 0, 1)))


def normalize(img: Any, mean: Any, std: Any, data_format: str = "CHW", to_rgb: bool = False) -> Any:
    """Subtract the mean of each channel, and divide by its standard deviation."""
    shape = (-1, 1, 1) if data_format == "CHW" else (1, 1, -1)
    means, deviations = (np.asarray(v, "float32").reshape(shape) for v in (mean, std))
    done = (np.asarray(img).astype("float32") - means) / deviations
    return tensor_of(done) if isinstance(img, Tensor) else done


class ToTensor(BaseTransform):
    """Convert a picture to floats of shape [channels, height, width]; bytes are scaled to [0, 1]."""

    def __init__(self, data_format: str = "CHW", keys: Sequence[str] | None = None):
        super().__init__(keys)
        self.data_format = data_format

    def _apply_image(self, image: Any) -> Tensor:
        return to_tensor(image, self.data_format)


class Normalize(BaseTransform):
    """Subtract the mean of each channel, and divide by its standard deviation."""

    def __init__(
        self,
        mean: Any = 0.0,
        std: Any = 1.0,
        data_format: str = "CHW",
        to_rgb: bool = False,
        keys: Sequence[str] | None = None,
    ):
        super().__init__(keys)
        self.mean = [mean] * 3 if isinstance(mean, numbers.Number) else list(mean)
        self.std = [std] * 3 if isinstance(std, numbers.Number) else list(std)
        self.data_format, self._same = data_format, isinstance(mean, numbers.Number) and isinstance(std, numbers.Number)

    def _apply_image(self, image: Any) -> Any:
        mean, std = (self.mean[:1], self.std[:1]) if self._same else (self.mean, self.std)
        return normalize(image, mean, std, self.data_format)


class Transpose(BaseTransform):
    """Reorders the axes of a picture; by default, the channels come first."""

    def __init__(self, order: Sequence[int] = (2, 0, 1), keys: Sequence[str] | None = None):
        super().__init__(keys)
        self.order = tuple(order)

    def _apply_image(self, image: Any) -> Any:
        return _with_channels(image).transpose(self.order)


def _pair(size: Any) -> tuple[int, int]:
    return (int(size), int(size)) if isinstance(size, (int, float)) else (int(size[0]), int(size[1]))


class Resize(BaseTransform):
    """Resizes a picture, by bilinear interpolation or to the nearest pixel.

    With `antialias`, a smaller picture is the mean of what its pixels cover, as Pillow computes it.
    """

    def __init__(
        self,
        size: Any,
        interpolation: str = "bilinear",
        keys: Sequence[str] | None = None,
        antialias: bool = False,
    ):
        super().__init__(keys)
        if interpolation not in ("bilinear", "nearest"):
            raise DataError(f"Resize: interpolation is 'bilinear' or 'nearest', not {interpolation!r}")
        self.size, self.interpolation, self.antialias = size, interpolation, antialias

    def _apply_image(self, image: Any) -> Any:
        array = np.asarray(image)
        if self.antialias and self.interpolation == "bilinear":
            rows, columns = self._wanted(array.shape)
            return _by_pillow(array, lambda channel: channel.resize((columns, rows), 2))  # 2 is bilinear
        resized = _resized(_with_channels(array), self._wanted(array.shape), self.interpolation)
        return resized[:, :, 0] if array.ndim == 2 else resized

    def _wanted(self, shape: Sequence[int]) -> tuple[int, int]:
        """Return the requested size; a single number is the size of the shorter side."""
        if not isinstance(self.size, numbers.Number):
            return _pair(self.size)
        rows, columns = shape[0], shape[1]
        size, shorter = float(self.size), min(rows, columns)  # type: ignore[arg-type]
        return int(size * rows / shorter), int(size * columns / shorter)


def _resized(array: np.ndarray, size: tuple[int, int], interpolation: str) -> np.ndarray:
    lines = [(np.arange(new) + 0.5) * old / new for new, old in zip(size, array.shape, strict=False)]
    if interpolation == "nearest":
        rows, columns = (line.astype(int) for line in lines)
        return array[rows][:, columns]
    done = array.astype(np.float64)
    for axis, line in enumerate(lines):
        place = np.clip(line - 0.5, 0, array.shape[axis] - 1)
        low = place.astype(int)
        high = np.minimum(low + 1, array.shape[axis] - 1)
        share = (place - low).reshape([-1 if a == axis else 1 for a in range(3)])
        done = np.take(done, low, axis) * (1 - share) + np.take(done, high, axis) * share
    return np.rint(done).astype(array.dtype) if array.dtype.kind in "iu" else done.astype(array.dtype)


def _by_pillow(array: np.ndarray, function: Callable[[Any], Any]) -> np.ndarray:
    """Apply a function of Pillow images to each channel of a picture."""
    from PIL import Image  # imported late: few programs need it

    kind = np.uint8 if array.dtype == np.uint8 else np.float32
    channels = _with_channels(array).astype(kind, copy=False)
    done = [np.asarray(function(Image.fromarray(channels[:, :, i]))) for i in range(channels.shape[2])]
    result = np.stack(done, -1) if array.ndim == 3 else done[0]
    return (np.rint(result) if array.dtype.kind in "iu" else result).astype(array.dtype, copy=False)


class Pad(BaseTransform):
    """Adds a border: one width, (left and right, top and bottom), or (left, top, right, bottom)."""

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant", keys: Sequence[str] | None = None):
        super().__init__(keys)
        modes = {"constant": "constant", "edge": "edge", "reflect": "reflect", "symmetric": "symmetric"}
        if padding_mode not in modes:
            raise DataError(f"Pad: padding_mode is one of {', '.join(modes)}, not {padding_mode!r}")
        widths = [int(n) for n in np.ravel(padding)]
        self.widths = widths * 4 if len(widths) == 1 else widths * 2 if len(widths) == 2 else widths
        if np.ndim(fill):
            raise DataError(f"Pad: fill is one number for all channels, found {fill!r}")
        self.fill, self.mode = fill, padding_mode

    def _apply_image(self, image: Any) -> Any:
        array = np.asarray(image)
        left, top, right, bottom = self.widths
        around = [(top, bottom), (left, right), *[(0, 0)] * (array.ndim - 2)]
        if self.mode == "constant":
            if not _holds(array.dtype, self.fill):
                raise DataError(f"Pad: a picture of {array.dtype} cannot hold fill={self.fill!r}")
            return np.pad(array, around, constant_values=self.fill)
        return np.pad(array, around, mode=self.mode)  # type: ignore[call-overload]


def _holds(dtype: np.dtype[Any], number: float) -> bool:
    """Whether pixels of a type can have a value, of which integers would cut off a part."""
    if dtype.kind not in "iub":
        return True
    least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return bool(least <= number <= most and number == int(number))


class CenterCrop(BaseTransform):
    """Crops the centre of a picture."""

    def __init__(self, size: Any, keys: Sequence[str] | None = None):
        super().__init__(keys)
        self.size = _pair(size)

    def _apply_image(self, image: Any) -> Any:
        array = np.asarray(image)
        return _cropped(array, self.size, *[round(spare / 2) for spare in _spare(array, self.size)])


class RandomCrop(BaseTransform):
    """Crops a random part of a picture."""

    def __init__(self, size: Any, padding: Any = None, fill: Any = 0, keys: Sequence[str] | None = None):
        super().__init__(keys)
        self.size, self.pad = _pair(size), None if padding is None else Pad(padding, fill)

    def _apply_image(self, image: Any) -> Any:
        array = np.asarray(image if self.pad is None else self.pad(image))
        shares = generator().random(2)
        places = [min(int(share * (n + 1)), n) for share, n in zip(shares, _spare(array, self.size), strict=True)]
        return _cropped(array, self.size, *places)


def _spare(array: np.ndarray, size: tuple[int, int]) -> list[int]:
    """The numbers of rows and columns outside of a part."""
    spare = [have - want for have, want in zip(array.shape, size, strict=False)]
    if min(spare) < 0:
        raise DataError(f"a part of {size[0]} x {size[1]} pixels does not fit into {array.shape[0]} x {array.shape[1]}")
    return spare


def _cropped(array: np.ndarray, size: tuple[int, int], top: int, left: int) -> np.ndarray:
    return array[top : top + size[0], left : left + size[1]]


class _RandomFlip(BaseTransform):
    axis = 0

    def __init__(self, prob: float = 0.5, keys: Sequence[str] | None = None):
        super().__init__(keys)
        self.prob = prob

    def _apply_image(self, image: Any) -> Any:
        return np.flip(np.asarray(image), self.axis) if generator().random() < self.prob else image


class RandomHorizontalFlip(_RandomFlip):
    """Flips a picture horizontally with the given probability."""

    axis = 1


class RandomVerticalFlip(_RandomFlip):
    """Flips a picture vertically with the given probability."""


def rotate(img: Any, angle: float, interpolation: str = "nearest", expand: bool = False, fill: float = 0) -> Any:
    """Rotate a picture anticlockwise by an angle in degrees; with `expand`, enlarge it to hold the result."""
    if interpolation not in ("bilinear", "nearest"):
        raise DataError(f"rotate: interpolation is 'bilinear' or 'nearest', not {interpolation!r}")
    way = {"nearest": 0, "bilinear": 2}[interpolation]  # Pillow's numbers
    return _by_pillow(np.asarray(img), lambda channel: channel.rotate(angle, way, expand, fillcolor=fill))


def grey(img: np.ndarray) -> np.ndarray:
    """Convert a colour picture to grey, with one channel."""
    whole = img.dtype.kind in "iu"
    light = img[..., :3] @ np.array([0.299 if whole else 0.2989, 0.587, 0.114])  # as Pillow and as torchvision
    return (np.rint(light) if whole else light).astype(img.dtype)[..., None]


class RandomRotation(BaseTransform):
    """Rotates a picture by a random angle: up to `degrees` either way, or between two angles."""

    def __init__(
        self,
        degrees: Any,
        interpolation: str = "nearest",
        expand: bool = False,
        center: Any = None,
        fill: float = 0,
        keys: Sequence[str] | None = None,
    ):
        super().__init__(keys)
        if center is not None:
            raise DataError("RandomRotation: pictures are rotated about their middle; leave center out")
        self.degrees = (-degrees, degrees) if isinstance(degrees, (int, float)) else tuple(degrees)
        self.interpolation, self.expand, self.fill = interpolation, expand, fill

    def _apply_image(self, image: Any) -> Any:
        return rotate(image, generator().uniform(*self.degrees), self.interpolation, self.expand, self.fill)
