"""Handwriting that is known: digits of MNIST as the lines that a pen would draw, of any size and anywhere on a sheet.

    python tests/use/handwriting.py RUN

says how many of MNIST's test digits the networks of a run read, as they are and when they are drawn anew in this way.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from app.use.demo.classifier import SIDE
from app.use.digits import prepare_ink

Line = np.ndarray
"""The points of a line that is drawn without lifting the pen, as (across, down) from 0 to 1."""
TIMES = 4
INK = 170
"""From how light on a pixel is in the line: high enough that the eye of an eight stays open."""
PEN = 0.15
"""The width of a line, of the longer side of a digit, as the page draws it for the networks."""


def lines_of(digit: np.ndarray) -> list[Line]:
    """The lines through the middle of a digit's strokes."""
    large = Image.fromarray(digit).resize((digit.shape[1] * TIMES, digit.shape[0] * TIMES), Image.Resampling.BICUBIC)
    points = {(int(y), int(x)) for y, x in np.argwhere(thinned(np.asarray(large) > INK))}
    return [(np.array(line)[:, ::-1] + 0.5) / large.width for line in _walked(points)]


def thinned(shape: np.ndarray) -> np.ndarray:
    """The middle lines of a shape: Zhang and Suen's thinning."""
    height, width = shape.shape
    padded = np.pad(shape, 1).astype(np.uint8)
    inner = padded[1:-1, 1:-1]
    before = -1
    while before != (before := int(inner.sum())):
        for removed in _REMOVED:
            code = np.zeros_like(inner)
            for bit, (down, across) in enumerate(_AROUND):
                code |= padded[1 + down : 1 + down + height, 1 + across : 1 + across + width] << bit
            inner &= ~removed[code]
    return inner.astype(bool)


_AROUND = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))
"""The neighbours of a pixel, from the one above it on, clockwise."""


def _removed(first: bool) -> np.ndarray:
    """For each way in which a pixel's neighbours can be set, whether a pass takes the pixel away."""
    table = np.zeros(256, np.uint8)
    for code in range(256):
        around = [code >> bit & 1 for bit in range(8)]
        north, east, south, west = around[::2]
        begins = sum(not a and b for a, b in zip(around, around[1:] + around[:1], strict=True))
        side = east & south & (north | west) if first else north & west & (east | south)
        table[code] = 2 <= sum(around) <= 6 and begins == 1 and not side
    return table


_REMOVED = (_removed(True), _removed(False))


def _walked(points: set[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Each connected set of points as one line, which goes back over itself where it branches."""

    nearest_first = sorted(_AROUND, key=lambda step: abs(step[0]) + abs(step[1]))

    def beside(point: tuple[int, int]) -> list[tuple[int, int]]:
        return [other for down, across in nearest_first if (other := (point[0] + down, point[1] + across)) in points]

    while points:
        ordered = sorted(points)
        path = [next((point for point in ordered if len(beside(point)) == 1), ordered[0])]  # an end, if there is one
        line = path.copy()
        points -= {path[0]}
        while path:
            if onward := beside(path[-1]):
                path.append(onward[0])
                points -= {onward[0]}
            else:
                path.pop()
            line += path[-1:] if points else []
        yield line


def placed(lines: list[Line], size: float, across: float, down: float) -> list[Line]:
    """A drawing brought to a size, of the sheet's side, and to a place, from 0 to 1 in what room that leaves."""
    points = np.concatenate(lines)
    low, extent = points.min(0), np.ptp(points, axis=0)
    scale = size / max(float(extent.max()), 1e-6)
    margin = PEN * size / 2
    at = margin + np.array([across, down]) * (1 - 2 * margin - extent * scale)
    return [(line - low) * scale + at for line in lines]


def drawn(lines: list[Line], width: float) -> np.ndarray:
    """A sheet with lines of a width, of its side, as a page sends it."""
    fine = 2 * SIDE
    sheet = Image.new("L", (fine, fine))
    pen = ImageDraw.Draw(sheet)
    radius = width * fine / 2
    for line in lines:
        pen.line([tuple(point) for point in line * fine], 255, max(1, round(2 * radius)))
        for x, y in line[::2] * fine:
            pen.ellipse([x - radius, y - radius, x + radius, y + radius], fill=255)
    return np.asarray(sheet.reduce(2))


def redrawn(digit: np.ndarray, size: float, across: float, down: float) -> np.ndarray:
    """A sheet with a digit drawn with a pen, at a size and a place."""
    return drawn(placed(lines_of(digit), size, across, down), PEN * size)


def redrawn_pictures(digits: np.ndarray) -> np.ndarray:
    """Digits drawn at a size of 0.3 to 0.9 of the sheet and anywhere on it, as the networks get them: in rows."""
    random = np.random.default_rng(0)
    sheets = [redrawn(digit, random.uniform(0.3, 0.9), *random.random(2)) for digit in digits]
    return np.stack([prepare_ink(sheet.astype(np.float32) / 255).ravel() for sheet in sheets])


def main(run: str) -> None:
    """Print how many test digits each network of a run reads."""
    from app.data import load
    from app.experiment.results import Result

    opened = Result(Path(run))
    data = load(opened.config.data.source, opened.config.data.sources, opened.config.data.folder)
    digits, labels = data.test_images, data.test_labels
    again = redrawn_pictures(digits.reshape(-1, 28, 28))
    for operator in opened:
        plain, drawn = (np.mean(opened[operator].predict(pictures) == labels) for pictures in (digits, again))
        print(f"{operator}  {len(digits):,} test digits: read {plain:.2%} as they are, {drawn:.2%} drawn")


if __name__ == "__main__":
    main(sys.argv[1])
