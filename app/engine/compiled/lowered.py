"""A Program as steps: each operator with how it will run, and what generating source from them needs to know."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from app.engine.compiled.sizes import Shape
from app.graph.program import Operator, Program
from app.ops.form import Fused

ROWS = "rows"
"""Each thread works on its rows of the batch."""
WHOLE = "whole"
"""The first thread does it all."""
LAST = "last"
"""The last thread does it all, as the first has other work."""


@dataclass
class Step:
    """One operator, with how it will run."""

    op: Operator
    kind: str
    """loop, product, filling, returning, copy, alias, constant, python, in_place; if, while or keep."""
    verdict: str
    """For people: compiled, inlined or Python call, and why."""
    share: Any = WHOLE
    """ROWS, WHOLE, LAST, or the constant size of the leading axis that the threads share out."""
    meet: bool = False
    """Whether the threads have to meet before this step."""
    inside: dict[str, list[Step]] = field(default_factory=dict)
    """For control flow: the steps of each of its parts, which the one thread that does it runs."""
    answer: str = ""
    """For control flow: the variable that says whether to do a part."""

    @property
    def in_python(self) -> bool:
        return self.kind == "python"

    @property
    def alone(self) -> bool:
        """Whether one thread does it all."""
        return self.share in (WHOLE, LAST)

    @property
    def everything(self) -> Iterator[Step]:
        """This step, and those inside it."""
        yield self
        for steps in self.inside.values():
            for step in steps:
                yield from step.everything

    @property
    def touched(self) -> list[str]:
        """The variables that it, or a step inside it, reads or writes."""
        return list(dict.fromkeys(n for step in self.everything for n in (*step.reads, *step.op.outputs)))

    @property
    def reads(self) -> list[str]:
        """The inputs whose numbers it reads; others only lend their shape."""
        form = self.op.definition.form
        members = form.body if isinstance(form, Fused) else (self.op,)
        read = {n for op in members for n in values_taken(op)}
        return list(dict.fromkeys(n for n in self.op.inputs if n in read))

    @property
    def users(self) -> list[Operator]:
        """The operators of it whose functions may raise: a user's, and those that refuse some numbers."""
        forms = [(step.op, step.op.definition.form) for step in self.everything]
        members = [member for op, form in forms for member in (form.body if isinstance(form, Fused) else (op,))]
        return [op for op in members if op.definition.custom or getattr(op.definition.form, "raises", False)]


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
    """The types of variables that live only inside a fused loop, or inside control flow."""
    kept: set[str] = field(default_factory=set)
    """Variables that grow by a row at each iteration of a loop."""
    unsettled: dict[str, Any] = field(default_factory=dict)
    """Variables written since the threads last met, each with the share in which it was."""

    @property
    def everything(self) -> Iterator[Step]:
        """All steps, those inside others, too."""
        for step in self.steps:
            yield from step.everything

    def unused(self, name: str) -> str:
        """The name, or one like it, that no variable has yet."""
        unique, number = name, 2
        while unique in self.shapes or unique in self.inner:
            unique, number = f"{name}.{number}", number + 1
        return unique

    def root(self, name: str) -> str:
        while name in self.roots:
            name = self.roots[name]
        return name

    def dtype(self, name: str) -> str:
        return self.inner.get(name) or self.program.global_block().var(name).dtype

    def is_data(self, name: str) -> bool:
        return name not in self.inner and self.program.global_block().var(name).is_data

    def comes_flat(self, name: str) -> bool:
        """Whether a part takes a variable as memory, of which it is the beginning, under its own shape."""
        whole = self.is_data(name) and name not in self.gathered
        return not (whole or self.persists(name) or name in self.kept)

    def has_fixed_shapes(self, names: Collection[str]) -> bool:
        """Whether no shape of these variables depends on the batch."""
        return not any(size.times for name in names for size in self.shapes[name])

    def all_alike(self, op: Operator) -> bool:
        """Whether all that an operator reads and writes has one shape, and one type of floats."""
        names = [*values_taken(op), *op.outputs]
        kinds = {self.dtype(n) for n in names}
        return len({self.shapes[n] for n in names}) == 1 and len(kinds) == 1 and kinds <= {"float32", "float64"}

    def persists(self, name: str) -> bool:
        return name not in self.inner and self.program.global_block().var(name).persistable
