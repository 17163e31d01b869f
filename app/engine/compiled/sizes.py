"""Shapes in terms of the batch: every size of every variable as a number, or as a multiple of the batch size n."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from app.errors import AppError
from app.graph.body import Body
from app.graph.passes.bodies import as_program
from app.graph.program import Operator, Program, Variable
from app.ops.form import Loop
from app.ops.spec import UNKNOWN, Spec

_PROBES = (97, 101, 1)
"""Batch sizes: from the shapes that inference gives for two, it is read how a shape grows; the third must agree."""


class Size(NamedTuple):
    """`times * n + plus`, where n is the size of the batch."""

    times: int
    plus: int
    iterations: bool = False
    """Whether it is the number of iterations of a loop instead, which only the run will tell."""

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
ONE = Size(0, 1)
ITERATIONS = Size(0, 1, iterations=True)
Shape = tuple[Size, ...]


class UnknownSizeError(AppError):
    """A shape that does not follow from the batch size; the Program is then left to the reference engine."""


def shapes_of(program: Program, given: Mapping[str, Shape] | None = None) -> dict[str, Shape]:
    """The shape of every variable. All unknown sizes of the data are taken to be one and the same n.

    `given` says the shapes of what a body takes, where the Program is a body.
    """
    block, given = program.global_block(), given or {}
    shapes = {
        name: given.get(name) or tuple(map(_known, v.spec.shape))
        for name, v in block.vars.items()
        if v.is_data or v.persistable
    }
    for op in block.ops:
        for name in op.inputs:
            if name is not None and name not in shapes:
                raise UnknownSizeError(f"nothing computes {name}")
        for name, shape in zip(op.outputs, _output_shapes(program, op, shapes), strict=True):
            shapes.setdefault(name, shape)
    return shapes


def is_kept_of_iterations(shape: Shape) -> bool:
    """Whether a variable of this shape is what a loop keeps: a row for each iteration."""
    return any(size.iterations for size in shape)


def shapes_inside(op: Operator, shapes: Mapping[str, Shape], body: str) -> dict[str, Shape]:
    """The shapes of a body's variables, from those of what its operator takes."""
    inner: Body = op.bodies[body]
    taken = op.inputs[len(op.inputs) - len(inner.inputs) :]
    return shapes_of(as_program(inner), {n: shapes[str(o)] for n, o in zip(inner.inputs, taken, strict=True)})


def _given_by_bodies(op: Operator, shapes: Mapping[str, Shape]) -> list[Shape]:
    """The shapes of what control flow gives."""
    form = op.definition.form
    if isinstance(form, Loop):
        body, inside = op.bodies[form.makes], shapes_inside(op, shapes, form.makes)
        results = op.attributes["results"]
        made = [inside[str(name)] for name in body.outputs]
        for i in range(results):
            if made[i] != inside[body.inputs[i]]:
                raise UnknownSizeError(f"{op.outputs[i]} may change its shape from one iteration to the next")
        return [*made[:results], *((ITERATIONS, *shape) for shape in made[results:])]
    both = [(body.outputs, shapes_inside(op, shapes, name)) for name, body in op.bodies.items()]
    found = [{inside[str(names[i])] for names, inside in both if names[i] is not None} for i in range(len(op.outputs))]
    for name, different in zip(op.outputs, found, strict=True):
        if len(different) > 1:
            raise UnknownSizeError(f"{name} has one shape or another, as its condition says")
    return [next(iter(shapes)) for shapes in found]


def _known(size: int) -> Size:
    return N if size == UNKNOWN else Size(0, size)


def _output_shapes(program: Program, op: Operator, shapes: dict[str, Shape]) -> Sequence[Shape]:
    if op.bodies:
        return _given_by_bodies(op, shapes)
    variables = [program.global_block().var(name) for name in op.outputs]
    if not any(UNKNOWN in v.shape for v in variables):
        return [tuple(map(_known, v.spec.shape)) for v in variables]
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
    return tuple(map(_known, variable.spec.shape))


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
