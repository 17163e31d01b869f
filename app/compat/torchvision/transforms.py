"""torchvision.transforms, its `v2`, and the functions of `functional`: of Pillow's images, and of Tensors."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

from app.compat.torch._creation import from_numpy
from app.compat.torch._dtype import named
from app.errors import DataError
from app.ops.dtype import is_float
from app.tensor import Tensor
from app.vision import transforms as below
from app.vision.images import to_image as image_of


class InterpolationMode(Enum):
    """The interpolation of pixels when an image is resized or rotated."""

    NEAREST = "nearest"
    BILINEAR = "bilinear"


# Between images and Tensors


class ToTensor:
    """An image of bytes as a Tensor of numbers from 0 to 1, its channels in front."""

    def __call__(self, pic: Any) -> Any:
        array = self._with_channels_in_front(pic)
        if array.dtype == np.uint8:
            return from_numpy(array.astype(np.float32) / np.float32(255))
        return from_numpy(array.astype(np.float32) if array.dtype == bool and hasattr(pic, "getbands") else array)

    def _with_channels_in_front(self, pic: Any) -> np.ndarray:
        if isinstance(pic, Tensor):
            raise TypeError(f"{type(self).__name__} takes an image or an array, found a Tensor, which is ready")
        pixels = np.asarray(pic)
        if pixels.ndim not in (2, 3):
            raise DataError(f"{type(self).__name__} takes an image with 2 or 3 axes, found {pixels.ndim}")
        return np.array(pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1), order="C")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PILToTensor(ToTensor):
    """An image as a Tensor of the same numbers, its channels in front."""

    def __call__(self, pic: Any) -> Any:
        return from_numpy(self._with_channels_in_front(pic))


class ToImage(PILToTensor):
    """An image as a Tensor of the same numbers, its channels in front; a Tensor as it is."""

    def __call__(self, pic: Any) -> Any:
        return pic if isinstance(pic, Tensor) else super().__call__(pic)


class ToPILImage(ToTensor):
    """One of Pillow's images from a Tensor with the channels in front, or from an array with the channels behind.

    Floats of a Tensor are colours from 0 to 1.
    """

    def __init__(self, mode: str | None = None):
        self.mode = mode

    def __call__(self, pic: Any) -> Any:
        if not isinstance(pic, Tensor):
            return image_of(np.asarray(pic), self.mode)
        array = pic._array
        if array.dtype.kind == "f" and self.mode != "F":
            array = (array * 255).astype(np.uint8)
        return image_of(array.transpose(1, 2, 0) if array.ndim == 3 else array, self.mode)


def _bits(dtype: Any) -> int:
    """The bits of the largest integer of a type; 0 for other types."""
    return int(np.iinfo(dtype).max).bit_length() if np.dtype(dtype).kind in "iu" else 0


class ToDtype:
    """A Tensor of another element type; with `scale`, from the range of the one type to that of the other."""

    def __init__(self, dtype: Any, scale: bool = False):
        self.dtype, self.scale = named(dtype), scale

    def __call__(self, img: Any) -> Any:
        if not self.scale or img.dtype == self.dtype or (is_float(img.dtype) and is_float(self.dtype)):
            return img.to(self.dtype)
        before, after = _bits(img.dtype), _bits(self.dtype)
        if not (before or is_float(img.dtype)) or not (after or is_float(self.dtype)):
            raise DataError(f"{type(self).__name__}: booleans have no range, found {img.dtype} to {self.dtype}")
        if not after:
            return img.to(self.dtype) / float(np.iinfo(img.dtype).max)
        if before:
            return (
                img.to(self.dtype) * 2 ** (after - before)
                if before < after
                else (img // 2 ** (before - after)).to(self.dtype)
            )
        if after >= np.finfo(img.dtype).nmant + 8:
            raise DataError(
                f"{type(self).__name__}: {img.dtype} has too few digits for {self.dtype}; take a smaller type"
            )
        return (img * (np.iinfo(self.dtype).max + 1 - 1e-3)).to(self.dtype)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(scale={self.scale})"


class ConvertImageDtype(ToDtype):
    """A Tensor of another element type, scaled from the range of the one type to that of the other."""

    def __init__(self, dtype: Any):
        super().__init__(dtype, scale=True)

    def __repr__(self) -> str:
        return "ConvertImageDtype()"


class Normalize:
    """Subtracts a mean from each channel and divides it by a standard deviation."""

    def __init__(self, mean: Any, std: Any, inplace: bool = False):
        self.mean, self.std, self.inplace = mean, std, inplace

    def __call__(self, tensor: Any) -> Any:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"Normalize takes a Tensor, found {type(tensor).__name__}; put ToTensor() before it")
        if not is_float(tensor.dtype):
            raise TypeError(
                f"Normalize takes a Tensor of floats, found {tensor.dtype}; scale it to the range 0 to 1 first"
            )
        kind = tensor.numpy().dtype
        mean, std = (np.asarray(value, kind).reshape(-1, 1, 1) for value in (self.mean, self.std))
        if not std.all():
            raise DataError(f"Normalize: the standard deviation of a channel is 0, found std={self.std}")
        channels = tensor.shape[-3] if tensor.ndim > 2 else 1
        if max(len(mean), len(std)) not in (1, channels):
            raise DataError(
                f"Normalize: mean={self.mean} and std={self.std} are for {max(len(mean), len(std))} channels, but the "
                f"picture of shape {list(tensor.shape)} has {channels}"
            )
        normal = (tensor - mean) / std
        return tensor.copy_(normal) if self.inplace else normal

    def __repr__(self) -> str:
        return f"Normalize(mean={self.mean}, std={self.std})"


class Lambda:
    """A user's function as a transform."""

    def __init__(self, lambd: Callable[[Any], Any]):
        if not callable(lambd):
            raise TypeError(f"Lambda takes a function, found {type(lambd).__name__}")
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        return self.lambd(img)

    def __repr__(self) -> str:
        return "Lambda()"


# Of images and Tensors, in their own form


class _OfPixels:
    """A transform of the framework, of arrays, for what holds pixels: one of Pillow's images, or a Tensor."""

    def __init__(self, transform: Callable[[Any], Any], **shown: Any):
        self._transform, self._shown = transform, shown
        vars(self).update(shown)

    def __call__(self, img: Any) -> Any:
        return _in_its_form(img, self._transform)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in self._shown.items())})"


def _in_its_form(img: Any, function: Callable[[Any], Any]) -> Any:
    """Apply a function of arrays (rows, columns) or (rows, columns, channels) to an image, and return the same kind."""
    if not isinstance(img, Tensor):
        if isinstance(img, np.ndarray) or not hasattr(img, "getbands"):
            raise TypeError(f"a Tensor or one of Pillow's images is expected, found {type(img).__name__}")
        if img.mode == "P":
            raise TypeError('the pixels of an image with a palette are places in it; take img.convert("RGB") first')
        return image_of(np.asarray(function(np.asarray(img))))
    if img.ndim not in (2, 3):
        raise DataError(f"a Tensor of one image has 2 or 3 axes, found shape {list(img.shape)}; transform each alone")
    array = np.asarray(function(img._array if img.ndim == 2 else img._array.transpose(1, 2, 0)))
    return img.result_class(np.ascontiguousarray(array if img.ndim == 2 else array.transpose(2, 0, 1)))


def _mode(interpolation: Any) -> str:
    return InterpolationMode(interpolation).value


def _both(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[-1])


class Resize(_OfPixels):
    """An image of another size; a single number is that of the shorter side."""

    def __init__(
        self, size: Any, interpolation: Any = InterpolationMode.BILINEAR, max_size: None = None, antialias: Any = True
    ):
        if max_size is not None:
            raise DataError("Resize: max_size is not part of this façade; give both sides, as in size=(32, 48)")
        mode, wanted = _mode(interpolation), size[0] if not isinstance(size, int) and len(size) == 1 else size
        resize = below.Resize(wanted, mode, antialias=bool(antialias))
        super().__init__(resize, size=size, interpolation=mode, max_size=max_size, antialias=antialias)

    def __call__(self, img: Any) -> Any:
        if isinstance(img, Tensor) and self._shown["interpolation"] == "nearest":
            raise DataError("Resize: a Tensor is resized by bilinear interpolation only; put Resize before ToTensor()")
        return super().__call__(img)


class CenterCrop(_OfPixels):
    """The centre of an image."""

    def __init__(self, size: Any):
        super().__init__(below.CenterCrop(_both(size)), size=_both(size))


class RandomCrop(_OfPixels):
    """A random part of an image, which can be padded first."""

    def __init__(self, size: Any, padding: Any = None, fill: Any = 0):
        super().__init__(below.RandomCrop(_both(size), padding, fill), size=_both(size), padding=padding)


class Pad(_OfPixels):
    """A border around an image: one width, (left and right, top and bottom), or (left, top, right, bottom)."""

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant"):
        super().__init__(below.Pad(padding, fill, padding_mode), padding=padding, fill=fill, padding_mode=padding_mode)


class RandomHorizontalFlip(_OfPixels):
    """Flips an image left to right with probability `p`."""

    def __init__(self, p: float = 0.5):
        super().__init__(below.RandomHorizontalFlip(p), p=p)


class RandomVerticalFlip(_OfPixels):
    """Flips an image upside down with probability `p`."""

    def __init__(self, p: float = 0.5):
        super().__init__(below.RandomVerticalFlip(p), p=p)


class RandomRotation(_OfPixels):
    """An image rotated by a random angle: up to `degrees` either way, or between two angles."""

    def __init__(
        self,
        degrees: Any,
        interpolation: Any = InterpolationMode.NEAREST,
        expand: bool = False,
        center: Any = None,
        fill: float = 0,
    ):
        mode = _mode(interpolation)
        rotate = below.RandomRotation(degrees, mode, expand, center, fill)
        super().__init__(rotate, degrees=list(map(float, rotate.degrees)), interpolation=mode, expand=expand, fill=fill)


class Grayscale(_OfPixels):
    """The lightness of each pixel, in one channel or in three that are the same."""

    def __init__(self, num_output_channels: int = 1):
        if num_output_channels not in (1, 3):
            raise DataError(f"Grayscale: num_output_channels is 1 or 3, found {num_output_channels}")
        self._channels = num_output_channels
        super().__init__(self._grey, num_output_channels=num_output_channels)

    def _grey(self, pixels: Any) -> Any:
        grey = pixels if pixels.ndim == 2 else below.grey(pixels)
        return np.repeat(grey[..., None] if grey.ndim == 2 else grey, self._channels, -1)


# Functions


def _at(top: int, left: int, height: int, width: int) -> Callable[[Any], Any]:
    """Cuts a part out of an image; what is outside of the image is 0."""

    def part(pixels: Any) -> Any:
        rows, columns = np.arange(top, top + height), np.arange(left, left + width)
        inside = ((rows >= 0) & (rows < len(pixels)))[:, None] & (columns >= 0) & (columns < pixels.shape[1])
        found = pixels[rows.clip(0, len(pixels) - 1)[:, None], columns.clip(0, pixels.shape[1] - 1)]
        return np.where(inside if pixels.ndim == 2 else inside[..., None], found, np.zeros((), pixels.dtype))

    return part


FUNCTIONAL: dict[str, Callable[..., Any]] = {
    "to_tensor": lambda pic: ToTensor()(pic),
    "pil_to_tensor": lambda pic: PILToTensor()(pic),
    "to_image": lambda inpt: ToImage()(inpt),
    "to_pil_image": lambda pic, mode=None: ToPILImage(mode)(pic),
    "to_dtype": lambda inpt, dtype="float32", scale=False: ToDtype(dtype, scale)(inpt),
    "convert_image_dtype": lambda image, dtype="float32": ConvertImageDtype(dtype)(image),
    "normalize": lambda tensor, mean, std, inplace=False: Normalize(mean, std, inplace)(tensor),
    "resize": lambda img, size, *args, **settings: Resize(size, *args, **settings)(img),
    "center_crop": lambda img, output_size: CenterCrop(output_size)(img),
    "crop": lambda img, top, left, height, width: _in_its_form(img, _at(top, left, height, width)),
    "pad": lambda img, *args, **settings: Pad(*args, **settings)(img),
    "hflip": lambda img: RandomHorizontalFlip(1.0)(img),
    "vflip": lambda img: RandomVerticalFlip(1.0)(img),
    "rgb_to_grayscale": lambda img, num_output_channels=1: Grayscale(num_output_channels)(img),
    "rotate": lambda img, angle, *args, **settings: RandomRotation((angle, angle), *args, **settings)(img),
}
"""The functions of `torchvision.transforms.functional`."""
