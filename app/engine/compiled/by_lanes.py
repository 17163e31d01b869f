"""Chooses the images that lie in memory as the lanes of vectors, as steps on them compute (see `convolutions`).

A step on images reads and writes them either way. An elementwise loop does too, if all images that it touches lie the
same way. All other steps need one image after the other.
"""

from __future__ import annotations

from collections.abc import Collection

from app.engine.compiled.kinds.call import CallbackStep
from app.engine.compiled.kinds.convolution import OverImagesStep
from app.engine.compiled.kinds.loop import LoopStep
from app.engine.compiled.kinds.view import AliasStep, CopyStep
from app.engine.compiled.shapes import N, tiles
from app.engine.compiled.steps import ROWS, Lowered, Step
from app.engine.compiled.vectors import lanes_of_machine
from app.ops.lowering import Constant, Spread
from app.ops.size import Shape


def hold_by_lanes(lowered: Lowered, keep: Collection[str]) -> None:
    """Let as many variables as possible lie by lanes, if all steps are compiled."""
    if any(step.in_python for step in lowered.steps):
        return
    _view_vectors(lowered, keep)
    chosen = {n for step in lowered.steps if isinstance(step, OverImagesStep) for n in step.turnable}
    chosen |= {n for step in lowered.steps if isinstance(step, LoopStep) for n in step.op.outputs}
    chosen -= {*keep, *lowered.roots, *lowered.roots.values(), *lowered.constants}
    chosen = {n for n in chosen if _is_of_images(lowered, n)}
    before = None
    while chosen != before:
        before = set(chosen)
        for step in lowered.steps:
            chosen -= _refused(step, chosen)
    for step in lowered.steps:
        step.is_tiled = step.is_tiled or not chosen.isdisjoint(step.op.outputs)
    for name in chosen:
        count, channels, height, width = lowered.shapes[name]
        lowered.shapes[name] = (tiles(count), channels, height * width * lanes_of_machine())
    lowered.by_lanes = chosen


def _is_of_images(lowered: Lowered, name: str) -> bool:
    shape: Shape = lowered.shapes[name]
    has_known_sizes = len(shape) == 4 and shape[0] == N and all(isinstance(size, int) for size in shape[1:])
    return (
        has_known_sizes
        and lowered.dtype(name) == "float32"
        and not lowered.is_data(name)
        and not lowered.persists(name)
    )


def _refused(step: Step, chosen: set[str]) -> set[str]:
    """The chosen variables that a step needs one image after the other."""
    touched = {n for each in step.everything for n in (*each.op.inputs, *each.op.outputs) if n} & chosen
    if not touched or (isinstance(step, OverImagesStep) and touched <= {*step.turnable, *step.op.inputs}):
        return set()
    if not isinstance(step, LoopStep) or step.share != ROWS or len(set(map(step.lowered.shapes.get, touched))) > 1:
        return touched
    lowerings = [op.definition.lowering for op in step.members]
    may_fail = any(isinstance(each, (Spread, Constant)) or getattr(each, "raises", False) for each in lowerings)
    used = {*step.reads, *step.op.outputs} - step.lowered.constants.keys()
    are_of_channels = all(_is_of_channels(step.lowered.shapes[n]) for n in used - chosen)
    return set() if are_of_channels and not may_fail else touched


def _is_of_channels(shape: Shape) -> bool:
    """Whether a value that is broadcast to images has at most one element for each channel."""
    return shape[-2:] in ((), (1,), (1, 1)) and (len(shape) < 4 or shape[0] == 1)


def _changes(step: Step, name: str) -> bool:
    """Whether Python that compiled code calls may change a variable in place."""
    return isinstance(step, CallbackStep) and name in step.op.inputs


def _view_vectors(lowered: Lowered, keep: Collection[str]) -> None:
    """Let a vector that persists, such as a bias, be read under another shape without a copy, unless it changes before
    that is read last."""
    for place, step in enumerate(lowered.steps):
        if not isinstance(step, CopyStep):
            continue
        source, view_name = str(step.op.inputs[0]), step.op.outputs[0]
        later = lowered.steps[place + 1 :]
        readers = [k for k, other in enumerate(later) if view_name in map(lowered.root, filter(None, other.op.inputs))]
        writers = [k for k, other in enumerate(later) if source in other.op.outputs or _changes(other, source)]
        is_vector = lowered.persists(source) and len(lowered.shapes[source]) == 1
        if is_vector and view_name not in keep and max(readers, default=-1) < min(writers, default=len(later)):
            lowered.steps[place] = AliasStep(step.op, lowered)
            lowered.roots[view_name] = source
