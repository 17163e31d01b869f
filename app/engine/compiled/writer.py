"""What all of generated source is written with: lines, names, and the text for what recurs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.engine.compiled.buffers import Plan, size_text
from app.engine.compiled.lowered import LAST, ROWS, Lowered, Step
from app.engine.compiled.names import RESERVED, Names
from app.engine.compiled.sizes import N
from app.engine.compiled.stand_ins import on_vectors

INDENT = "    "
WIDTH = 104
"""How long a line of arguments becomes."""


class Writer:
    """The lines of the source of one lowered Program, and the names in them."""

    def __init__(self, lowered: Lowered, plan: Plan):
        self.lowered, self.plan = lowered, plan
        self.names = Names(RESERVED)
        self.functions: dict[str, Callable[..., Any]] = {}
        self.lines: list[str] = []

    def line(self, depth: int, text: str) -> None:
        self.lines.append(INDENT * depth + text if text else "")

    # Names

    def name(self, variable: str) -> str:
        """The name of a variable in the source."""
        return self.names.of(("variable", variable), variable)

    def raw(self, data: str) -> str:
        """The name of a data array of which only some rows are the batch."""
        if self.lowered.shapes[data][:1] != (N,):
            return self.name(data)
        return self.names.of(("data", data), data if data not in self.lowered.gathered else f"all_{data}")

    def function(self, function: Callable[..., Any], wanted: str, on_numbers: bool = False) -> str:
        """The name of a function that the source calls, in a loop over single numbers or with arrays."""
        name = self.names.of(("function", id(function)), wanted)
        if name not in self.functions:
            self.functions[name] = on_vectors(function) if on_numbers else function
        return name

    def array(self, name: str) -> str:
        """The array that stands for a variable in a loop: data whose rows are scattered comes whole."""
        return self.raw(name) if self.is_scattered(name) else self.name(name)

    def is_scattered(self, name: str) -> bool:
        """Whether the rows of the batch have to be looked up one by one in a data array."""
        lowered = self.lowered
        return lowered.is_data(name) and name not in lowered.gathered and lowered.shapes[name][:1] == (N,)

    def flat(self, name: str) -> str:
        """The name of a variable's elements in a row."""
        return self.names.of(("flat", name), f"{self.name(name)}_flat")

    def memory(self, name: str) -> str:
        """The name of the buffer that a variable lies in."""
        return self.buffer(self.plan.place[self.lowered.root(name)])

    def buffer(self, index: int) -> str:
        return self.names.of(("buffer", index), f"buffer_{index}")

    # What recurs

    def header(self, name: str, arguments: list[str], kept: bool = True) -> None:
        """The beginning of a function; `kept` of one that Python calls and that is kept on disk."""
        how = "cache=True" if kept else "no_cpython_wrapper=True, no_cfunc_wrapper=True"
        self.line(0, f"@njit(nogil=True, {how}, error_model='numpy')")
        self.line(0, f"def {name}(")
        line = ""
        for argument in arguments:
            if len(line) + len(argument) > WIDTH:
                self.line(1, line.rstrip())
                line = ""
            line += argument + ", "
        self.line(1, line.rstrip())
        self.line(0, "):")

    def part(self, name: str, memory: str) -> str:
        """The part of some memory that a variable needs in this batch."""
        shape = self.lowered.shapes[name]
        sizes = ", ".join(map(str, shape))
        shaped = f".reshape({sizes})" if len(shape) > 1 else ""
        return f"{memory}[: {size_text(shape)}]{shaped}"

    def bounds(self, step: Step) -> tuple[str, str]:
        """The first row of a thread's share of a step, and the row after the last."""
        if step.share == ROWS:
            return "lo", "hi"
        if step.alone:
            shape = self.lowered.shapes[step.op.outputs[0]]
            return "0", str(shape[0]) if shape else "1"
        return f"cut({step.share}, shard, shards)", f"cut({step.share}, shard + 1, shards)"

    def loner(self, share: str) -> str:
        """The number of the thread that works alone."""
        return "shards - 1" if share == LAST else "0"

    def meet(self, depth: int) -> None:
        """Wait for the other threads."""
        self.line(depth, "if meet(shared, shards):")
        self.line(depth + 1, "return True")
