"""Reading image files as a camera or a drawing program writes them; what is no image, or could do harm, is refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import DataError

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
"""What is opened: formats that hold pixels alone. (Others are programs, which a reader would have to run.)"""
LARGEST_FILE, LARGEST_PICTURE = 100_000_000, 100_000_000
"""Bytes of a file, and pixels of a picture."""
ANY_FILE, FOR_EACH_BYTE = 16_000_000, 1000
"""Pixels that any file may claim, and for each of its bytes: a page scanned in black and white has hundreds."""
SIDE = 800
"""Pixels of the longer side to which larger pictures are reduced at once."""


def read_picture(path: Any) -> NDArray[np.float32]:
    """The picture in a file, upright, as (rows, columns, colours) from 0 to 1; what is transparent is made ground."""
    from PIL import ImageOps  # imported late: few programs read pictures

    found: NDArray[np.float32] = _of_image(path, lambda image: _colours(_reduced(ImageOps.exif_transpose(image))))
    return found


def read_pixels(path: Any) -> NDArray[np.uint8]:
    """The pixels in a file as they are stored, as bytes of (rows, columns, channels)."""
    return _of_image(path, _pixels)


def _pixels(image: Any) -> NDArray[np.uint8]:
    kept = image if image.mode in ("L", "LA", "RGB", "RGBA") else image.convert("RGB")
    pixels = np.array(kept, np.uint8)
    return pixels.reshape(*pixels.shape[:2], -1)


def _of_image(path: Any, result: Callable[[Any], Any]) -> Any:
    """The result of a function of the image in a file, which is checked before any pixel is read."""
    from PIL import Image, UnidentifiedImageError

    source = Path(path)
    size = _size_of(source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a picture's size it warns, too, which is checked here
            with Image.open(source, formats=FORMATS) as image:
                _check_claim(path, image.size, size)
                return result(image)
    except UnidentifiedImageError:
        raise DataError(f"{path}: it is no picture of a kind that is read: {', '.join(FORMATS)}") from None
    except Image.DecompressionBombError as error:
        raise DataError(f"{path}: it is larger than what is read: {error}") from error
    except (OSError, ValueError, SyntaxError, TypeError, LookupError, ArithmeticError) as error:
        raise DataError(f"{path}: it is a damaged picture: {error}") from error


def _size_of(source: Path) -> int:
    try:
        if not source.exists():
            raise DataError(f"{source}: there is no such file")
        if not source.is_file():
            raise DataError(f"{source}: it is no file")
        size = source.stat().st_size
    except (OSError, ValueError) as error:
        raise DataError(f"{source}: it cannot be read: {error}") from error
    if size > LARGEST_FILE:
        raise DataError(f"{source}: it has {size:,} bytes, more than the {LARGEST_FILE:,} that are read")
    return size


def _check_claim(path: Any, claimed: tuple[int, int], size: int) -> None:
    width, height = claimed
    most = min(LARGEST_PICTURE, max(ANY_FILE, FOR_EACH_BYTE * size))
    if width * height > most:
        raise DataError(f"{path}: it claims {width:,} x {height:,} pixels, more than the {most:,} that are read of it")


def _reduced(image: Any) -> Any:
    """A picture in one of four ways to hold pixels, and no larger than is of use."""
    if image.mode not in ("L", "I;16", "I;16B", "I;16L", "I", "F"):
        transparent = "A" in image.getbands() or "a" in image.getbands() or "transparency" in image.info
        image = image.convert("RGBA" if transparent else "RGB")
    elif image.mode not in ("L", "F"):
        image = image.convert("I").convert("F")
    factor = max(image.size) // SIDE
    return image.reduce(factor) if factor > 1 else image


def _colours(image: Any) -> NDArray[np.float32]:
    pixels = np.array(image, np.float32)
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    if image.mode == "F":  # numbers of any range
        if not np.isfinite(pixels).all():
            raise ValueError("some of its numbers are none")
        return (pixels - pixels.min()) / max(float(np.ptp(pixels)), 1e-12)
    pixels /= 255
    return _on_ground(pixels) if pixels.shape[-1] == 4 else pixels


def _on_ground(pixels: NDArray[np.float32]) -> NDArray[np.float32]:
    """A picture with what is transparent filled: black behind what is light, and white behind what is dark."""
    colours, opacity = pixels[..., :3], pixels[..., 3:]
    if opacity.min() == 1:
        return colours
    lightness = float((colours * opacity).sum() / max(3 * float(opacity.sum()), 1e-12))
    return colours * opacity + (0.0 if lightness > 0.5 else 1.0) * (1 - opacity)
