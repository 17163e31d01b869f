"""Shapes in terms of the batch: every size of every variable as a number, or as a multiple of the batch size n.

The sizes are inferred for two batch sizes, and a line is drawn through both. That line is a guess: a slice such as
`x[:100]`, or a maximum over no rows, may follow another rule at another size. So the guess is compared with inference
at each batch size that a Program is run with, once, before it runs natively with that size (`Guess.holds_at`).

What inference cannot tell, the size of what a user's function returns or of what a mask picks, is taken for the batch
size, too, and compared when the operator has run. No pass may rely on it: see `Guess.open`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from app.errors import AppError
from app.graph.body import Body
from app.graph.passes.bodies import as_program
from app.graph.program import Operator, Program
from app.ops.form import Fused, Loop
from app.ops.spec import UNKNOWN, Spec

_PROBES = (97, 101)
"""Batch sizes through which the line is drawn: large enough that no size of a network is met by chance, and prime."""


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


InPython = Callable[[Operator, Program, dict[str, Shape]], bool]
"""Says of an operator of a Program, given all shapes, whether it will run as a Python call."""


def always(op: Operator, program: Program, shapes: Mapping[str, Shape]) -> bool:
    """What is certain of everything inside control flow, which may be left to Python with all that it holds."""
    return True


class Guess(NamedTuple):
    """The shapes of the variables of a Program, or of a body, in terms of the batch size."""

    program: Program
    shapes: dict[str, Shape]
    told_by_run: frozenset[str]
    """Variables with a size that inference does not tell, which is taken for that of the batch."""
    unsure: frozenset[str]
    """For a body: its inputs whose shapes are open in the Program around it."""

    def holds_at(self, n: int) -> bool:
        """Whether inference gives these shapes for a batch of n, too."""
        try:
            inferred = _Inference(self.program, {}, n).shapes
        except UnknownSizeError:
            return False
        return all(_at(shape, n) == inferred[name] for name, shape in self.shapes.items())

    def inside(self, op: Operator, body: str, open_around: frozenset[str]) -> Guess:
        """The shapes inside a body of one of the operators, given the variables around it whose shapes are open."""
        inner: Body = op.bodies[body]
        taken = zip(inner.inputs, _taken(op, inner), strict=True)
        unsure = frozenset(name for name, outer in taken if outer in open_around)
        return guess(as_program(inner), _given(op, self.shapes, body), unsure)

    def open(self, in_python: InPython) -> frozenset[str]:
        """The variables whose shapes only a run tells: they hang on numbers, or on what a user's function returns.

        Compiled code stops where a user's function returns another shape than declared, so only those that run
        `in_python` count.
        """
        block, found = self.program.global_block(), set(self.unsure)
        for op in block.ops:
            told = not self.told_by_run.isdisjoint(op.outputs) and in_python(op, self.program, self.shapes)
            inside = (self.inside(op, body, frozenset(found)).open(always) for body in op.bodies)
            if told or not found.isdisjoint(filter(None, op.inputs)) or any(inside):
                found.update(name for name in op.outputs if UNKNOWN in block.var(name).shape)
        return frozenset(found)


def guess(program: Program, given: Mapping[str, Shape] | None = None, unsure: frozenset[str] = frozenset()) -> Guess:
    """The shape of every variable. All unknown sizes of the data are taken to be one and the same n.

    `given` says the shapes of what a body takes, where the Program is a body.
    """
    given = given or {}
    few, many = (_Inference(program, {name: _at(s, n) for name, s in given.items()}, n) for n in _PROBES)
    shapes = {name: _line(name, few.shapes[name], many.shapes[name]) for name in few.shapes}
    _check_batch_in_front(program, shapes)
    return Guess(program, shapes, frozenset(few.told_by_run), unsure)


def shapes_of(program: Program, given: Mapping[str, Shape] | None = None) -> dict[str, Shape]:
    """The shape of every variable, in terms of the batch size."""
    return guess(program, given).shapes


def is_kept_of_iterations(shape: Shape) -> bool:
    """Whether a variable of this shape is what a loop keeps: a row for each iteration."""
    return any(size.iterations for size in shape)


def shapes_inside(op: Operator, shapes: Mapping[str, Shape], body: str) -> dict[str, Shape]:
    """The shapes of a body's variables, from those of what its operator takes."""
    return shapes_of(as_program(op.bodies[body]), _given(op, shapes, body))


def _given(op: Operator, shapes: Mapping[str, Shape], body: str) -> dict[str, Shape]:
    inner: Body = op.bodies[body]
    return {name: shapes[str(outer)] for name, outer in zip(inner.inputs, _taken(op, inner), strict=True)}


def _taken(op: Operator, body: Body) -> Sequence[str | None]:
    return op.inputs[len(op.inputs) - len(body.inputs) :]


def _at(shape: Shape, n: int) -> Shape:
    return tuple(size if size.iterations else Size(0, size.at(n)) for size in shape)


def _line(name: str, few: Shape, many: Shape) -> Shape:
    """A shape that is `few` in a batch of the first size, and `many` in one of the second."""
    sizes = []
    for a, b in zip(few, many, strict=True):
        times, rest = divmod(b.plus - a.plus, _PROBES[1] - _PROBES[0])
        if rest:
            raise UnknownSizeError(f"the shape of {name} does not grow evenly with the batch")
        sizes.append(Size(times, a.plus - times * _PROBES[0], a.iterations))
    return tuple(sizes)


def _check_batch_in_front(program: Program, shapes: Mapping[str, Shape]) -> None:
    """Refuse an unknown size that does not stand in front, and what a user declares of values that are no batch."""
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
            if any(size.times and size != N for size in leading):
                raise UnknownSizeError(f"{outputs[0].name} comes from values with other sizes than the batch's")


def _is_declared(op: Operator) -> bool:
    """Whether a user declared the shapes of the outputs."""
    return op.definition.custom and not op.definition.broadcasts


class _Inference:
    """The shapes of a Program's variables, as numbers, for one batch size."""

    def __init__(self, program: Program, given: Mapping[str, Shape], n: int):
        self._block, self._n = program.global_block(), n
        self.told_by_run: set[str] = set()
        self.shapes: dict[str, Shape] = {}
        for name, variable in self._block.vars.items():
            if variable.persistable and UNKNOWN in variable.shape:
                raise UnknownSizeError(f"{name} persists, and has an unknown size: {list(variable.shape)}")
            if variable.is_data or variable.persistable:
                self.shapes[name] = given.get(name) or self._with_batch(variable.shape)
        for op in self._block.ops:
            for read in op.inputs:
                if read is not None and read not in self.shapes:
                    raise UnknownSizeError(f"nothing computes {read}")
            for made, shape in zip(op.outputs, self._of(op), strict=True):
                if self.shapes.setdefault(made, shape) != shape:
                    raise UnknownSizeError(f"{made} is written more than once, in shapes that may differ")

    def _with_batch(self, shape: Sequence[int]) -> Shape:
        return tuple(Size(0, self._n if size == UNKNOWN else size) for size in shape)

    def _of(self, op: Operator) -> Sequence[Shape]:
        form = op.definition.form
        if op.bodies:
            return self._given_by_bodies(op)
        if isinstance(form, Fused):  # of its own outputs it knows only what was declared
            inside = dict(self.shapes)
            for member in form.body:
                inside.update(zip(member.outputs, self._inferred(member, inside, form.dtypes), strict=True))
            return [inside[name] for name in op.outputs]
        variables = [self._block.var(name) for name in (*op.inputs, *op.outputs) if name is not None]
        if not any(UNKNOWN in v.shape for v in variables):
            return [self._with_batch(self._block.var(name).shape) for name in op.outputs]
        if _is_declared(op):
            declared = [self._block.var(name).shape for name in op.outputs]
            self.told_by_run.update(n for n, s in zip(op.outputs, declared, strict=True) if UNKNOWN in s)
            return [self._with_batch(shape) for shape in declared]
        return self._inferred(op, self.shapes, {})

    def _inferred(self, op: Operator, shapes: Mapping[str, Shape], dtypes: Mapping[str, str]) -> Sequence[Shape]:
        specs = [
            None if n is None else Spec(tuple(s.at(0) for s in shapes[n]), dtypes.get(n) or self._block.var(n).dtype)
            for n in op.inputs
        ]
        try:
            result = op.definition.infer_outputs(specs, op.attributes)
        except AppError as error:
            raise UnknownSizeError(f"in a batch of {self._n}, {error}") from error
        self.told_by_run.update(n for n, spec in zip(op.outputs, result, strict=True) if UNKNOWN in spec.shape)
        return [self._with_batch(spec.shape) for spec in result]

    def _given_by_bodies(self, op: Operator) -> list[Shape]:
        """The shapes of what control flow gives."""
        form = op.definition.form
        inside = {}
        for name, body in op.bodies.items():
            inside[name] = _Inference(as_program(body), _given(op, self.shapes, name), self._n).shapes
        if isinstance(form, Loop):
            made_by, results = op.bodies[form.makes], op.attributes["results"]
            made = [inside[form.makes][str(name)] for name in made_by.outputs]
            for i in range(results):
                if made[i] != inside[form.makes][made_by.inputs[i]]:
                    raise UnknownSizeError(f"{op.outputs[i]} may change its shape from one iteration to the next")
            return [*made[:results], *((ITERATIONS, *shape) for shape in made[results:])]
        shapes = [
            {inside[name][str(body.outputs[i])] for name, body in op.bodies.items() if body.outputs[i] is not None}
            for i in range(len(op.outputs))
        ]
        for name, different in zip(op.outputs, shapes, strict=True):
            if len(different) > 1:
                raise UnknownSizeError(f"{name} has one shape or another, as its condition says")
        return [next(iter(different)) for different in shapes]
