"""What steps use to write code: blocks of statements, names and common values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from app.engine.compiled.buffers import Plan
from app.engine.compiled.language import (
    ANY,
    COUNT,
    INDEX,
    Array,
    Assign,
    Call,
    Cast,
    Comment,
    Do,
    Element,
    Extent,
    For,
    If,
    Infix,
    Local,
    Number,
    Operand,
    Return,
    Statement,
    Value,
    View,
)
from app.engine.compiled.names import Names
from app.engine.compiled.shapes import N, tiles
from app.engine.compiled.steps import ROWS, Lowered, Step
from app.engine.compiled.vector_functions import VectorFunction
from app.engine.compiled.vectors import lanes_of_machine
from app.graph.program import Operator
from app.ops.size import named_size, quotient, smaller

SHARD, SHARDS, SHARED = Local("shard", COUNT), Local("shards", COUNT), Array("shared")
LOW, HIGH = Local("lo", COUNT), Local("hi", COUNT)
"""A thread's rows of the batch."""


Ranges = dict[int, tuple[Value | None, Value]]
"""The bounds of the loops over some axes."""


def index(axis: int) -> Local:
    """The index of the loop over an axis."""
    return Local(f"i{axis}", INDEX)


def cut(count: Value, shard: Value, function: str = "cut") -> Call:
    """The first row of a thread's share of some rows."""
    return Call(function, (count, shard, SHARDS), COUNT)


def after(value: Value) -> Value:
    """One more."""
    return Infix(value, "+", Number(1, COUNT), COUNT)


class Writer:
    """The functions of one lowered Program, and the names in them."""

    def __init__(self, lowered: Lowered, plan: Plan):
        self.lowered, self.plan = lowered, plan
        self.names = Names()
        self.functions: dict[str, Any] = {}
        """The functions that the source calls: Python's, or written in vector instructions."""
        self._block: list[Statement] = []

    # Blocks

    def add(self, *statements: Statement) -> None:
        """Statements at the end of the block that is being written."""
        self._block.extend(statements)

    @contextmanager
    def inside(self, block: list[Statement]) -> Iterator[None]:
        """Within, statements are added to this block."""
        around, self._block = self._block, block
        try:
            yield
        finally:
            self._block = around

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Within, statements run if a condition holds."""
        statement = If(condition)
        self.add(statement)
        with self.inside(statement.body):
            yield

    @contextmanager
    def loop(self, name: str, low: Value | None, high: Value) -> Iterator[Local]:
        """Within, statements run for each index."""
        statement = For(name, low, high)
        self.add(statement)
        with self.inside(statement.body):
            yield Local(name, INDEX)

    @contextmanager
    def loops(self, axes: Sequence[int], ranges: Ranges) -> Iterator[None]:
        """Within, statements run for each index of some axes, one loop inside the other."""
        if not axes:
            yield
            return
        with self.loop(index(axes[0]).name, *ranges[axes[0]]), self.loops(axes[1:], ranges):
            yield

    def comment(self, lines: Sequence[str]) -> None:
        self.add(*map(Comment, lines))

    def assign(self, target: Local | Element | Array, value: Operand) -> None:
        self.add(Assign([target], [value]))

    def do(self, function: str, *arguments: Operand) -> None:
        self.add(Do(Call(function, arguments)))

    def give_up_if(self, condition: Value, reported: bool = False) -> None:
        """Leave the function if a condition holds; `reported`: because the current step rejected its inputs."""
        with self.when(condition):
            if reported:
                self.do("report", SHARED, SHARD)
            self.add(Return(True))

    def meet(self) -> None:
        """Add a barrier."""
        self.give_up_if(Call("meet", (SHARED, SHARDS)))

    # Names

    def name(self, variable: str) -> str:
        """The name of a variable in the source."""
        return self.names.of(("variable", variable), variable)

    def array(self, variable: str) -> Array:
        """A variable, as a whole."""
        return Array(self.name(variable))

    def local(self, name: str) -> Local:
        """A variable that stays inside a loop."""
        return Local(self.names.of(("local", name), f"{self.name(name)}_one"), self.lowered.dtype(name))

    def raw(self, data: str) -> str:
        """The name of a whole data array; the batch is some of its rows."""
        if self.lowered.shapes[data][:1] != (N,):
            return self.name(data)
        return self.names.of(("data", data), data if data not in self.lowered.gathered else f"all_{data}")

    def called(self, function: Callable[..., Any] | VectorFunction, word: str) -> str:
        """The name of a function that the source calls."""
        name = self.names.of(("function", function), word)
        self.functions[name] = function
        return name

    def array_name(self, name: str) -> str:
        """The array that a loop reads for a variable: the whole data array if its rows are scattered."""
        return self.raw(name) if self.is_scattered(name) else self.name(name)

    def is_scattered(self, name: str) -> bool:
        """Whether the rows of the batch are looked up one by one in a data array."""
        lowered = self.lowered
        return lowered.is_data(name) and name not in lowered.gathered and lowered.shapes[name][:1] == (N,)

    def flat(self, name: str) -> str:
        """The name of a variable as one-dimensional memory."""
        return self.names.of(("flat", name), f"{self.name(name)}_flat")

    def memory(self, name: str) -> str:
        """The name of the buffer that a variable lies in, or of the one that persists and that it is a view of."""
        root = self.lowered.root(name)
        return self.name(root) if self.lowered.persists(root) else self.buffer(self.plan.place[root])

    def buffer(self, number: int) -> str:
        return self.names.of(("buffer", number), f"buffer_{number}")

    def view(self, name: str, memory: str) -> View:
        """A variable as a view of the beginning of some memory."""
        return View(memory, self.lowered.shapes[name])

    # Values

    def number(self, name: str) -> Value:
        """A variable that is a single number."""
        dtype = self.lowered.dtype(name)
        if name in self.lowered.constants:
            return Number(self.lowered.constants[name], dtype)
        return self.element(name, [Number(0, COUNT) for _ in self.lowered.shapes[name]])

    def element(self, name: str, place: Sequence[Value]) -> Element:
        """An element of a variable."""
        return Element(self.name(name), tuple(place), self.lowered.dtype(name))

    def settings(self, op: Operator) -> list[Value]:
        """The settings of an operator, as arguments of its functions."""
        return [Number(value, ANY) for value in op.attributes.values()]

    # Shares

    def bounds(self, step: Step) -> tuple[Value, Value]:
        """The first row of a thread's share of a step, and the row after the last."""
        if step.share == ROWS:
            return LOW, HIGH
        if step.is_alone:
            shape = self.lowered.shapes[step.op.outputs[0]]
            return Number(0, COUNT), Extent(shape[0]) if shape else Number(1, COUNT)
        count = Number(step.share, COUNT)
        return cut(count, SHARD), cut(count, after(SHARD))

    @property
    def rows(self) -> tuple[Value, Value]:
        """The first row of the batch that is the thread's, and the row after its last: whole tiles of images, if any
        step is tiled."""
        function = "cut_tiles" if any(step.is_tiled for step in self.lowered.everything) else "cut"
        count = Local("n", COUNT)
        return cut(count, SHARD, function), cut(count, after(SHARD), function)

    @contextmanager
    def tiles(self) -> Iterator[None]:
        """Within, statements run for one tile of the thread's images after the other."""
        lanes, tile = lanes_of_machine(), named_size("tile")
        low, high = named_size(LOW.name), named_size(HIGH.name)
        with self.loop("tile", Extent(quotient(low, lanes)), Extent(tiles(high))):
            end = smaller((tile + 1) * lanes, N)
            self.add(Assign([LOW, HIGH], [Extent(tile * lanes), Extent(end)]))
            yield
        self.add(Assign([LOW, HIGH], self.rows))

    def range_of(self, step: Step) -> tuple[Value | None, Value]:
        """The range of a loop over a thread's share of a step."""
        low, high = self.bounds(step)
        return Cast(low, INDEX), Cast(high, INDEX)

    def ranges(self, step: Step, name: str) -> Ranges:
        """The ranges of the loops over the axes of a variable, of which a thread does its share of the first."""
        ranges: Ranges = {
            axis: (None, Cast(Extent(size), INDEX)) for axis, size in enumerate(self.lowered.shapes[name])
        }
        if not step.is_alone:
            ranges[0] = self.range_of(step)
        if name in self.lowered.by_lanes:
            low, high = quotient(named_size(LOW.name), lanes_of_machine()), tiles(named_size(HIGH.name))
            ranges[0] = Cast(Extent(low), INDEX), Cast(Extent(high), INDEX)
        return ranges

    def share_of(self, variable: str, step: Step) -> Array:
        """A variable as an argument of a function: the thread's rows, or all of it if it has no rows."""
        shape = self.lowered.shapes[variable]
        rows = (LOW, HIGH) if step.share == ROWS and shape[:1] == (N,) else None
        return Array(self.name(variable), rows)

    is_first = Infix(SHARD, "==", Number(0, COUNT), "bool")
    """Whether the thread is the first, which does alone what is not shared out."""

    def copy(self, source: str, target: str, step: Step, source_begins_at: Value | None = None) -> None:
        """Copy the thread's share of an array into a variable, element by element.

        The array may hold that share alone, and then begins at its first row.
        """
        axes = list(range(len(self.lowered.shapes[target])))
        target_indices: list[Value] = [index(axis) for axis in axes]
        source_indices = list(target_indices)
        if source_begins_at is not None:
            source_indices[0] = Infix(source_indices[0], "-", Cast(source_begins_at, INDEX), INDEX)
        with self.loops(axes, self.ranges(step, target)):
            self.assign(
                self.element(target, target_indices), Element(source, tuple(source_indices), self.lowered.dtype(target))
            )
