"""Symbolic shapes: every size is a number or an expression in n, the number of rows of the batch.

All open sizes of fed variables are assumed to be n, and shapes are inferred symbolically. A shape that inference cannot
tell without the number leaves the Program to the reference engine.

The number of rows that a user's function returns or a mask selects is assumed to be n too, and compared when the
operator has run. No pass may rely on it: see `infer_shapes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from app.engine.compiled.vectors import lanes_of_machine
from app.errors import AppError
from app.graph.passes.rewrite import as_program
from app.graph.program import Operator, Program
from app.ops.lowering import Choice, Fused, Loop, LoopGradient
from app.ops.size import AnySize, Shape, Size, named_size, quotient
from app.ops.spec import UNKNOWN, Spec

N = named_size("n")


def tiles(images: AnySize) -> AnySize:
    """Return the number of tiles of so many images, with as many images in each as a vector has lanes."""
    return quotient(images + (lanes_of_machine() - 1), lanes_of_machine())


@lru_cache(maxsize=4096)
def at(size: AnySize, n: int) -> int:
    """Return a size in a batch of n rows."""
    return size.at(n=n) if isinstance(size, Size) else size


class UnknownSizeError(AppError):
    """A shape that does not follow from the batch size; the Program is then left to the reference engine."""


def shapes_of(program: Program, input_shapes: Mapping[str, Shape] | None = None) -> dict[str, Shape]:
    """Return the shape of every variable, in terms of the batch; `input_shapes` has those of the inputs of a body."""
    return infer_shapes(program, input_shapes)[0]


def infer_shapes(
    program: Program, input_shapes: Mapping[str, Shape] | None = None
) -> tuple[dict[str, Shape], Sequence[Operator]]:
    """Return the shape of every variable, and the operators that have an output of a size that is assumed to be n: it
    depends on values, or on what a user's function returns. Control flow is one if an operator inside is.
    """
    inferred = _Inference(program, input_shapes or {})
    _check_batch_in_front(program, inferred.shapes)
    return inferred.shapes, inferred.assumed


def shapes_inside(op: Operator, shapes: Mapping[str, Shape], body: str) -> dict[str, Shape]:
    """Infer the shapes of a body's variables from its operator's inputs."""
    return shapes_of(as_program(op.bodies[body]), body_input_shapes(op, shapes, body))


def body_input_shapes(op: Operator, shapes: Mapping[str, Shape], body: str) -> dict[str, Shape]:
    """Return the shapes of a body's inputs."""
    inputs = op.inputs[op.definition.lowering.first :]
    return {name: shapes[str(outer)] for name, outer in zip(op.bodies[body].inputs, inputs, strict=False)}


def _check_batch_in_front(program: Program, shapes: Mapping[str, Shape]) -> None:
    """Refuse unknown sizes after the first axis, and custom operators on values that are not batches."""
    block = program.global_block()
    for op in block.ops:
        outputs = [block.var(name) for name in op.outputs if UNKNOWN in block.var(name).shape]
        if op.bodies or not outputs:
            continue
        for variable in outputs:
            if UNKNOWN in variable.shape[1:]:
                shape = list(variable.shape)
                raise UnknownSizeError(f"{variable.name} has an unknown size after its first axis: {shape}")
        if _is_declared(op):
            leading = [shapes[n][0] for n in op.inputs if n and shapes[n][:1]]
            if any(isinstance(size, Size) and size != N for size in leading):
                raise UnknownSizeError(f"{outputs[0].name} comes from values with other sizes than the batch's")


def _is_declared(op: Operator) -> bool:
    """Whether a user declared the shapes of the outputs."""
    return op.definition.custom and not op.definition.broadcasts


def _with_batch(shape: Sequence[AnySize]) -> Shape:
    return tuple(N if size == UNKNOWN else size for size in shape)


class _Inference:
    """The shapes of a Program's variables, found operator by operator."""

    def __init__(self, program: Program, input_shapes: Mapping[str, Shape]):
        self._block = program.global_block()
        self.assumed: list[Operator] = []
        self.shapes: dict[str, Shape] = {}
        for name, variable in self._block.vars.items():
            if variable.persistable and UNKNOWN in variable.shape:
                raise UnknownSizeError(f"{name} persists, and has an unknown size: {list(variable.shape)}")
            if variable.is_data or variable.persistable:
                self.shapes[name] = input_shapes.get(name) or _with_batch(variable.shape)
        for op in self._block.ops:
            for read in op.inputs:
                if read is not None and read not in self.shapes:
                    raise UnknownSizeError(f"nothing computes {read}")
            for output, shape in zip(op.outputs, self._of(op), strict=True):
                if self.shapes.setdefault(output, shape) != shape:
                    raise UnknownSizeError(f"{output} is written more than once, in shapes that may differ")

    def _of(self, op: Operator) -> Sequence[Shape]:
        lowering = op.definition.lowering
        if op.bodies:
            return self._shapes_of_bodies(op)
        if isinstance(lowering, Fused):  # it knows only the declared shapes of its outputs
            inside, assumed = dict(self.shapes), len(self.assumed)
            for member in lowering.body:
                inside.update(zip(member.outputs, self._inferred(member, inside, lowering.dtypes), strict=True))
            del self.assumed[assumed:]  # a compiled loop gives the shape that is assumed
            return [inside[name] for name in op.outputs]
        variables = [self._block.var(name) for name in (*op.inputs, *op.outputs) if name is not None]
        if not any(UNKNOWN in v.shape for v in variables):
            return [_with_batch(self._block.var(name).shape) for name in op.outputs]
        if _is_declared(op):
            return self._with_assumed(op, [self._block.var(name).shape for name in op.outputs])
        return self._inferred(op, self.shapes, {})

    def _with_assumed(self, op: Operator, shapes: Sequence[Shape]) -> Sequence[Shape]:
        if any(UNKNOWN in shape for shape in shapes):
            self.assumed.append(op)
        return [_with_batch(shape) for shape in shapes]

    def _inferred(self, op: Operator, shapes: Mapping[str, Shape], dtypes: Mapping[str, str]) -> Sequence[Shape]:
        specs = [
            None if name is None else Spec(shapes[name], dtypes.get(name) or self._block.var(name).dtype)
            for name in op.inputs
        ]
        try:
            result = op.definition.infer_outputs(specs, op.attributes)
        except AppError as error:
            raise UnknownSizeError(f"in a batch of n, {error}") from error
        return self._with_assumed(op, [spec.shape for spec in result])

    def _shapes_of_bodies(self, op: Operator) -> list[Shape]:
        """The shapes of what control flow gives."""
        lowering = op.definition.lowering
        inside = {}
        for name, body in op.bodies.items():
            inferred = _Inference(as_program(body), body_input_shapes(op, self.shapes, name))
            inside[name] = inferred.shapes
            self.assumed += [op] * bool(inferred.assumed)
        if isinstance(lowering, Choice):
            sides = [[inside[name][output] for output in body.outputs] for name, body in op.bodies.items()]
            for name, one, other in zip(op.outputs, *sides, strict=True):
                if one != other:
                    raise UnknownSizeError(f"the shape of {name} depends on its condition")
            return sides[0]
        repeated = [(lowering.body, 0)]
        if isinstance(lowering, LoopGradient):
            gradient = op.bodies[lowering.gradient]
            repeated.append((lowering.gradient, len(gradient.inputs) - len(gradient.outputs)))
        for name, first in repeated:
            body = op.bodies[name]
            for old, new in zip(body.inputs[first:], body.outputs, strict=False):
                if inside[name][old] != inside[name][new]:
                    raise UnknownSizeError(f"{new} may change its shape from one iteration to the next")
        last = repeated[-1][0]
        return [
            *(inside[last][name] for name in op.bodies[last].outputs),
            *([()] if isinstance(lowering, Loop) else []),
        ]
