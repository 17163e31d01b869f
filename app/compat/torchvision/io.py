"""torchvision.io: files of images"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from app.compat.torch._creation import from_numpy
from app.errors import DataError
from app.vision.reading import read_pixels


def read_image(path: Any, mode: str = "UNCHANGED") -> Any:
    """The bytes of an image file as a Tensor, its channels in front."""
    if mode != "UNCHANGED":
        raise DataError(f"read_image: mode is 'UNCHANGED' in this façade, found {mode!r}")
    return from_numpy(np.ascontiguousarray(read_pixels(Path(path)).transpose(2, 0, 1)))
