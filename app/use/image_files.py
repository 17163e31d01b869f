"""Reads image files. Files that are not images or could be harmful are refused."""

from __future__ import annotations

import io
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import DataError
from app.files import LARGEST

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
"""The supported formats, which contain only pixels. (Others contain programs.)"""
LARGEST_PICTURE = 100_000_000
"""The maximum pixels of a picture."""
ANY_FILE, FOR_EACH_BYTE = 16_000_000, 1000
"""The maximum pixels of any file, and per byte of it: a black-and-white scan has hundreds."""
SECONDS, _PIECE = 2.0, 512
"""How long a picture may take to be read, and the bytes that are read at once. (A JPEG of 100 KB can have thousands of
scans, and numbers as text are slow.)"""
SIDE = 800
"""Larger pictures are reduced to this length of the longer side."""


def read_picture(path: Any) -> NDArray[np.float32]:
    """Read a picture, upright, as (rows, columns, colours) from 0 to 1; transparent pixels become background."""
    from PIL import ImageOps  # imported late: few programs read pictures

    pixels: NDArray[np.float32] = _of_image(path, lambda image: _colours(_reduced(ImageOps.exif_transpose(image))))
    return pixels


def _of_image(path: Any, result: Callable[[Any], Any]) -> Any:
    """Apply a function to the image in a file, which is checked before any pixel is read."""
    from PIL import Image, UnidentifiedImageError

    source = Path(path)
    size = _size_of(source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow also warns about large pictures, which are checked here
            with _TimedFile(source) as file, Image.open(file, formats=FORMATS) as image:
                _check_claim(path, image.size, size)
                image.decodermaxblock = _PIECE
                return result(image)
    except TimeoutError:
        raise DataError(
            f"{path}: reading it takes more than {SECONDS:g} seconds, as no picture of a digit does"
        ) from None
    except UnidentifiedImageError:
        raise DataError(f"{path}: it is not a picture in a supported format: {', '.join(FORMATS)}") from None
    except Image.DecompressionBombError as error:
        raise DataError(f"{path}: it is too large: {error}") from error
    except (OSError, ValueError, SyntaxError, TypeError, LookupError, ArithmeticError) as error:
        raise DataError(f"{path}: it is a damaged picture: {error}") from error


class _TimedFile(io.FileIO):
    """A file that raises a TimeoutError when it is read after too long a time: Pillow reads it piece by piece."""

    def __init__(self, path: Path):
        super().__init__(path)
        self._end = time.thread_time() + SECONDS

    def read(self, size: int | None = -1, /) -> bytes:
        if time.thread_time() > self._end:
            raise TimeoutError
        return super().read(-1 if size is None else size) or b""


def _size_of(source: Path) -> int:
    try:
        if not source.exists():
            raise DataError(f"{source}: no such file")
        if not source.is_file():
            raise DataError(f"{source}: it is not a file")
        size = source.stat().st_size
    except (OSError, ValueError) as error:
        raise DataError(f"{source}: it cannot be read: {error}") from error
    if size > (most := LARGEST["picture"]):
        raise DataError(f"{source}: it has {size:,} bytes, more than the {most:,} that are read")
    return size


def _check_claim(path: Any, claimed: tuple[int, int], size: int) -> None:
    width, height = claimed
    most = min(LARGEST_PICTURE, max(ANY_FILE, FOR_EACH_BYTE * size))
    if width * height > most:
        raise DataError(f"{path}: it claims {width:,} x {height:,} pixels, more than the {most:,} that are read of it")


def _reduced(image: Any) -> Any:
    """Convert a picture to one of four modes, and reduce its size."""
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
    if image.mode == "F":  # values of any range
        if not np.isfinite(pixels).all():
            raise ValueError("some of its values are NaN")
        return (pixels - pixels.min()) / max(float(np.ptp(pixels)), 1e-12)
    pixels /= 255
    return _on_ground(pixels) if pixels.shape[-1] == 4 else pixels


def _on_ground(pixels: NDArray[np.float32]) -> NDArray[np.float32]:
    """Fill transparent pixels: black behind a light picture, white behind a dark one."""
    colours, opacity = pixels[..., :3], pixels[..., 3:]
    if opacity.min() == 1:
        return colours
    lightness = float((colours * opacity).sum() / max(3 * float(opacity.sum()), 1e-12))
    return colours * opacity + (0.0 if lightness > 0.5 else 1.0) * (1 - opacity)
