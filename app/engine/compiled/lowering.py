"""From operators to steps: how each will run, and on which share of the rows."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from app.engine.compiled.sizes import N, Shape, shapes_of
from app.graph.program import Operator, Program
from app.ops.form import Alias, Constant, Elementwise, Filling, Fused, Product, Reduction, Returning, Spread

ROWS = "rows"
"""Each thread works on its rows of the batch."""
WHOLE = "whole"
"""The first thread does it all."""
LAST = "last"
"""The last thread does it all, as the first has other work."""
SMALL = 16
"""A constant axis shorter than this is not worth sharing out."""


@dataclass
class Step:
    """One operator, with how it will run."""

    op: Operator
    kind: str
    """loop, product, filling, returning, alias, constant, gather or python."""
    verdict: str
    """For people: compiled, inlined or Python call, and why."""
    share: Any = WHOLE
    """ROWS, WHOLE, LAST, or the constant size of the leading axis that the threads share out."""
    meet: bool = False
    """Whether the threads have to meet before this step."""

    @property
    def in_python(self) -> bool:
        return self.kind == "python"

    @property
    def alone(self) -> bool:
        """Whether one thread does it all."""
        return self.share in (WHOLE, LAST)

    @property
    def reads(self) -> list[str]:
        """The inputs whose numbers it reads; others only lend their shape."""
        form = self.op.definition.form
        members = form.body if isinstance(form, Fused) else (self.op,)
        read = {n for op in members for n in values_taken(op)}
        return list(dict.fromkeys(n for n in self.op.inputs if n in read))

    @property
    def users(self) -> list[Operator]:
        """The operators of it that are a user's: their functions may raise."""
        form = self.op.definition.form
        return [op for op in (form.body if isinstance(form, Fused) else (self.op,)) if op.definition.where]


def values_taken(op: Operator) -> list[str]:
    """The inputs that an operator's function takes."""
    takes = getattr(op.definition.form, "takes", None)
    return [str(n) for n in (op.inputs if takes is None else [op.inputs[i] for i in takes]) if n]


@dataclass
class Lowered:
    """A Program as steps, with what generating source from them needs to know."""

    program: Program
    steps: list[Step]
    shapes: dict[str, Shape]
    constants: dict[str, Any] = field(default_factory=dict)
    """Variables that are the same number everywhere, written into the source as that number."""
    roots: dict[str, str] = field(default_factory=dict)
    """For a variable that is another one under a new shape: that other one."""
    gathered: set[str] = field(default_factory=set)
    """Data whose rows of the batch are copied first, as some step needs them side by side."""

    inner: dict[str, str] = field(default_factory=dict)
    """The types of variables that live only inside a fused loop."""
    unsettled: dict[str, Any] = field(default_factory=dict)
    """Variables written since the threads last met, each with the share in which it was."""

    def root(self, name: str) -> str:
        while name in self.roots:
            name = self.roots[name]
        return name

    def dtype(self, name: str) -> str:
        return self.inner.get(name) or self.program.global_block().var(name).dtype

    def is_data(self, name: str) -> bool:
        return self.program.global_block().var(name).is_data

    def comes_flat(self, name: str) -> bool:
        """Whether a part takes a variable as memory, of which it is the beginning, under its own shape."""
        whole = self.is_data(name) and name not in self.gathered
        return not (whole or self.persists(name))

    def has_fixed_shapes(self, names: Collection[str]) -> bool:
        """Whether no shape of these variables depends on the batch."""
        return not any(size.times for name in names for size in self.shapes[name])

    def all_alike(self, op: Operator) -> bool:
        """Whether all that an operator reads and writes has one shape, and one type of floats."""
        names = [*values_taken(op), *op.outputs]
        kinds = {self.dtype(n) for n in names}
        return len({self.shapes[n] for n in names}) == 1 and len(kinds) == 1 and kinds <= {"float32", "float64"}

    def persists(self, name: str) -> bool:
        return self.program.global_block().var(name).persistable


def lower(program: Program, keep: Collection[str], why_not: Callable[[Operator, Lowered], str]) -> Lowered:
    """The steps of an optimised Program. `why_not` says of a user's function why it cannot be compiled, or ''."""
    lowered = Lowered(program, [], shapes_of(program))
    for op in program.global_block().ops:
        if isinstance(op.definition.form, Fused):
            lowered.inner.update(op.definition.form.dtypes)
        step = _step(op, lowered, why_not)
        if step.kind == "constant":
            lowered.constants[op.outputs[0]] = op.definition.form.value(op.attributes)
        if step.kind == "alias":
            lowered.roots[op.outputs[0]] = str(op.inputs[0])
        lowered.steps.append(step)
    _materialise(lowered, keep)
    _gather(lowered)
    return lowered


def why_python(op: Operator, lowered: Lowered, why_not: Callable[[Operator, Lowered], str]) -> str:
    """Why an operator has to run as a Python call whatever its shapes are, or ''."""
    if op.definition.form is None:
        return "its function is plain Python" if op.definition.where else "no compiled form"
    if any(lowered.dtype(name) in ("object", "float16") for name in (*op.inputs, *op.outputs) if name):
        return "its values are of a type that is not compiled"
    return "an input is absent" if None in op.inputs else why_not(op, lowered)


def _step(op: Operator, lowered: Lowered, why_not: Callable[[Operator, Lowered], str]) -> Step:
    form = op.definition.form
    reason = why_python(op, lowered, why_not)
    if reason:
        return Step(op, "python", f"Python call: {reason}")
    if isinstance(form, Constant) and not lowered.persists(op.outputs[0]):
        return Step(op, "constant", "inlined: a number")
    if isinstance(form, Alias):
        return _alias(op, lowered)
    share = _share(lowered, op)
    if isinstance(form, (Elementwise, Fused, Reduction, Spread, Constant)):
        what = "inlined: in a loop" + (f" with {len(form.body) - 1} others" if isinstance(form, Fused) else "")
        return Step(op, "loop", what, share)
    if isinstance(form, Product):
        return _product(op, lowered, share)
    if isinstance(form, Filling):
        if not form.fits(op.attributes, len(lowered.shapes[str(op.inputs[0])])):
            return Step(op, "python", "Python call: its compiled form does not cover these attributes")
        return Step(op, "filling", "compiled", share if form.row_by_row else WHOLE)
    assert isinstance(form, Returning)
    in_rows = form.row_by_row or (form.rows_if_alike and lowered.all_alike(op))
    return Step(op, "returning", "compiled: calls your Numba function", share if in_rows else WHOLE)


def _alias(op: Operator, lowered: Lowered) -> Step:
    source = str(op.inputs[0])
    if lowered.is_data(lowered.root(source)) or lowered.persists(lowered.root(source)) or source in lowered.constants:
        return Step(op, "copy", "compiled: a copy", WHOLE)
    return Step(op, "alias", "free: another view of the same numbers")


def _product(op: Operator, lowered: Lowered, share: Any) -> Step:
    x, y = op.inputs[-2:]
    ranks = len(lowered.shapes[str(x)]), len(lowered.shapes[str(y)])
    if ranks != (2, 2) or lowered.dtype(str(x)) not in ("float32", "float64"):
        return Step(op, "python", "Python call: not a product of two float matrices")
    in_place = op.definition.form.step
    return Step(op, "product", "compiled: BLAS" + (", the update in the same call" if in_place else ""), share)


def _share(lowered: Lowered, op: Operator) -> Any:
    """How the threads share out a step: by rows of the batch, by its own leading axis, or not at all."""
    shape = lowered.shapes[op.outputs[0]]
    if not shape or any(lowered.shapes[name][:1] != shape[:1] for name in op.outputs):
        return WHOLE
    if shape[0] == N:
        return ROWS
    if shape[0].times or shape[0].plus < SMALL:
        return WHOLE
    return shape[0].plus


def _materialise(lowered: Lowered, keep: Collection[str]) -> None:
    """Turn constants that something other than a loop reads into arrays, filled by a loop."""
    needed = set(keep)
    for step in lowered.steps:
        if step.kind not in ("loop", "constant"):
            needed.update(n for n in step.op.inputs if n)
    for step in lowered.steps:
        if step.kind == "constant" and step.op.outputs[0] in needed:
            del lowered.constants[step.op.outputs[0]]
            step.kind, step.share = "loop", _share(lowered, step.op)


def _gather(lowered: Lowered) -> None:
    """Note the data that must lie side by side; elementwise loops pick the rows of the others as they go."""
    for step in lowered.steps:
        if not isinstance(step.op.definition.form, (Elementwise, Fused, Constant)):
            lowered.gathered.update(
                n for n in step.op.inputs if n and lowered.is_data(n) and lowered.shapes[n][:1] == (N,)
            )
