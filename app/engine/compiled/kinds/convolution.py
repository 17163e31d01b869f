"""Steps that slide windows over images: convolutions, their gradients, pooling, and sums over images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.engine.compiled import convolutions
from app.engine.compiled.convolutions import MOST_ROOM, Weight, Windows
from app.engine.compiled.kinds.native import NativeStep, NotNativeError
from app.engine.compiled.language import COUNT, Extent, Number
from app.engine.compiled.shapes import N
from app.engine.compiled.steps import ROWS, Lowered, Step
from app.engine.compiled.vectors import lanes_of_machine
from app.engine.compiled.writer import Writer
from app.graph.program import Operator
from app.ops.lowering import Convolution, Pooling, Reduction
from app.ops.windows import padding_along

KINDS = {"y": "convolution", "x": "input", "max": "largest", "scatter": "scatter"}
"""What a function does, by the derivative that a convolution is, or by what pooling does."""


class OverImagesStep(NativeStep):
    """Makes images of images, each of its own, or sums over tiles of as many images as a vector has lanes."""

    begins_part = True
    is_tiled = True

    def __init__(self, op: Operator, lowered: Lowered, kind: str, windows: Windows, weight: Weight | None):
        super().__init__(op, lowered, f"compiled: {lanes_of_machine()} images at once", ROWS)
        self._kind, self._windows, self._weight = kind, windows, weight

    @property
    def turnable(self) -> list[str]:
        """The variables that may hold their images by lanes."""
        inputs = self.reads[:1] if self._kind in ("convolution", "input") else self.reads
        return inputs if self._kind in ("weight", "sums") else [*inputs, *self.op.outputs]

    def keeps_to_share(self, name: str) -> bool:
        return name in self.turnable

    def operations(self, n: int) -> int:
        windows, weight = self._windows, self._weight
        places = windows.counts[0] * windows.counts[1]
        if weight is None:
            return n * windows.channels * places * windows.kernel[0] * windows.kernel[1]
        return n * weight.outputs * places * weight.of_output

    def write(self, out: Writer) -> None:
        arrays = [*self.reads, *self.op.outputs]
        by_lanes = tuple(name in self.lowered.by_lanes for name in arrays)
        function = convolutions.over_images(self._kind, self._windows, self._weight, by_lanes)
        *values, result = map(out.array, arrays)
        bounds = out.bounds(self) if self.share == ROWS else (Number(0, COUNT), Extent(N))
        out.do(out.called(function, function.name), *values, *bounds, result)


def lower_convolution(op: Operator, lowered: Lowered) -> Step:
    """The step of a convolution, or of its gradient with respect to the images."""
    lowering: Convolution = op.definition.lowering
    if lowering.gives == "weight":
        raise NotNativeError("its sums over tiles of images are not compiled")
    return OverImagesStep(op, lowered, KINDS[lowering.gives], *_windows_of_convolution(op, lowering, lowered))


def lower_sums_of_tiles(op: Operator, lowered: Lowered) -> Step:
    """The step that sums over each tile of images."""
    return OverImagesStep(op, lowered, *tiles_of(op, op.definition.lowering.of, lowered))


def tiles_of(op: Operator, lowering: Any, lowered: Lowered) -> tuple[str, Windows, Weight | None]:
    """What sums over each tile for an operator that sums over a batch of images. It raises `NotNativeError` for any
    other operator."""
    if isinstance(lowering, Convolution) and lowering.gives == "weight":
        return "weight", *_windows_of_convolution(op, lowering, lowered)
    if not isinstance(lowering, Reduction) or lowering.combine is not None or lowering.mean or len(op.inputs) != 1:
        raise NotNativeError("it is not a sum over a batch of images")
    x = str(op.inputs[0])
    _require_single_precision(op, lowered)
    shape = lowered.shapes[x]
    if len(shape) != 4 or set(lowering.axes(op.attributes, [shape])) != {0, 2, 3}:
        raise NotNativeError("it is not a sum over each channel of images")
    channels, *sizes = _sizes(lowered, x)
    windows = Windows(channels, _pair(sizes), _pair(sizes), (1, 1), (1, 1), (0, 0))
    _require_room("sums", windows, None)
    return "sums", windows, None


def _windows_of_convolution(op: Operator, lowering: Convolution, lowered: Lowered) -> tuple[Windows, Weight]:
    one, other, output = str(op.inputs[0]), str(op.inputs[1]), op.outputs[0]
    like = str(op.inputs[-1])  # of the output's shape, for a gradient
    x, weight, y = {"y": (one, other, output), "x": (like, other, one), "weight": (one, like, other)}[lowering.gives]
    _require_single_precision(op, lowered)
    (channels, *sizes), counts = _sizes(lowered, x), _sizes(lowered, y)[1:]
    outputs, inputs, *last = lowered.shapes[weight]
    kernel, settings = _pair(last), op.attributes
    stride, dilation, groups = settings["stride"], settings["dilation"], settings["groups"]
    before = [padding_along(settings["padding"], a, sizes[a], kernel[a], stride[a], dilation[a])[0] for a in (0, 1)]
    windows = Windows(channels, _pair(sizes), _pair(counts), kernel, stride, _pair(before), dilation)
    of = Weight(int(outputs), int(inputs), groups, kernel)
    if lowering.gives == "x" and not convolutions.has_input_code(windows):
        raise NotNativeError("its windows reach over more padding than they have elements")
    _require_room(KINDS.get(lowering.gives, lowering.gives), windows, of)
    return windows, of


def lower_pooling(op: Operator, lowered: Lowered) -> Step:
    """The step of pooling by the largest number, or of the way back."""
    lowering: Pooling = op.definition.lowering
    settings = op.attributes
    _require_single_precision(op, lowered)
    ends = str(op.inputs[0]), op.outputs[0]
    x, y = ends if lowering.does == "max" else reversed(ends)
    (channels, *sizes), counts = _sizes(lowered, x), _sizes(lowered, y)[1:]
    kernel, stride = settings["kernel"], settings["stride"]
    before = [padding_along(settings["padding"], a, sizes[a], kernel[a], stride[a])[0] for a in (0, 1)]
    windows = Windows(channels, _pair(sizes), _pair(counts), _pair(kernel), stride, _pair(before))
    if lowering.does == "scatter" and windows.padded != windows.sizes:
        raise NotNativeError("the gradient of windows with padding is not compiled")
    _require_room(KINDS[lowering.does], windows, None)
    return OverImagesStep(op, lowered, KINDS[lowering.does], windows, None)


def _require_single_precision(op: Operator, lowered: Lowered) -> None:
    if lowered.dtype(op.outputs[0]) != "float32":
        raise NotNativeError("only single precision is compiled")


def _require_room(kind: str, windows: Windows, weight: Weight | None) -> None:
    if convolutions.room_of(kind, windows, weight, lanes_of_machine()) > MOST_ROOM:
        raise NotNativeError(f"{lanes_of_machine()} of its images take more than {MOST_ROOM >> 20} MiB")


def _sizes(lowered: Lowered, name: str) -> Sequence[int]:
    """The sizes of each of a batch of images, which have to be known."""
    shape = lowered.shapes[name][1:]
    known_sizes = [size for size in shape if isinstance(size, int)]
    if not lowered.has_batch_in_front(name) or len(known_sizes) < len(shape):
        raise NotNativeError("its images are not a batch of images of a known size")
    return known_sizes


def _pair(sizes: Sequence[Any]) -> tuple[int, int]:
    height, width = sizes
    return int(height), int(width)
