"""Symbolic shapes: every size is a number or an expression in n, the number of rows of the batch.

All open sizes of fed variables are assumed to be n, and shapes are inferred symbolically. A shape that inference cannot
tell without the number leaves the Program to the reference engine.

The number of rows that a user's function returns or a mask selects is assumed to be n too, and compared when the
operator has run. No pass may rely on it: see `Shapes.open`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from app.engine.compiled.vectors import lanes_of_machine
from app.errors import AppError
from app.graph.passes.rewrite import as_program
from app.graph.program import Body, Operator, Program
from app.ops.lowering import Fused, Loop
from app.ops.size import AnySize, Shape, Size, named_size, names_of, quotient
from app.ops.spec import UNKNOWN, Spec

N = named_size("n")
ITERATIONS = named_size("iterations")
"""The number of iterations of a loop, known only at run time."""


def tiles(images: AnySize) -> AnySize:
    """Return the number of tiles of so many images, with as many images in each as a vector has lanes."""
    return quotient(images + (lanes_of_machine() - 1), lanes_of_machine())


@lru_cache(maxsize=4096)
def at(size: AnySize, n: int) -> int:
    """Return a size in a batch of n rows; 1 for the number of iterations, whose rows are stored separately."""
    return size.at(n=n, iterations=1) if isinstance(size, Size) else size


class UnknownSizeError(AppError):
    """A shape that does not follow from the batch size; the Program is then left to the reference engine."""


IsInPython = Callable[[Operator, Program, dict[str, Shape]], bool]
"""A function that returns whether an operator, given all shapes, runs as a Python call."""


def always(op: Operator, program: Program, shapes: Mapping[str, Shape]) -> bool:
    """For operators inside control flow, any of which may run in Python."""
    return True


class Shapes(NamedTuple):
    """The shapes of the variables of a Program, or of a body, in terms of the batch."""

    program: Program
    of: dict[str, Shape]
    told_by_run: frozenset[str]
    """Variables with a size that cannot be inferred, assumed to be n."""
    unsure: frozenset[str]
    """For a body: its inputs whose shapes are open in the Program around it."""

    def inside(self, op: Operator, body: str, open_around: frozenset[str]) -> Shapes:
        """The shapes inside a body of one of the operators, given the variables around it whose shapes are open."""
        inner: Body = op.bodies[body]
        taken = zip(inner.inputs, _taken(op, inner), strict=True)
        unsure = frozenset(name for name, outer in taken if outer in open_around)
        return infer_shapes(as_program(inner), _given(op, self.of, body), unsure)

    def open(self, in_python: IsInPython) -> frozenset[str]:
        """The variables whose shapes depend on values or on the results of a user's function.

        Compiled code stops where a user's function returns another shape than declared, so only those that run
        `in_python` count.
        """
        block, found = self.program.global_block(), set(self.unsure)
        for op in block.ops:
            told = not self.told_by_run.isdisjoint(op.outputs) and in_python(op, self.program, self.of)
            inside = (self.inside(op, body, frozenset(found)).open(always) for body in op.bodies)
            if told or not found.isdisjoint(filter(None, op.inputs)) or any(inside):
                found.update(name for name in op.outputs if UNKNOWN in block.var(name).shape)
        return frozenset(found)


def infer_shapes(
    program: Program, given: Mapping[str, Shape] | None = None, unsure: frozenset[str] = frozenset()
) -> Shapes:
    """Infer the shape of every variable; `given` has the shapes of the inputs of a body."""
    inferred = _Inference(program, given or {})
    _check_batch_in_front(program, inferred.shapes)
    return Shapes(program, inferred.shapes, frozenset(inferred.told_by_run), unsure)


def shapes_of(program: Program, given: Mapping[str, Shape] | None = None) -> dict[str, Shape]:
    """Return the shape of every variable, in terms of the batch."""
    return infer_shapes(program, given).of


def is_kept_of_iterations(shape: Shape) -> bool:
    """Return whether a shape is that of a value kept by a loop, with a row per iteration."""
    return any("iterations" in names_of(size) for size in shape)


def shapes_inside(op: Operator, shapes: Mapping[str, Shape], body: str) -> dict[str, Shape]:
    """Infer the shapes of a body's variables from its operator's inputs."""
    return shapes_of(as_program(op.bodies[body]), _given(op, shapes, body))


def _given(op: Operator, shapes: Mapping[str, Shape], body: str) -> dict[str, Shape]:
    inner: Body = op.bodies[body]
    return {name: shapes[str(outer)] for name, outer in zip(inner.inputs, _taken(op, inner), strict=True)}


def _taken(op: Operator, body: Body) -> Sequence[str | None]:
    return op.inputs[len(op.inputs) - len(body.inputs) :]


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

    def __init__(self, program: Program, given: Mapping[str, Shape]):
        self._block = program.global_block()
        self.told_by_run: set[str] = set()
        self.shapes: dict[str, Shape] = {}
        for name, variable in self._block.vars.items():
            if variable.persistable and UNKNOWN in variable.shape:
                raise UnknownSizeError(f"{name} persists, and has an unknown size: {list(variable.shape)}")
            if variable.is_data or variable.persistable:
                self.shapes[name] = given.get(name) or _with_batch(variable.shape)
        for op in self._block.ops:
            for read in op.inputs:
                if read is not None and read not in self.shapes:
                    raise UnknownSizeError(f"nothing computes {read}")
            for made, shape in zip(op.outputs, self._of(op), strict=True):
                if self.shapes.setdefault(made, shape) != shape:
                    raise UnknownSizeError(f"{made} is written more than once, in shapes that may differ")

    def _of(self, op: Operator) -> Sequence[Shape]:
        lowering = op.definition.lowering
        if op.bodies:
            return self._given_by_bodies(op)
        if isinstance(lowering, Fused):  # it knows only the declared shapes of its outputs
            inside = dict(self.shapes)
            for member in lowering.body:
                inside.update(zip(member.outputs, self._inferred(member, inside, lowering.dtypes), strict=True))
            return [inside[name] for name in op.outputs]
        variables = [self._block.var(name) for name in (*op.inputs, *op.outputs) if name is not None]
        if not any(UNKNOWN in v.shape for v in variables):
            return [_with_batch(self._block.var(name).shape) for name in op.outputs]
        if _is_declared(op):
            declared = [self._block.var(name).shape for name in op.outputs]
            self.told_by_run.update(n for n, s in zip(op.outputs, declared, strict=True) if UNKNOWN in s)
            return [_with_batch(shape) for shape in declared]
        return self._inferred(op, self.shapes, {})

    def _inferred(self, op: Operator, shapes: Mapping[str, Shape], dtypes: Mapping[str, str]) -> Sequence[Shape]:
        specs = [
            None if name is None else Spec(shapes[name], dtypes.get(name) or self._block.var(name).dtype)
            for name in op.inputs
        ]
        try:
            result = op.definition.infer_outputs(specs, op.attributes)
        except AppError as error:
            raise UnknownSizeError(f"in a batch of n, {error}") from error
        self.told_by_run.update(n for n, spec in zip(op.outputs, result, strict=True) if UNKNOWN in spec.shape)
        return [_with_batch(spec.shape) for spec in result]

    def _given_by_bodies(self, op: Operator) -> list[Shape]:
        """The shapes of what control flow gives."""
        lowering = op.definition.lowering
        inside = {}
        for name, body in op.bodies.items():
            inside[name] = _Inference(as_program(body), _given(op, self.shapes, name)).shapes
        if isinstance(lowering, Loop):
            made_by, results = op.bodies[lowering.body], op.attributes["results"]
            made = [inside[lowering.body][str(name)] for name in made_by.outputs]
            for i in range(results):
                if made[i] != inside[lowering.body][made_by.inputs[i]]:
                    raise UnknownSizeError(f"{op.outputs[i]} may change its shape from one iteration to the next")
            return [*made[:results], *((ITERATIONS, *shape) for shape in made[results:])]
        shapes = [
            {inside[name][str(body.outputs[i])] for name, body in op.bodies.items() if body.outputs[i] is not None}
            for i in range(len(op.outputs))
        ]
        for name, different in zip(op.outputs, shapes, strict=True):
            if len(different) > 1:
                raise UnknownSizeError(f"the shape of {name} depends on its condition")
        return [next(iter(different)) for different in shapes]
