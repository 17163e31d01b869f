"""The passes that bring a Program into the form that is lowered: this engine's own, and the general ones."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from app.engine.compiled.kinds.convolution import tiles_of
from app.engine.compiled.kinds.native import NotNativeError
from app.engine.compiled.lower import why_python
from app.engine.compiled.shapes import body_input_shapes, infer_shapes, shapes_of, tiles
from app.engine.compiled.steps import Lowered
from app.engine.compiled.trial import why_not
from app.engine.compiled.vectors import lanes_of_machine
from app.graph.passes import Pass
from app.graph.passes.dead_code import dead_code
from app.graph.passes.fusion import fusion
from app.graph.passes.rewrite import inside_too, rewritten, with_operators
from app.graph.passes.sparse_bytes import sparse_bytes
from app.graph.passes.steps import steps
from app.graph.passes.unchanged import unchanged
from app.graph.program import Operator, Program
from app.ops.creation import assign
from app.ops.definition import OpDef
from app.ops.lowering import Convolution, Elementwise, Reduction, SumsOfTiles
from app.ops.reduction import sum_
from app.ops.size import Shape
from app.ops.spec import UNKNOWN, Spec
from app.ops.values import Array


def _knowing_shapes(rewrite: Callable[[Program, Collection[str], Lowered], Program]) -> Callable[..., Program]:
    """Make a pass that applies `rewrite`, which needs the shapes of variables, to a Program and its bodies."""

    def everywhere(program: Program, keep: Collection[str], input_shapes: Mapping[str, Shape] | None = None) -> Program:
        lowered = Lowered(program, shapes_of(program, input_shapes))
        block = rewrite(program, keep, lowered).global_block()

        def inside(op: Operator) -> Operator:
            return rewritten(
                op, lambda name, body, outputs: everywhere(body, outputs, body_input_shapes(op, lowered.shapes, name))
            )

        return with_operators(block.program, list(map(inside, block.ops)), block.vars)

    return everywhere


# Shape-only inputs


def drop_shape_only_inputs(
    program: Program, keep: Collection[str] = (), input_shapes: Mapping[str, Shape] | None = None
) -> Program:
    """Drop inputs of which only the shape is used if another input has that shape. A gradient then keeps fewer values
    alive. A sum to the shape that a value already has becomes a copy.

    The Program stays as it is if a size that is assumed may be another one: compiled code stops where a user's function
    returns another shape than declared, but a Python call does not, and any operator in control flow may be one.
    """
    shapes, assumed = infer_shapes(program, input_shapes)
    lowered = Lowered(program, shapes)
    if any(op.bodies or why_python(op, lowered, why_not) for op in assumed):
        return program
    block = program.global_block()

    def kind(name: str | None) -> tuple[Shape, str] | None:
        return None if name is None else (shapes[name], block.var(name).dtype)

    def changed(op: Operator) -> Operator:
        lowering = op.definition.lowering
        if op.bodies:
            return rewritten(
                op, lambda name, body, places: drop_shape_only_inputs(body, places, body_input_shapes(op, shapes, name))
            )
        if isinstance(lowering, Reduction) and len(op.inputs) > 1 and len(set(map(kind, op.inputs))) == 1:
            return Operator(assign, [op.inputs[i] for i in lowering.takes], op.outputs, {}, op.role)
        if not isinstance(lowering, Elementwise) or lowering.takes is None:
            return op
        alike = {kind(op.inputs[place]): place for place in lowering.takes}
        stands = [i if i in lowering.takes else alike.get(kind(name), i) for i, name in enumerate(op.inputs)]
        places = sorted(set(stands))
        return op if len(places) == len(stands) else _of_fewer(op, lowering, places, [places.index(i) for i in stands])

    return with_operators(program, [changed(op) for op in block.ops], block.vars)


def _of_fewer(op: Operator, lowering: Elementwise, places: Sequence[int], stands: Sequence[int]) -> Operator:
    """Return the operator with the kept inputs: `stands` maps each original input to one of them."""
    definition = copy.copy(op.definition)
    definition.inputs = tuple(op.definition.inputs[i] for i in places)
    definition.kernel = _with_inputs(op.definition.kernel, stands)
    definition.infer = _with_inputs(op.definition.infer, stands)
    definition.lowering = replace(lowering, takes=tuple(stands[i] for i in lowering.takes or ()))
    return Operator(definition, [op.inputs[i] for i in places], op.outputs, op.attributes, op.role)


def _with_inputs(function: Callable[..., Any], stands: Sequence[int]) -> Callable[..., Any]:
    return lambda *values, **settings: function(*(values[i] for i in stands), **settings)


# Functions on arrays


@_knowing_shapes
def inline_array_functions(program: Program, keep: Collection[str], lowered: Lowered) -> Program:
    """Compile users' functions on arrays in the best form that they have: on single numbers, inside a loop, if all
    arrays have one shape; as loops, if they are NumPy's operations on whole arrays. For others the engine reports the
    reason."""

    def inlined(op: Operator) -> Operator:
        if not op.definition.custom or None in op.inputs:
            return op
        inputs, results = (
            [Spec(lowered.shapes[str(name)], lowered.dtype(str(name))) for name in names]
            for names in (op.inputs, op.outputs)
        )
        for lowering in op.definition.lowerings_for(inputs, results, op.attributes):
            if isinstance(lowering, Elementwise) and not lowered.is_uniform(op):
                continue
            definition = copy.copy(op.definition)
            definition.lowering = lowering
            other = Operator(definition, op.inputs, op.outputs, op.attributes, op.role)
            if not why_python(other, lowered, why_not):
                return other
        return op

    block = program.global_block()
    return with_operators(program, [inlined(op) for op in block.ops], block.vars)


# Sums over a batch of images


@_knowing_shapes
def sum_by_tiles(program: Program, keep: Collection[str], lowered: Lowered) -> Program:
    """Sum over a batch of images, as gradients of weights and biases do, in two operators: over tiles of as many images
    as a vector has lanes, of which each thread does some, and then over the tiles, in the same order for any threads.
    """
    operators: list[Operator] = []
    added: dict[str, Spec] = {}
    block = program.global_block()
    for op in block.ops:
        try:
            tiles_of(op, op.definition.lowering, lowered)
        except NotNativeError:
            operators.append(op)
            continue
        definition, sums = _of_tiles(op), lowered.unused(f"{op.outputs[0]}.tiles")
        (added[sums],) = definition.infer_outputs([block.var(str(n)).spec for n in op.inputs], op.attributes)
        operators.append(Operator(definition, op.inputs, [sums], op.attributes, op.role))
        if isinstance(op.definition.lowering, Convolution):
            of_all = {**sum_.attributes, "axis": (0,)}
            operators.append(Operator(sum_, [sums], op.outputs, of_all, op.role))
        else:
            operators.append(Operator(op.definition, [sums], op.outputs, op.attributes, op.role))
    changed = with_operators(program, operators, keep)
    for name, spec in added.items():
        changed.global_block().create_var(name, spec.shape, spec.dtype, stop_gradient=True)
    return changed


def _of_tiles(op: Operator) -> OpDef:
    """The operator for each tile of a batch: its results in a new first axis, or in that of the channels' sums."""
    whole, definition = op.definition, copy.copy(op.definition)
    lowering: Convolution | Reduction = whole.lowering
    of_weight = isinstance(lowering, Convolution)

    def infer(x: Spec, *others: Spec, **settings: Any) -> Spec:
        (result,) = whole.infer_outputs([x, *others], settings)
        rest = result.shape if of_weight else (x.shape[1], 1, 1)
        return Spec((UNKNOWN if x.shape[0] == UNKNOWN else tiles(x.shape[0]), *rest), result.dtype)

    def kernel(*arrays: Array, **settings: Any) -> Any:
        parts: list[Any] = []
        for first in range(0, len(arrays[0]), lanes_of_machine()):
            rows = slice(first, first + lanes_of_machine())
            some = [array[rows] if place in lowering.takes else array for place, array in enumerate(arrays)]
            parts.append(whole.kernel(*some, **settings) if of_weight else some[0].sum((0, 2, 3)).reshape(-1, 1, 1))
        return np.stack(parts)

    definition.name, definition.infer, definition.kernel = f"{whole.name}_of_tiles", infer, kernel
    definition.lowering = SumsOfTiles(lowering)
    return definition


# Fusion


@_knowing_shapes
def _fuse(program: Program, keep: Collection[str], lowered: Lowered) -> Program:
    """Fuse elementwise operators of provably equal shape, except those that must run as Python calls."""
    return fusion(program, keep, lambda op: not why_python(op, lowered, why_not), lowered.shapes.__getitem__)


PASSES = (
    Pass("unchanged", inside_too(unchanged)),
    Pass("inline_array_functions", inline_array_functions),
    Pass("drop_shape_only_inputs", drop_shape_only_inputs),
    Pass("dead_code", dead_code),
    Pass("steps", inside_too(steps)),
    Pass("sparse_bytes", sparse_bytes),
    Pass("fusion", _fuse),
    Pass("sum_by_tiles", sum_by_tiles),
)
"""All passes, in order."""


def passes(sparse: bool) -> Sequence[Pass]:
    """Return the passes for sparse or other data."""
    return PASSES if sparse else [each for each in PASSES if each.run is not sparse_bytes]
