"""The reader of pictures."""

from __future__ import annotations

import io

import numpy as np
from fuzz_target import Target, in_a_file
from PIL import Image

from app.vision.digits import prepare
from app.vision.reading import FORMATS, read_picture


def _picture(form: str, mode: str) -> bytes:
    pixels = np.arange(9 * 7 * 4, dtype=np.uint8).reshape(9, 7, 4)
    made = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(made, form)
    return made.getvalue()


PICTURES = {
    "picture": Target(
        in_a_file(lambda path: prepare(read_picture(path))),
        tuple(_picture(form, "RGB" if form in ("PPM", "JPEG") else "RGBA") for form in FORMATS),
    ),
}
for seed in PICTURES["picture"].seeds:
    PICTURES["picture"](seed)  # Pillow imports what it needs for each format when it meets it
