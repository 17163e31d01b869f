"""Machine code for convolution and pooling: each vector lane holds a different image.

A tile of images is transposed and padded as it is read, so that the values of all images at one position are adjacent.
Sums of several output channels at several positions stay in registers, and each weight is broadcast to a vector. Odd
sizes and few channels are therefore free, and a tile stays in the L2 cache. The gradient of the images is a convolution
with the flipped weight. The gradient of the weight is summed per lane, tile after tile, and finally over the lanes, in
an order that does not depend on the thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

from numba import njit

from app.engine.compiled.vector_functions import linked
from app.engine.compiled.vectors import FLOAT, INT, POINTER, Code, Operand, Value, Variable, lanes_of_machine

FLOAT_BYTES = 4
MOST_ROOM = 1 << 20
"""A larger tile does not fit into the L2 cache; such sizes use matrix products."""

Pair = tuple[int, int]


@dataclass(frozen=True)
class Windows:
    """The geometry of windows on images: channels, sizes and counts. All numbers are constants."""

    channels: int
    sizes: Pair
    counts: Pair
    kernel: Pair
    stride: Pair
    before: Pair
    dilation: Pair = (1, 1)

    @property
    def padded(self) -> Pair:
        """The sizes of images with the padding that the windows reach."""
        height, width = (
            max((self.counts[a] - 1) * self.stride[a] + self.dilation[a] * (self.kernel[a] - 1) + 1,
                self.before[a] + self.sizes[a])
            for a in (0, 1)
        )  # fmt: skip
        return height, width

    @property
    def numbers(self) -> int:
        """The number of elements of a padded image."""
        return self.channels * self.padded[0] * self.padded[1]

    def places(self) -> list[int]:
        """The index in the padded image of each element of an image."""
        height, width = self.padded
        return [
            (c * height + y + self.before[0]) * width + x + self.before[1]
            for c, y, x in product(range(self.channels), range(self.sizes[0]), range(self.sizes[1]))
        ]


@dataclass(frozen=True)
class Weight:
    """The sizes of a weight, and how its groups divide the channels."""

    outputs: int
    inputs: int
    """The channels of a group of the images."""
    groups: int
    kernel: Pair

    @property
    def outputs_of_group(self) -> int:
        return self.outputs // self.groups

    @property
    def of_output(self) -> int:
        """The number of elements per output channel."""
        return self.inputs * self.kernel[0] * self.kernel[1]


def has_input_code(windows: Windows) -> bool:
    """Whether the windows allow the gradient with respect to the images."""
    reach = [windows.dilation[a] * (windows.kernel[a] - 1) for a in (0, 1)]
    last = [(windows.counts[a] - 1) * windows.stride[a] - windows.before[a] for a in (0, 1)]
    return all(windows.before[a] <= reach[a] and last[a] < windows.sizes[a] for a in (0, 1))


def convolution_room(windows: Windows, weight: Weight, gives: str, lanes: int) -> int:
    """Return the scratch bytes of a convolution, or of its gradient with respect to the weight or `x`."""
    made = weight.outputs * windows.counts[0] * windows.counts[1]
    numbers = windows.numbers + made
    if gives == "weight":
        numbers += weight.outputs * weight.of_output
    if gives == "x":
        reach = [windows.sizes[a] + windows.dilation[a] * (windows.kernel[a] - 1) for a in (0, 1)]
        numbers = windows.channels * windows.sizes[0] * windows.sizes[1] + weight.outputs * reach[0] * reach[1]
    return numbers * lanes * FLOAT_BYTES


def pooling_room(windows: Windows, lanes: int) -> int:
    """Return the maximum scratch bytes of pooling."""
    return (2 * windows.numbers + windows.channels * windows.counts[0] * windows.counts[1]) * lanes * FLOAT_BYTES


# Tiles


class _Tile:
    """Memory for elements of as many images as a vector has lanes."""

    def __init__(self, code: Code, numbers: int):
        self.code, self.size = code, FLOAT_BYTES * code.lanes
        self.room = code.room(numbers * self.size)
        self._numbers = numbers

    def fill(self, value: float) -> None:
        with self.code.loop(0, self._numbers) as i:
            self.store(self.code.value(value, self.code.floats), i)

    def load(self, place: Operand) -> Value:
        return self.code.load_floats(self.room, self.code.value(place) * self.size, own=True)

    def store(self, value: Value, place: Operand) -> None:
        self.code.store_floats(value, self.room, self.code.value(place) * self.size, own=True)


def _read(tile: _Tile, images: Value, image: Value, count: Value, numbers: int, places: Sequence[int],
          between: tuple[Operand, Operand] | None = None) -> None:  # fmt: skip
    """Read `count` images into a tile; `places` gives the destination of each element.

    Lanes without an image are zero. If `between` is given, only elements in these bounds are read.
    """
    code, lanes = tile.code, tile.code.lanes
    table = code.table(places)
    rows = [(image + code.least(k, count - 1)) * (numbers * FLOAT_BYTES) for k in range(lanes)]
    low, high = between or (0, numbers)
    whole = code.value(low) + ((code.value(high) - low) & -lanes)

    def put(value: Value, number: Value) -> None:
        tile.store(code.masked(value, count), code.load(INT, table, number * 8, 8))

    with code.loop(low, whole, lanes) as first:
        vectors = [code.load_floats(images, row + first * FLOAT_BYTES) for row in rows]
        for k, vector in enumerate(code.transposed(vectors)):
            put(vector, first + k)
    with code.loop(whole, high) as number:
        put(code.together([code.load(FLOAT, images, row + number * FLOAT_BYTES, 4) for row in rows]), number)


def _write(tile: _Tile, images: Value, image: Value, count: Value, numbers: int, places: Sequence[int]) -> None:
    """Write the first `count` images of a tile to an array."""
    code, lanes = tile.code, tile.code.lanes
    table = code.table(places)
    whole = numbers // lanes * lanes
    # Backwards: lanes without an image write first and are overwritten.
    rows = [(image + code.least(k, count - 1)) * (numbers * FLOAT_BYTES) for k in range(lanes)]

    def get(number: Value) -> Value:
        return tile.load(code.load(INT, table, number * 8, 8))

    with code.loop(0, whole, lanes) as first:
        vectors = code.transposed([get(first + k) for k in range(lanes)])
        for row, vector in reversed(list(zip(rows, vectors, strict=True))):
            code.store_floats(vector, images, row + first * FLOAT_BYTES)
    with code.loop(whole, numbers) as number:
        for row, value in reversed(list(zip(rows, code.apart(get(number)), strict=True))):
            code.store(value, images, row + number * FLOAT_BYTES, 4)


def _blocks(code: Code, count: int, block: int, body: Callable[[Value, int], None]) -> None:
    """Iterate over blocks of positions, given by start and count; the last block may be smaller."""
    whole = count // block * block
    if whole:
        with code.loop(0, whole, block) as first:
            body(first, block)
    if count > whole:
        body(code.value(whole), count - whole)


def _block_sizes(rows: int, columns: int, lanes: int) -> Pair:
    """Choose the rows and columns of sums in registers that need the fewest instructions."""
    most = 24 if lanes == 16 else 12

    def instructions(sizes: Pair) -> float:
        cut = [[size] * (count // size) + [count % size] for size, count in zip(sizes, (rows, columns), strict=True)]
        return sum(max(a * b, 8) + (a + b) / 2 for a in cut[0] for b in cut[1] if a and b)

    possible = product(range(1, min(rows, 8) + 1), range(1, min(columns, 8) + 1))
    return min((sizes for sizes in possible if sizes[0] * sizes[1] <= most), key=instructions)


# Convolution


def convolution_code(name: str, windows: Windows, weight: Weight, lanes: int) -> Code:
    """Images `first` to `last` of a convolution."""
    code = Code(name, lanes, x=POINTER, weight=POINTER, first=INT, last=INT, out=POINTER)
    x, w, first, last, out = code.parameters.values()
    height, width = weight.kernel
    weights = _Strides(weight.of_output * weight.outputs_of_group, weight.of_output, height * width, width, 1, 0)
    _convolve(code, windows, windows.padded, weight, weights, windows.places(), (x, w, first, last, out))
    return code


def input_code(name: str, windows: Windows, weight: Weight, lanes: int) -> Code:
    """Images `first` to `last` of the gradient by the images: what arrives, with zeros between where windows are more
    than one step apart, under the flipped weight."""
    code = Code(name, lanes, y=POINTER, weight=POINTER, first=INT, last=INT, out=POINTER)
    y, w, first, last, out = code.parameters.values()
    (height, width), d = weight.kernel, windows.dilation
    top, left = (d[a] * (weight.kernel[a] - 1) - windows.before[a] for a in (0, 1))
    rows, columns = (windows.sizes[a] + d[a] * (weight.kernel[a] - 1) for a in (0, 1))
    around = Windows(weight.outputs, windows.counts, windows.sizes, weight.kernel, (1, 1), (top, left), d)
    places = [
        (c * rows + i * windows.stride[0] + top) * columns + j * windows.stride[1] + left
        for c, i, j in product(range(weight.outputs), range(windows.counts[0]), range(windows.counts[1]))
    ]
    swapped = Weight(weight.inputs * weight.groups, weight.outputs_of_group, weight.groups, weight.kernel)
    size = height * width
    weights = _Strides(weight.of_output * weight.outputs_of_group, size, weight.of_output, -width, -1, size - 1)
    _convolve(code, around, (rows, columns), swapped, weights, places, (y, w, first, last, out))
    return code


@dataclass(frozen=True)
class _Strides:
    """The strides of a weight and the offset of its first element."""

    group: int
    output: int
    input: int
    y: int
    x: int
    begin: int


def _convolve(
    code: Code,
    windows: Windows,
    padded: Pair,
    weight: Weight,
    strides: _Strides,
    places: Sequence[int],
    arguments: Sequence[Value],
) -> None:
    x, w, first, last, out = arguments
    (rows, columns), (height, width) = windows.counts, padded
    tile, made = _Tile(code, windows.channels * height * width), _Tile(code, weight.outputs * rows * columns)
    tile.fill(0.0)
    (sh, sw), (dh, dw) = windows.stride, windows.dilation
    outputs, inputs = weight.outputs_of_group, weight.inputs
    block, beside = _block_sizes(outputs, columns, code.lanes)

    def sums(group: Value, o: Value, count: int, y: Value, x: Value, n: int) -> None:
        totals = [[Variable(code, code.zeros) for _ in range(n)] for _ in range(count)]
        with code.loop(0, inputs) as c, code.loop(0, weight.kernel[0]) as i, code.loop(0, weight.kernel[1]) as j:
            row = ((group * inputs + c) * height + y * sh + i * dh) * width + j * dw
            values = [tile.load(row + (x + k) * sw) for k in range(n)]
            at = group * strides.group + o * strides.output + c * strides.input
            at = at + i * strides.y + j * strides.x + strides.begin
            for k, some in enumerate(totals):
                factor = code.spread(code.load(FLOAT, w, (at + k * strides.output) * FLOAT_BYTES, 4))
                for value, total in zip(values, some, strict=True):
                    total.value = code.fma(factor, value, total.value)
        for k, some in enumerate(totals):
            begin = ((group * outputs + o + k) * rows + y) * columns + x
            for m, total in enumerate(some):
                made.store(total.value, begin + m)

    with code.loop(first, last, code.lanes) as image:
        count = code.least(last - image, code.lanes)
        _read(tile, x, image, count, len(places), places)
        with code.loop(0, weight.groups) as group:
            _blocks(
                code, outputs, block,
                lambda o, a: _in_rows(code, rows, lambda y: _blocks(
                    code, columns, beside, lambda x, b: sums(group, o, a, y, x, b))),
            )  # fmt: skip
        _write(made, out, image, count, weight.outputs * rows * columns, range(weight.outputs * rows * columns))


def _in_rows(code: Code, rows: int, body: Callable[[Value], None]) -> None:
    with code.loop(0, rows) as y:
        body(y)


def weight_code(name: str, windows: Windows, weight: Weight, lanes: int) -> Code:
    """Output channels `first` to `last` of the gradient by the weight, summed over `n` images."""
    code = Code(name, lanes, x=POINTER, y=POINTER, n=INT, first=INT, last=INT, out=POINTER)
    x, y, n, first, last, out = code.parameters.values()
    (rows, columns), (height, width), (kernel_rows, kernel_columns) = windows.counts, windows.padded, weight.kernel
    made = weight.outputs * rows * columns
    tile, slopes, sums = _Tile(code, windows.numbers), _Tile(code, made), _Tile(code, weight.outputs * weight.of_output)
    (sh, sw), (dh, dw) = windows.stride, windows.dilation
    block, beside = _block_sizes(weight.outputs_of_group, kernel_columns, lanes)
    block = block if weight.groups == 1 else 1
    tile.fill(0.0)
    with code.loop(first * weight.of_output, last * weight.of_output) as i:
        sums.store(code.zeros, i)

    def add(o: Value, count: int) -> None:
        channel = Value(code, code.builder.udiv(o.ir, INT(weight.outputs_of_group))) * weight.inputs
        with code.loop(0, weight.inputs) as c, code.loop(0, kernel_rows) as i:
            _blocks(code, kernel_columns, beside, lambda j, m: products(o, count, channel + c, c, i, j, m))

    def products(o: Value, count: int, channel: Value, c: Value, i: Value, j: Value, m: int) -> None:
        totals = [[Variable(code, code.zeros) for _ in range(m)] for _ in range(count)]
        with code.loop(0, rows) as row, code.loop(0, columns) as column:
            begin = (channel * height + row * sh + i * dh) * width + column * sw + j * dw
            values = [tile.load(begin + k * dw) for k in range(m)]
            for k, some in enumerate(totals):
                slope = slopes.load(((o + k) * rows + row) * columns + column)
                for value, total in zip(values, some, strict=True):
                    total.value = code.fma(slope, value, total.value)
        for k, some in enumerate(totals):
            at = (((o + k) * weight.inputs + c) * kernel_rows + i) * kernel_columns + j
            for l, total in enumerate(some):  # noqa: E741
                sums.store(sums.load(at + l) + total.value, at + l)

    with code.loop(0, n, lanes) as image:
        count = code.least(n - image, lanes)
        places = windows.places()
        _read(tile, x, image, count, len(places), places)
        _read(slopes, y, image, count, made, range(made), (first * (rows * columns), last * (rows * columns)))
        whole = Variable(code, first)
        if block > 1:
            whole.value = last - Value(code, code.builder.urem((last - first).ir, INT(block)))
            with code.loop(first, whole.value, block) as o:
                add(o, block)
        with code.loop(whole.value, last) as o:
            add(o, 1)
    with code.loop(first * weight.of_output, last * weight.of_output) as i:
        code.store(code.total(sums.load(i)), out, i * FLOAT_BYTES, 4)
    return code


# Pooling


def largest_code(name: str, windows: Windows, lanes: int) -> Code:
    """Images `first` to `last` of the largest number in each window."""
    code = Code(name, lanes, x=POINTER, first=INT, last=INT, out=POINTER)
    x, first, last, out = code.parameters.values()
    made = windows.channels * windows.counts[0] * windows.counts[1]
    tile, results = _Tile(code, windows.numbers), _Tile(code, made)
    tile.fill(float("-inf"))
    places = windows.places()
    with code.loop(first, last, lanes) as image:
        count = code.least(last - image, lanes)
        _read(tile, x, image, count, len(places), places)
        with _each_window(code, windows) as (window, place):
            results.store(_largest(code, tile, window), place)
        _write(results, out, image, count, made, range(made))
    return code


def scatter_code(name: str, windows: Windows, lanes: int) -> Code:
    """Images `first` to `last` with what arrives at each window, at the first of its largest numbers."""
    code = Code(name, lanes, y=POINTER, x=POINTER, first=INT, last=INT, out=POINTER)
    y, x, first, last, out = code.parameters.values()
    made = windows.channels * windows.counts[0] * windows.counts[1]
    tile, results, slopes = _Tile(code, windows.numbers), _Tile(code, windows.numbers), _Tile(code, made)
    tile.fill(float("-inf"))
    places = windows.places()
    with code.loop(first, last, lanes) as image:
        count = code.least(last - image, lanes)
        _read(tile, x, image, count, len(places), places)
        _read(slopes, y, image, count, made, range(made))
        results.fill(0.0)
        with _each_window(code, windows) as (window, place):
            largest, slope = _largest(code, tile, window), slopes.load(place)
            for element in window:
                found = code.is_same(tile.load(element), largest)
                results.store(results.load(element) + code.select(found, slope, code.zeros), element)
                slope = code.select(found, code.zeros, slope)
        _write(results, out, image, count, len(places), places)
    return code


@contextmanager
def _each_window(code: Code, windows: Windows) -> Iterator[tuple[list[Value], Value]]:
    """Emit the block for each window, given the positions of its elements and its index."""
    (height, width), (rows, columns) = windows.padded, windows.counts
    with code.loop(0, windows.channels) as c, code.loop(0, rows) as i, code.loop(0, columns) as j:
        begin = (c * height + i * windows.stride[0]) * width + j * windows.stride[1]
        taps = product(range(windows.kernel[0]), range(windows.kernel[1]))
        yield [begin + (a * width + b) for a, b in taps], (c * rows + i) * columns + j


def _largest(code: Code, tile: _Tile, window: Sequence[Value]) -> Value:
    found, *others = map(tile.load, window)
    for other in others:
        found = code.select(code.is_greater(other, found), other, found)
    return found


# Functions for generated source


@lru_cache(maxsize=128)
def over_images(kind: str, windows: Windows, weight: Weight | None) -> Any:
    """Fills images `first` to `last` of an array: `convolution` and `input` of values and a weight, `largest` of
    images, `scatter` of what arrives and images."""
    name, lanes = named(kind, windows, weight), lanes_of_machine()
    if weight is not None:
        write = {"convolution": convolution_code, "input": input_code}[kind]
        run = linked(name, lambda: write(name, windows, weight, lanes))
    else:
        pool = {"largest": largest_code, "scatter": scatter_code}[kind]
        run = linked(name, lambda: pool(name, windows, lanes))

    @njit(nogil=True)
    def of_one(x: Any, first: int, last: int, out: Any) -> None:
        run(x.ctypes.data, first, last, out.ctypes.data)

    @njit(nogil=True)
    def of_two(x: Any, y: Any, first: int, last: int, out: Any) -> None:
        run(x.ctypes.data, y.ctypes.data, first, last, out.ctypes.data)

    return of_one if kind == "largest" else of_two


@lru_cache(maxsize=128)
def of_weight(windows: Windows, weight: Weight) -> Any:
    """Fills output channels `first` to `last` of a weight's gradient."""
    name = named("weight", windows, weight)
    run = linked(name, lambda: weight_code(name, windows, weight, lanes_of_machine()))

    @njit(nogil=True)
    def gradient(x: Any, y: Any, first: int, last: int, out: Any) -> None:
        run(x.ctypes.data, y.ctypes.data, x.shape[0], first, last, out.ctypes.data)

    return gradient


def named(kind: str, windows: Windows, weight: Weight | None) -> str:
    """The unique name of a function."""
    digest = hashlib.sha256(repr((windows, weight)).encode()).hexdigest()[:16]
    sizes = "x".join(map(str, (windows.channels, *windows.sizes)))
    return f"opsmith_{kind}_{sizes}_{digest}"
