"""A Program as steps: what the schedule, the buffers and the source need to know of each operator, whatever its kind.

The kinds are in `kinds/`, each in a file of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

from app.engine.compiled.shapes import N, at
from app.graph.program import Operator, Program
from app.ops.lowering import Fused
from app.ops.size import Shape, Size

ROWS = "rows"
"""Each thread works on its rows of the batch."""
WHOLE = "whole"
"""The first thread does it all."""

Share = str | int
"""How threads share out a step: ROWS, WHOLE, or the size of a leading axis that is cut into equal parts."""

OUTSIDE = ""
"""Stands for everything outside that a Python callback may change, so that callbacks keep their order."""

SMALL = 16
"""A constant axis shorter than this is not worth sharing out."""

ELEMENT = 16
"""Estimated operations for an element, except in products."""


class Use(NamedTuple):
    """How a step uses a variable."""

    name: str
    is_written: bool
    share: Share | None
    """None: each thread reads all of it."""


class Step:
    """One operator of a lowered Program, with how it runs."""

    is_free = False
    """Whether it costs nothing: its output is a view of its input, or a number in the source."""
    in_python = False
    """Whether it runs as a Python call, between compiled parts."""
    begins_part = False
    """Whether, in a long Program, a function of the source begins with it."""
    has_known_cost = True
    """Whether `operations` says what it costs."""
    takes_constants = False
    """Whether it can read a number of the source where its input is one."""
    picks_rows = False
    """Whether it can look up the rows of the batch in data, one by one."""
    is_tiled = False
    """Whether it works on one tile of images after the other."""
    calls_function = False
    """Whether it calls a compiled function that may refuse its inputs."""

    def __init__(self, op: Operator, lowered: Lowered, verdict: str, share: Share = WHOLE):
        self.op = op
        self.lowered = lowered
        self.verdict = verdict
        """For people: compiled, inlined or Python call, and why."""
        self.share = share
        self.must_meet = False
        """Whether there is a barrier before this step."""

    def joins_tiles_of(self, before: Step) -> bool:
        """Whether it works on the tiles of the step before it, one tile after the other."""
        return self.is_tiled and before.is_tiled and not self.must_meet

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.op}, share={self.share})"

    # What it does

    @property
    def members(self) -> Sequence[Operator]:
        """The operator, or those that were fused into it."""
        lowering = self.op.definition.lowering
        return lowering.body if isinstance(lowering, Fused) else (self.op,)

    @property
    def bodies(self) -> Mapping[str, list[Step]]:
        """For control flow: the steps of each of its parts, which the one thread that does it runs."""
        return {}

    repeated: Collection[str] = ()
    """The bodies that run repeatedly."""

    @property
    def everything(self) -> Iterator[Step]:
        """This step, and those inside it."""
        yield self
        for steps in self.bodies.values():
            for step in steps:
                yield from step.everything

    @property
    def reads(self) -> list[str]:
        """The inputs whose values it reads; of the others it needs only the shape."""
        read = {name for op in self.members for name in values_taken(op)}
        return list(dict.fromkeys(name for name in self.op.inputs if name in read))

    @property
    def touched(self) -> list[str]:
        """The variables that it, or a step inside it, reads or writes."""
        return list(dict.fromkeys(n for step in self.everything for n in (*step.reads, *step.op.outputs)))

    @property
    def users(self) -> list[Operator]:
        """Its operators that may raise: custom ones, and those that reject some values."""
        members = [op for step in self.everything for op in step.members]
        return [op for op in members if op.definition.custom or getattr(op.definition.lowering, "raises", False)]

    # Threads

    @property
    def is_alone(self) -> bool:
        """Whether the first thread does it all."""
        return self.share == WHOLE

    @property
    def uses(self) -> list[Use]:
        """The variables that it writes and reads."""
        uses = [Use(self.lowered.root(name), True, self.share) for name in self.op.outputs]
        for name in self.reads:
            if name not in self.lowered.constants:
                uses.append(Use(self.lowered.root(name), False, self.share if self.keeps_to_share(name) else None))
        return uses

    def keeps_to_share(self, name: str) -> bool:
        """Whether a thread reads of a variable only what lies in its own share of the step."""
        if self.is_alone:
            return True
        shape, output = self.lowered.shapes[name], self.lowered.shapes[self.op.outputs[0]]
        return bool(shape) and shape[0] == output[0] and self._reads_own_rows(name)

    def _reads_own_rows(self, name: str) -> bool:
        """Whether a row of the outputs comes from the same row of a variable, which has as many of them."""
        return False

    def operations(self, n: int) -> int:
        """Estimated number of operations in a batch of n."""
        names = [str(name) for name in (*self.op.inputs[-2:], *self.op.outputs) if name]
        return max((self.lowered.elements(name, n) for name in names), default=0) * ELEMENT

    # Memory

    @property
    def allocated(self) -> Sequence[str]:
        """The outputs that need memory."""
        return () if self.is_free or self.in_python else self.op.outputs

    def may_overwrite(self, output: str, dying: str) -> bool:
        """Whether an output may reuse the memory of an input that dies here."""
        return False

    @property
    def condition(self) -> str:
        """For control flow: the variable that says whether to run a part."""
        return ""


def values_taken(op: Operator) -> list[str]:
    """The inputs that an operator's function takes."""
    takes = getattr(op.definition.lowering, "takes", None)
    return [str(n) for n in (op.inputs if takes is None else [op.inputs[i] for i in takes]) if n]


@dataclass
class Lowered:
    """A Program as steps, with what code generation needs to know."""

    program: Program
    shapes: dict[str, Shape]
    steps: list[Step] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)
    """Variables that are one number, written into the source."""
    roots: dict[str, str] = field(default_factory=dict)
    """For a reshaped view, the variable that owns the memory."""
    gathered: set[str] = field(default_factory=set)
    """Data whose rows are gathered first, because some step needs them contiguous."""
    inner: dict[str, str] = field(default_factory=dict)
    """The types of variables that live only inside a fused loop, or inside control flow."""
    by_lanes: set[str] = field(default_factory=set)
    """Images that lie as the lanes of vectors: [tiles, channels, height * width * lanes]."""
    unsettled: set[str] = field(default_factory=set)
    """Variables that several threads have written since the last barrier."""
    lower_one: Callable[[Operator], Step] = field(init=False, repr=False, compare=False)
    """Returns the step of an operator, for those inside control flow; `lower` sets it."""

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
        """The variable that owns this one's memory."""
        while name in self.roots:
            name = self.roots[name]
        return name

    def dtype(self, name: str) -> str:
        return self.inner.get(name) or self.program.global_block().var(name).dtype

    def is_data(self, name: str) -> bool:
        return name not in self.inner and self.program.global_block().var(name).is_data

    def persists(self, name: str) -> bool:
        return name not in self.inner and self.program.global_block().var(name).persistable

    def has_batch_in_front(self, name: str) -> bool:
        """Whether a variable has a row for each of the batch."""
        return self.shapes[name][:1] == (N,)

    def has_fixed_shapes(self, names: Collection[str]) -> bool:
        """Whether no shape of these variables depends on the batch."""
        return not any(isinstance(size, Size) for name in names for size in self.shapes[name])

    def shape_at(self, name: str, n: int) -> tuple[int, ...]:
        """The shape of a variable in a batch of n."""
        return tuple(at(size, n) for size in self.shapes[name])

    def elements(self, name: str, n: int) -> int:
        """The number of elements of a variable in a batch of n."""
        return prod(self.shape_at(name, n))

    def comes_flat(self, name: str) -> bool:
        """Whether a part takes a variable as memory, of which it is the beginning, under its own shape."""
        whole = self.is_data(name) and name not in self.gathered
        return not (whole or self.persists(name))

    def is_uniform(self, op: Operator) -> bool:
        """Whether all that an operator reads and writes has one shape, and one type of floats."""
        names = [*values_taken(op), *op.outputs]
        kinds = {self.dtype(n) for n in names}
        return len({self.shapes[n] for n in names}) == 1 and len(kinds) == 1 and kinds <= {"float32", "float64"}

    def share_of_rows(self, op: Operator) -> Share:
        """How the threads share out an operator: by rows of the batch, by its own leading axis, or not at all."""
        first = self.shapes[op.outputs[0]][:1]
        if not first or any(self.shapes[name][:1] != first for name in op.outputs):
            return WHOLE
        if first == (N,):
            return ROWS
        return WHOLE if isinstance(first[0], Size) or first[0] < SMALL else first[0]
