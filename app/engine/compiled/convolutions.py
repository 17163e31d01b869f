"""Machine code for convolution and pooling: each vector lane holds a different image.

The values of all images of a tile at one position are adjacent. Arrays hold images either one after the other, and are
then transposed as they are read and written, or by lanes already: [tiles, channels, height * width * lanes]. Sums of
several output channels at several positions stay in registers, and each weight is broadcast to a vector. Odd sizes and
few channels are therefore free, and a tile stays in the L2 cache. The gradient of the images is a convolution with the
flipped weight. What is summed over the batch is summed for each tile, in an order that does not depend on the thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product

from app.engine.compiled.vector_functions import VectorFunction
from app.engine.compiled.vectors import FLOAT, INT, POINTER, Code, Operand, Value, Variable, lanes_of_machine

FLOAT_BYTES = 4
MOST_ROOM = 4 << 20
"""The most scratch memory; larger tiles use matrix products."""

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


def room_of(kind: str, windows: Windows, weight: Weight | None, lanes: int) -> int:
    """Return the maximum scratch bytes of a function."""
    places = windows.counts[0] * windows.counts[1]
    if weight is None:
        numbers = 2 * windows.numbers + windows.channels * places
    elif kind == "input":
        reach = [windows.sizes[a] + windows.dilation[a] * (windows.kernel[a] - 1) for a in (0, 1)]
        numbers = windows.channels * windows.sizes[0] * windows.sizes[1] + weight.outputs * reach[0] * reach[1]
    else:
        numbers = windows.numbers + weight.outputs * places
    return numbers * lanes * FLOAT_BYTES


# Tiles


class _Tile:
    """Elements of as many images as a vector has lanes, in scratch memory or in an array by lanes."""

    def __init__(self, code: Code, numbers: int, begin: Value | None = None):
        self.code, self.numbers, self._size = code, numbers, FLOAT_BYTES * code.lanes
        self._begin = code.room(numbers * self._size) if begin is None else begin

    def fill(self, value: float) -> None:
        with self.code.loop(0, self.numbers) as i:
            self.store(self.code.value(value, self.code.floats), i)

    def clear_after(self, count: Value) -> None:
        """Set lanes without an image to zero."""
        with self.code.when(count < self.code.lanes), self.code.loop(0, self.numbers) as i:
            self.store(self.code.masked(self.load(i), count), i)

    def load(self, place: Operand) -> Value:
        return self.code.load_floats(self._begin, self.code.value(place) * self._size, own=True)

    def store(self, value: Value, place: Operand) -> None:
        self.code.store_floats(value, self._begin, self.code.value(place) * self._size, own=True)


class _Images:
    """An argument that is an array of images of so many elements, one after the other or by lanes."""

    def __init__(self, array: Value, numbers: int, by_lanes: bool):
        self._code, self._array, self._numbers, self._by_lanes = array.code, array, numbers, by_lanes
        self._scratch: _Tile | None = None
        self._places: Sequence[int] = range(numbers)

    def pad(self, numbers: int, places: Sequence[int], value: float = 0.0) -> _Images:
        """Read images with padding: `places` gives the destination of each element. Called before the loop."""
        if list(places) != list(range(numbers)):
            self._scratch, self._places = _Tile(self._code, numbers), places
            self._scratch.fill(value)
        return self

    def read(self, image: Value, count: Value) -> _Tile:
        """The tile of `count` images from `image` on."""
        if self._by_lanes and self._scratch is None:
            return self._in_place(image)
        tile = self._scratch or _Tile(self._code, self._numbers)
        if self._by_lanes:
            source, table = self._in_place(image), self._code.table(self._places)
            with self._code.loop(0, self._numbers) as i:
                tile.store(source.load(i), self._code.load(INT, table, i * 8, 8))
        else:
            _read(tile, self._array, image, count, self._numbers, self._places)
        return tile

    @contextmanager
    def write(self, image: Value, count: Value) -> Iterator[_Tile]:
        """Within, fill the tile that is then written."""
        tile = self._in_place(image) if self._by_lanes else _Tile(self._code, self._numbers)
        yield tile
        if not self._by_lanes:
            _write(tile, self._array, image, count, self._numbers)

    def _in_place(self, image: Value) -> _Tile:
        # a tile begins where its first image would if images came one after the other
        return _Tile(self._code, self._numbers, self._code.at(self._array, image * (self._numbers * FLOAT_BYTES)))


@contextmanager
def _each_tile(code: Code) -> Iterator[tuple[Value, Value]]:
    """Within, instructions run for each tile of images `first` to `last`: its first image, and how many it has."""
    first, last = code.parameters["first"], code.parameters["last"]
    with code.loop(first, last, code.lanes) as image:
        yield image, code.least(last - image, code.lanes)


def _read(tile: _Tile, images: Value, image: Value, count: Value, numbers: int, places: Sequence[int]) -> None:
    """Read `count` images into a tile; `places` gives the destination of each element.

    Lanes without an image repeat the last one: a user's function then meets no values but those of images.
    """
    code, lanes = tile.code, tile.code.lanes
    table = code.table(places)
    rows = [(image + code.least(k, count - 1)) * (numbers * FLOAT_BYTES) for k in range(lanes)]
    whole = numbers // lanes * lanes

    def put(value: Value, number: Value) -> None:
        tile.store(value, code.load(INT, table, number * 8, 8))

    with code.loop(0, whole, lanes) as first:
        vectors = [code.load_floats(images, row + first * FLOAT_BYTES) for row in rows]
        for k, vector in enumerate(code.transposed(vectors)):
            put(vector, first + k)
    with code.loop(whole, numbers) as number:
        put(code.together([code.load(FLOAT, images, row + number * FLOAT_BYTES, 4) for row in rows]), number)


def _write(tile: _Tile, images: Value, image: Value, count: Value, numbers: int) -> None:
    """Write the first `count` images of a tile to an array."""
    code, lanes = tile.code, tile.code.lanes
    whole = numbers // lanes * lanes
    # Backwards: lanes without an image write first and are overwritten.
    rows = [(image + code.least(k, count - 1)) * (numbers * FLOAT_BYTES) for k in range(lanes)]

    with code.loop(0, whole, lanes) as first:
        vectors = code.transposed([tile.load(first + k) for k in range(lanes)])
        for row, vector in reversed(list(zip(rows, vectors, strict=True))):
            code.store_floats(vector, images, row + first * FLOAT_BYTES)
    with code.loop(whole, numbers) as number:
        for row, value in reversed(list(zip(rows, code.apart(tile.load(number)), strict=True))):
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

# Each of these writes a function of some arrays, `first` and `last`, which are images, and the array that it fills.
# `by_lanes` says of the arrays in this order which ones are images by lanes.


def _arrays(name: str, lanes: int, count: int) -> Code:
    inputs = dict.fromkeys(("x", "y")[:count], POINTER)
    return Code(name, lanes, **inputs, first=INT, last=INT, out=POINTER)


def convolution_code(name: str, windows: Windows, weight: Weight, lanes: int, by_lanes: Sequence[bool]) -> Code:
    """The convolution of images with a weight."""
    height, width = weight.kernel
    weights = _Strides(weight.of_output * weight.outputs_of_group, weight.of_output, height * width, width, 1, 0)
    code = _arrays(name, lanes, 2)
    _convolve(code, windows, windows.padded, windows.sizes, weight, weights, windows.places(), by_lanes)
    return code


def input_code(name: str, windows: Windows, weight: Weight, lanes: int, by_lanes: Sequence[bool]) -> Code:
    """The gradient with respect to the images: what arrives, with zeros between where windows are more than one step
    apart, under the flipped weight."""
    (height, width), d, s = weight.kernel, windows.dilation, windows.stride
    top, left = (d[a] * (weight.kernel[a] - 1) - windows.before[a] for a in (0, 1))
    rows, columns = (windows.sizes[a] + d[a] * (weight.kernel[a] - 1) for a in (0, 1))
    around = Windows(weight.outputs, windows.counts, windows.sizes, weight.kernel, (1, 1), (top, left), d)
    places = [
        (c * rows + i * s[0] + top) * columns + j * s[1] + left
        for c, i, j in product(range(weight.outputs), range(windows.counts[0]), range(windows.counts[1]))
    ]
    height_there, width_there = ((windows.counts[a] - 1) * s[a] + 1 for a in (0, 1))
    swapped = Weight(weight.inputs * weight.groups, weight.outputs_of_group, weight.groups, weight.kernel)
    size = height * width
    weights = _Strides(weight.of_output * weight.outputs_of_group, size, weight.of_output, -width, -1, size - 1)
    code = _arrays(name, lanes, 2)
    _convolve(code, around, (rows, columns), (height_there, width_there), swapped, weights, places, by_lanes)
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
    sizes: Pair,
    weight: Weight,
    strides: _Strides,
    places: Sequence[int],
    by_lanes: Sequence[bool],
) -> None:
    """Convolve images that have `sizes` without padding and are `padded`."""
    w = code.parameters["y"]
    (rows, columns), (height, width) = windows.counts, padded
    numbers = windows.channels * height * width
    images = _Images(code.parameters["x"], len(places), by_lanes[0]).pad(numbers, places)
    out = _Images(code.parameters["out"], weight.outputs * rows * columns, by_lanes[2])
    (sh, sw), (dh, dw) = windows.stride, windows.dilation
    outputs, inputs = weight.outputs_of_group, weight.inputs
    block, beside = _block_sizes(outputs, columns, code.lanes)

    def sums(tile: _Tile, results: _Tile, group: Value, o: Value, count: int, y: Value, x: Value, n: int) -> None:
        totals = [[Variable(code, code.zeros) for _ in range(n)] for _ in range(count)]
        kernel_rows = _inside(code, windows, 0, sizes[0], y, 1)
        kernel_columns = _inside(code, windows, 1, sizes[1], x, n)
        with code.loop(0, inputs) as c, code.loop(*kernel_rows) as i, code.loop(*kernel_columns) as j:
            row = ((group * inputs + c) * height + y * sh + i * dh) * width + j * dw
            values = [tile.load(row + (x + k) * sw) for k in range(n)]
            at = group * strides.group + o * strides.output + c * strides.input
            at = at + i * strides.y + j * strides.x + strides.begin
            for k, some in enumerate(totals):
                factor = code.broadcast(code.load(FLOAT, w, (at + k * strides.output) * FLOAT_BYTES, 4))
                for value, total in zip(values, some, strict=True):
                    total.value = code.fma(factor, value, total.value)
        for k, some in enumerate(totals):
            begin = ((group * outputs + o + k) * rows + y) * columns + x
            for m, total in enumerate(some):
                results.store(total.value, begin + m)

    with _each_tile(code) as (image, count):
        tile = images.read(image, count)
        with out.write(image, count) as results, code.loop(0, weight.groups) as group:
            _blocks(
                code, outputs, block,
                lambda o, a: _in_rows(code, rows, lambda y: _blocks(
                    code, columns, beside, lambda x, b: sums(tile, results, group, o, a, y, x, b))),
            )  # fmt: skip


def _inside(code: Code, windows: Windows, axis: int, size: int, first: Value, count: int) -> tuple[Operand, Operand]:
    """The elements along an axis of the kernel that are not padding for all of `count` windows from `first` on."""
    kernel = windows.kernel[axis]
    if windows.dilation[axis] > 1:
        return 0, kernel
    stride, before = windows.stride[axis], windows.before[axis]
    low = code.value(before) - (first + (count - 1)) * stride
    return code.most(low, 0), code.least(code.value(before + size) - first * stride, kernel)


def _in_rows(code: Code, rows: int, body: Callable[[Value], None]) -> None:
    with code.loop(0, rows) as y:
        body(y)


def weight_code(name: str, windows: Windows, weight: Weight, lanes: int, by_lanes: Sequence[bool]) -> Code:
    """The gradient with respect to the weight, of images and what arrives, summed over each tile."""
    code = _arrays(name, lanes, 2)
    (rows, columns), (height, width), (kernel_rows, kernel_columns) = windows.counts, windows.padded, weight.kernel
    places = windows.places()
    images = _Images(code.parameters["x"], len(places), by_lanes[0]).pad(windows.numbers, places)
    arriving = _Images(code.parameters["y"], weight.outputs * rows * columns, by_lanes[1])
    (sh, sw), (dh, dw) = windows.stride, windows.dilation
    outputs, inputs = weight.outputs_of_group, weight.inputs
    block, beside = _block_sizes(outputs, kernel_columns, lanes)

    with _each_tile(code) as (image, count):
        tile, slopes = images.read(image, count), arriving.read(image, count)
        for each in (tile, slopes):
            each.clear_after(count)
        sums = _sums_of_tile(code, image, weight.outputs * weight.of_output)

        def products(group: Value, o: Value, some: int, c: Value, i: Value, j: Value, m: int) -> None:
            totals = [[Variable(code, code.zeros) for _ in range(m)] for _ in range(some)]
            with code.loop(0, rows) as row, code.loop(0, columns) as column:
                begin = ((group * inputs + c) * height + row * sh + i * dh) * width + (column * sw + j * dw)
                values = [tile.load(begin + k * dw) for k in range(m)]
                for k, each in enumerate(totals):
                    slope = slopes.load(((group * outputs + o + k) * rows + row) * columns + column)
                    for value, total in zip(values, each, strict=True):
                        total.value = code.fma(slope, value, total.value)
            for k, each in enumerate(totals):
                at = (((group * outputs + o + k) * inputs + c) * kernel_rows + i) * kernel_columns + j
                for place, total in enumerate(each):
                    code.store(code.total(total.value), sums, (at + place) * FLOAT_BYTES, 4)

        def add(group: Value, o: Value, some: int) -> None:
            with code.loop(0, inputs) as c, code.loop(0, kernel_rows) as i:
                _blocks(code, kernel_columns, beside, lambda j, m: products(group, o, some, c, i, j, m))

        with code.loop(0, weight.groups) as group:
            _blocks(code, outputs, block, lambda o, some: add(group, o, some))
    return code


def _sums_of_tile(code: Code, image: Value, numbers: int) -> Value:
    """Where the sums over a tile are written, so many for each."""
    tile = Value(code, code.builder.udiv(image.ir, INT(code.lanes)))
    return code.at(code.parameters["out"], tile * (numbers * FLOAT_BYTES))


def sums_code(name: str, windows: Windows, weight: None, lanes: int, by_lanes: Sequence[bool]) -> Code:
    """The sum of each channel over a tile."""
    code = _arrays(name, lanes, 1)
    rows, columns = windows.sizes
    images = _Images(code.parameters["x"], windows.numbers, by_lanes[0])
    with _each_tile(code) as (image, count):
        tile = images.read(image, count)
        tile.clear_after(count)
        sums = _sums_of_tile(code, image, windows.channels)
        with code.loop(0, windows.channels) as c:
            totals = [Variable(code, code.zeros) for _ in range(min(columns, 8))]

            def add(c: Value, y: Value, x: Value, n: int) -> None:
                for k, total in enumerate(totals[:n]):
                    total.value = total.value + tile.load((c * rows + y) * columns + x + k)

            with code.loop(0, rows) as y:
                _blocks(code, columns, len(totals), lambda x, n: add(c, y, x, n))
            total_of_columns = totals[0].value
            for total in totals[1:]:
                total_of_columns = total_of_columns + total.value
            code.store(code.total(total_of_columns), sums, c * FLOAT_BYTES, 4)
    return code


# Pooling


def largest_code(name: str, windows: Windows, weight: None, lanes: int, by_lanes: Sequence[bool]) -> Code:
    """The largest number in each window."""
    code = _arrays(name, lanes, 1)
    places = windows.places()
    images = _Images(code.parameters["x"], len(places), by_lanes[0]).pad(windows.numbers, places, float("-inf"))
    out = _Images(code.parameters["out"], windows.channels * windows.counts[0] * windows.counts[1], by_lanes[1])
    with _each_tile(code) as (image, count):
        tile = images.read(image, count)
        with out.write(image, count) as results, _each_window(code, windows) as (window, place):
            results.store(_largest(code, tile, window), place)
    return code


def scatter_code(name: str, windows: Windows, weight: None, lanes: int, by_lanes: Sequence[bool]) -> Code:
    """What arrives at each window, at the first of the largest numbers of images, which have no padding."""
    code = _arrays(name, lanes, 2)
    arriving = _Images(code.parameters["x"], windows.channels * windows.counts[0] * windows.counts[1], by_lanes[0])
    images = _Images(code.parameters["y"], windows.numbers, by_lanes[1])
    out = _Images(code.parameters["out"], windows.numbers, by_lanes[2])
    are_apart = all(windows.stride[a] >= windows.kernel[a] for a in (0, 1))
    cover = windows.stride == windows.kernel and all(
        windows.counts[a] * windows.stride[a] == windows.sizes[a] for a in (0, 1)
    )
    with _each_tile(code) as (image, count):
        slopes, tile = arriving.read(image, count), images.read(image, count)
        with out.write(image, count) as results:
            if not cover:
                results.fill(0.0)
            with _each_window(code, windows) as (window, place):
                largest, slope = _largest(code, tile, window), slopes.load(place)
                for element in window:
                    is_first = code.is_same(tile.load(element), largest)
                    part = code.select(is_first, slope, code.zeros)
                    results.store(part if are_apart else results.load(element) + part, element)
                    slope = code.select(is_first, code.zeros, slope)
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
    largest, *others = map(tile.load, window)
    for other in others:
        largest = code.select(code.is_greater(other, largest), other, largest)
    return largest


# Functions for generated source

CODE: dict[str, Callable[..., Code]] = {
    "convolution": convolution_code,
    "input": input_code,
    "weight": weight_code,
    "sums": sums_code,
    "largest": largest_code,
    "scatter": scatter_code,
}


def over_images(kind: str, windows: Windows, weight: Weight | None, by_lanes: tuple[bool, ...]) -> VectorFunction:
    """The function of one or two arrays, images `first` to `last`, and the array to fill."""
    digest = hashlib.sha256(repr((windows, weight, by_lanes)).encode()).hexdigest()[:16]
    sizes = "x".join(map(str, (windows.channels, *windows.sizes)))
    return VectorFunction(f"{kind}_{sizes}_{digest}", CODE[kind], (windows, weight, lanes_of_machine(), by_lanes))
