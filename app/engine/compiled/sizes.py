"""Shapes in terms of the batch: every size of every variable as a number, or as a multiple of the batch size n."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from app.errors import AppError
from app.graph.program import Operator, Program, Variable
from app.ops.spec import UNKNOWN, Spec

_PROBES = (97, 101, 1)
"""Batch sizes: from the shapes that inference gives for two, it is read how a shape grows; the third must agree."""


class Size(NamedTuple):
    """`times * n + plus`, where n is the size of the batch."""

    times: int
    plus: int

    def at(self, n: int) -> int:
        return self.times * n + self.plus

    @property
    def text(self) -> str:
        """The size as it stands in generated source."""
        if not self.times:
            return str(self.plus)
        product = "n" if self.times == 1 else f"{self.times} * n"
        return f"{product} + {self.plus}" if self.plus else product


N = Size(1, 0)
Shape = tuple[Size, ...]


class UnknownSizeError(AppError):
    """A shape that does not follow from the batch size; the Program is then left to the reference engine."""


def shapes_of(program: Program) -> dict[str, Shape]:
    """The shape of every variable. All unknown sizes of the data are taken to be one and the same n."""
    block = program.global_block()
    shapes = {name: tuple(map(_known, v.shape)) for name, v in block.vars.items() if v.is_data or v.persistable}
    for op in block.ops:
        for name in op.inputs:
            if name is not None and name not in shapes:
                raise UnknownSizeError(f"nothing computes {name}")
        for name, shape in zip(op.outputs, _output_shapes(program, op, shapes), strict=True):
            shapes.setdefault(name, shape)
    return shapes


def _known(size: int) -> Size:
    return N if size == UNKNOWN else Size(0, size)


def _output_shapes(program: Program, op: Operator, shapes: dict[str, Shape]) -> Sequence[Shape]:
    variables = [program.global_block().var(name) for name in op.outputs]
    if not any(UNKNOWN in v.shape for v in variables):
        return [tuple(map(_known, v.shape)) for v in variables]
    if (op.definition.where and not op.definition.broadcasts) or any(UNKNOWN in v.shape[1:] for v in variables):
        return [_leading(v, {shapes[n][0] for n in op.inputs if n and shapes[n][:1]}) for v in variables]
    probed = [_inferred(program, op, shapes, n) for n in _PROBES]
    return [_joined(op, *(spec.shape for spec in specs)) for specs in zip(*probed, strict=True)]


def _leading(variable: Variable, given: set[Size]) -> Shape:
    """The shape that a user declared: an unknown size in front is the batch, if inputs have no other in front."""
    if any(size.times and size != N for size in given):
        raise UnknownSizeError(f"{variable.name} comes from values with other sizes than the batch's")
    if UNKNOWN in variable.shape[1:]:
        raise UnknownSizeError(f"{variable.name} has an unknown size after its first axis: {list(variable.shape)}")
    return tuple(map(_known, variable.shape))


def _inferred(program: Program, op: Operator, shapes: dict[str, Shape], n: int) -> Sequence[Spec]:
    block = program.global_block()
    specs = [
        None if name is None else Spec(tuple(s.at(n) for s in shapes[name]), block.var(name).dtype)
        for name in op.inputs
    ]
    try:
        result = op.definition.infer_outputs(specs, op.attributes)
    except AppError as error:
        raise UnknownSizeError(f"in a batch of {n}, {error}") from error
    if any(UNKNOWN in spec.shape for spec in result):  # a fused operator knows its Specs, not how they came about
        return [Spec(tuple(n if s == UNKNOWN else s for s in spec.shape), spec.dtype) for spec in result]
    return result


def _joined(op: Operator, *probed: Sequence[int]) -> Shape:
    sizes = []
    for a, b, one in zip(*probed, strict=True):
        times, rest = divmod(b - a, _PROBES[1] - _PROBES[0])
        if rest or Size(times, a - times * _PROBES[0]).at(_PROBES[2]) != one:
            raise UnknownSizeError(f"the shape of {op.outputs[0]} does not grow evenly with the batch")
        sizes.append(Size(times, a - times * _PROBES[0]))
    return tuple(sizes)
