"""Steps that slide windows over images: convolutions, their gradients, and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.engine.compiled import convolutions
from app.engine.compiled.convolutions import MOST_ROOM, Weight, Windows
from app.engine.compiled.kinds.native import LowerOne, NativeStep, NotNativeError
from app.engine.compiled.steps import WHOLE, Lowered, Share, Step
from app.engine.compiled.vectors import lanes_of_machine
from app.engine.compiled.writer import Writer
from app.graph.program import Operator
from app.ops.lowering import Convolution, Pooling
from app.ops.windows import padding_along

VERDICT = "compiled: {} images at once"
KINDS = {"y": "convolution", "x": "input", "max": "largest", "scatter": "scatter"}
"""What a function does, by the derivative that a convolution is, or by what pooling does."""


class OverImagesStep(NativeStep):
    """Makes images of images, each of its own: a convolution, its gradient by them, or pooling."""

    begins_part = True

    def __init__(self, op: Operator, lowered: Lowered, does: str, windows: Windows, weight: Weight | None):
        super().__init__(op, lowered, VERDICT.format(lanes_of_machine()), lowered.share_of_rows(op))
        self._does, self._windows, self._weight = does, windows, weight

    def _reads_own_rows(self, name: str) -> bool:
        return self._weight is None or name != self.op.inputs[1]

    def operations(self, n: int) -> int:
        return _operations(n, self._windows, self._weight)

    def write(self, out: Writer) -> None:
        kind = KINDS[self._does]
        function = convolutions.over_images(kind, self._windows, self._weight)
        name = out.called(function, convolutions.named(kind, self._windows, self._weight).removeprefix("opsmith_"))
        values = [out.array(x) for x in self.reads]
        out.do(name, *values, *out.bounds(self), out.array(self.op.outputs[0]))


class WeightStep(NativeStep):
    """The gradient of a convolution by its weight, summed over all images: each thread does some output channels."""

    begins_part = True

    def __init__(self, op: Operator, lowered: Lowered, windows: Windows, weight: Weight):
        share: Share = weight.outputs if weight.outputs > 1 else WHOLE
        super().__init__(op, lowered, VERDICT.format(lanes_of_machine()), share)
        self._windows, self._weight = windows, weight

    def operations(self, n: int) -> int:
        return _operations(n, self._windows, self._weight)

    def write(self, out: Writer) -> None:
        function = convolutions.of_weight(self._windows, self._weight)
        name = out.called(function, convolutions.named("weight", self._windows, self._weight).removeprefix("opsmith_"))
        x, y = (out.array(str(each)) for each in self.op.inputs[:2])
        out.do(name, x, y, *out.bounds(self), out.array(self.op.outputs[0]))


def _operations(n: int, windows: Windows, weight: Weight | None) -> int:
    places = windows.counts[0] * windows.counts[1]
    if weight is None:
        return n * windows.channels * places * windows.kernel[0] * windows.kernel[1]
    return n * weight.outputs * places * weight.of_output


def lower_convolution(op: Operator, lowered: Lowered, lower_one: LowerOne) -> Step:
    """The step of a convolution, or of one of its gradients."""
    lowering: Convolution = op.definition.lowering
    one, other, made = str(op.inputs[0]), str(op.inputs[1]), op.outputs[0]
    x, weight, y = {"y": (one, other, made), "x": (made, other, one), "weight": (one, made, other)}[lowering.gives]
    _require_single_precision(op, lowered)
    (channels, *sizes), counts = _known(lowered, x)[1:], _known(lowered, y)[2:]
    outputs, inputs, *last = lowered.shapes[weight]
    kernel, settings = _pair(last), op.attributes
    stride, dilation, groups = settings["stride"], settings["dilation"], settings["groups"]
    before = [padding_along(settings["padding"], a, sizes[a], kernel[a], stride[a], dilation[a])[0] for a in (0, 1)]
    windows = Windows(channels, _pair(sizes), _pair(counts), kernel, stride, _pair(before), dilation)
    of = Weight(int(outputs), int(inputs), groups, kernel)
    if lowering.gives == "x" and not convolutions.has_input_code(windows):
        raise NotNativeError("its windows reach over more padding than they have elements")
    room = convolutions.convolution_room(windows, of, lowering.gives, lanes_of_machine())
    _require_room(room)
    if lowering.gives == "weight":
        return WeightStep(op, lowered, windows, of)
    return OverImagesStep(op, lowered, lowering.gives, windows, of)


def lower_pooling(op: Operator, lowered: Lowered, lower_one: LowerOne) -> Step:
    """The step of pooling by the largest number, or of the way back."""
    lowering: Pooling = op.definition.lowering
    settings = op.attributes
    if lowering.does not in KINDS:
        raise NotNativeError("of pooling, the largest number of windows is compiled, and its gradient")
    if settings["output_size"] is not None:
        raise NotNativeError("windows that divide images into parts are not compiled")
    _require_single_precision(op, lowered)
    ends = str(op.inputs[0]), op.outputs[0]
    x, y = ends if lowering.does == "max" else reversed(ends)
    (channels, *sizes), counts = _known(lowered, x)[1:], _known(lowered, y)[2:]
    kernel, stride = settings["kernel"], settings["stride"]
    before = [padding_along(settings["padding"], a, sizes[a], kernel[a], stride[a])[0] for a in (0, 1)]
    windows = Windows(channels, _pair(sizes), _pair(counts), _pair(kernel), stride, _pair(before))
    if lowering.does == "scatter" and windows.padded != windows.sizes:
        raise NotNativeError("the gradient of windows with padding is not compiled")
    _require_room(convolutions.pooling_room(windows, lanes_of_machine()))
    return OverImagesStep(op, lowered, lowering.does, windows, None)


def _require_single_precision(op: Operator, lowered: Lowered) -> None:
    if lowered.dtype(op.outputs[0]) != "float32":
        raise NotNativeError("only single precision is compiled")


def _require_room(room: int) -> None:
    if room > MOST_ROOM:
        raise NotNativeError(f"{lanes_of_machine()} of its images do not fit into the second-level cache")


def _known(lowered: Lowered, name: str) -> Sequence[int]:
    """The shape of images, whose sizes have to be numbers but for how many images there are."""
    shape = lowered.shapes[name]
    if not lowered.has_batch_in_front(name) or not all(isinstance(size, int) for size in shape[1:]):
        raise NotNativeError("its images are not a batch of images of a known size")
    return shape  # type: ignore[return-value]


def _pair(sizes: Sequence[Any]) -> tuple[int, int]:
    height, width = sizes
    return int(height), int(width)
