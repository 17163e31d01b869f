"""The source that is generated for a Program: Python that a person can read and Numba can compile."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.engine.compiled.buffers import Plan, size_text
from app.engine.compiled.loops import LoopWriter
from app.engine.compiled.lowering import ROWS, WHOLE, Lowered, Step
from app.engine.compiled.sizes import N
from app.ops.form import Filling, Product, Returning

INDENT = "    "


class Names:
    """Python names for variables and functions, each given once."""

    def __init__(self, taken: Sequence[str] = ()):
        self._taken = set(taken)
        self._given: dict[Any, str] = {}

    def of(self, key: Any, wanted: str) -> str:
        """The name of something, near to the one wanted."""
        if key not in self._given:
            name = re.sub(r"\W", "_", wanted) or "_"
            name = f"_{name}" if name[0].isdigit() or keyword.iskeyword(name) else name
            unique, number = name, 2
            while unique in self._taken:
                unique, number = f"{name}_{number}", number + 1
            self._taken.add(unique)
            self._given[key] = unique
        return self._given[key]


RESERVED = (
    "np", "njit", "meet", "note", "report", "product32", "product64", "shard", "shards", "shared", "order", "rows",
    "first", "last", "batch", "n", "lo", "hi", "iteration", "result", "train", "min", "range", "row", "folded",
    "u", "i", "inf", "nan",
)  # fmt: skip


@dataclass
class Part:
    """A run of steps between Python calls: one function of the source."""

    name: str
    steps: list[tuple[int, Step]]
    arguments: list[str] = field(default_factory=list)
    """The variables that it takes, in order."""


@dataclass
class Source:
    """Generated text, the functions that it calls, and the order of its arguments."""

    text: str
    functions: dict[str, Callable[..., Any]]
    parts: list[Part]
    data: list[str]
    persistables: list[str]
    whole: bool
    """Whether it has `train`, which runs many batches in one call; a Python call in between prevents that."""


class Writer:
    """Writes the source of one lowered Program."""

    def __init__(self, lowered: Lowered, plan: Plan, fetch: Sequence[str]):
        self.lowered, self.plan, self.fetch = lowered, plan, fetch
        self.names = Names(RESERVED)
        self.functions: dict[str, Callable[..., Any]] = {}
        self.lines: list[str] = []
        self.loops = LoopWriter(self)

    # What loops and steps ask for

    def name(self, variable: str) -> str:
        """The name of a variable in the source."""
        return self.names.of(("variable", variable), variable)

    def raw(self, data: str) -> str:
        """The name of a data array of which only some rows are the batch."""
        if self.lowered.shapes[data][:1] != (N,):
            return self.name(data)
        return self.names.of(("data", data), data if data not in self.lowered.gathered else f"all_{data}")

    def function(self, function: Callable[..., Any], wanted: str) -> str:
        """The name of a function that the source calls."""
        name = self.names.of(("function", id(function)), wanted)
        self.functions[name] = function
        return name

    def line(self, depth: int, text: str) -> None:
        self.lines.append(INDENT * depth + text)

    # The source

    def write(self) -> Source:
        lowered = self.lowered
        whole = not any(step.in_python for step in lowered.steps)
        variables = lowered.program.global_block().vars
        if not whole:  # then every batch is gathered before its first part
            lowered.gathered |= {n for n, v in variables.items() if v.is_data}
        data = [n for n, v in variables.items() if v.is_data and self._is_read(n)]
        persistables = self._persistables()
        parts = self._parts()
        if whole:
            self._train([step for part in parts for step in part.steps], data, persistables)
        else:
            for part in parts:
                self._part(part)
        functions = sorted(self.functions)
        head = [
            '"""Generated for a Program: a comment before each step names the operator that it computes."""',
            "",
            "import numpy as np",
            "from numba import njit",
            "from numpy import inf, nan  # as Python prints these numbers",
            "",
        ]
        head += ["from app.engine.compiled.runtime import meet, note, product32, product64, report", ""]
        head += ["u = np.uintp  # indices that cannot be negative: LLVM then vectorises the loops over them", ""]
        head += [f"# functions of operators: {', '.join(functions)}", ""] if functions else []
        return Source("\n".join([*head, *self.lines]) + "\n", self.functions, parts, data, persistables, whole)

    def _parts(self) -> list[Part]:
        parts: list[Part] = []
        fresh = True
        for index, step in enumerate(self.lowered.steps):
            if step.in_python:
                fresh = True
            elif step.kind not in ("alias", "constant"):
                if fresh:
                    parts.append(Part(f"part_{len(parts)}", []))
                parts[-1].steps.append((index, step))
                fresh = False
        return parts

    def _is_read(self, name: str) -> bool:
        return name in self.fetch or any(name in step.op.inputs for step in self.lowered.steps)

    def _persistables(self) -> list[str]:
        found: dict[str, None] = {}
        for step in self.lowered.steps:
            found.update(
                dict.fromkeys(n for n in (*step.op.inputs, *step.op.outputs) if n and self.lowered.persists(n))
            )
        found.update(dict.fromkeys(n for n in self.fetch if self.lowered.persists(n)))
        return list(found)

    def _part(self, part: Part) -> None:
        """A function for the steps between two Python calls, on the arrays of one batch."""
        named = dict.fromkeys(n for _, s in part.steps for n in (*s.op.inputs, *s.op.outputs) if n)
        part.arguments = [n for n in named if n not in self.lowered.constants]
        self._header(part.name, ["shard", "shards", "shared", "n", *(self.name(n) for n in part.arguments)])
        self._steps(part.steps, 1)
        self.line(1, "return False")
        self.line(0, "")
        self.line(0, "")

    def _steps(self, steps: Sequence[tuple[int, Step]], depth: int) -> None:
        self.line(depth, "lo, hi = n * shard // shards, n * (shard + 1) // shards")
        for index, step in steps:
            self.line(0, "")
            self._step(index, step, depth)

    def _header(self, name: str, arguments: list[str]) -> None:
        self.line(0, "@njit(nogil=True, cache=True, error_model='numpy')")
        self.line(0, f"def {name}(")
        line = ""
        for argument in arguments:
            if len(line) + len(argument) > 104:
                self.line(1, line.rstrip())
                line = ""
            line += argument + ", "
        self.line(1, line.rstrip())
        self.line(0, "):")

    def _step(self, index: int, step: Step, depth: int) -> None:
        for text in self.loops.comment(step):
            self.line(depth, f"# {text}")
        if step.meet:
            self._meet(depth)
        if step.share == WHOLE:
            self.line(depth, "if shard == 0:")
            depth += 1
        if step.users:
            self.line(depth, f"note(shared, shard, {index})")
        {
            "loop": self.loops.write,
            "product": self._product,
            "filling": self._filling,
            "returning": self._returning,
            "copy": self._copy,
        }[step.kind](index, step, depth)

    def bounds(self, step: Step) -> tuple[str, str]:
        """The first row of a thread's share of a step, and the row after the last."""
        if step.share == ROWS:
            return "lo", "hi"
        if step.share == WHOLE:
            shape = self.lowered.shapes[step.op.outputs[0]]
            return "0", shape[0].text if shape else "1"
        return f"{step.share} * shard // shards", f"{step.share} * (shard + 1) // shards"

    def _product(self, index: int, step: Step, depth: int) -> None:
        op, lowered = step.op, self.lowered
        form: Product = op.definition.form
        x, y = (self.name(str(n)) for n in op.inputs[-2:])
        out = self.name(op.outputs[0])
        alpha, beta = "1.0", "0.0"
        if form.step:
            base, scale = (str(n) for n in op.inputs[:2])
            alpha = f"-{self.loops.scalar(scale)}"
            beta = "1.0"
            if base != op.outputs[0]:
                self.loops.copy(self.name(base), op.outputs[0], step, depth)
        low, high = self.bounds(step)
        bits = "32" if lowered.dtype(op.outputs[0]) == "float32" else "64"
        turns = op.attributes["transpose_x"], op.attributes["transpose_y"]
        self.line(depth, f"product{bits}({x}, {turns[0]}, {y}, {turns[1]}, {out}, {low}, {high}, {alpha}, {beta})")

    def _taken(self, step: Step) -> list[str]:
        form = step.op.definition.form
        takes = getattr(form, "takes", None)
        return [str(n) for n in (step.op.inputs if takes is None else [step.op.inputs[i] for i in takes])]

    def _settings(self, step: Step) -> list[str]:
        return [repr(v) for v in step.op.attributes.values()]

    def _slice(self, variable: str, step: Step) -> str:
        """A variable as a function on rows gets it: its share, or all where it has no rows."""
        shape = self.lowered.shapes[variable]
        if step.share == ROWS and shape and shape[0] == N:
            return f"{self.name(variable)}[lo:hi]"
        return self.name(variable)

    def _filling(self, index: int, step: Step, depth: int) -> None:
        form: Filling = step.op.definition.form
        function = self.function(form.function, step.op.type)
        values = [self._slice(n, step) for n in (*self._taken(step), *step.op.outputs)]
        self.line(depth, f"if not {function}({', '.join([*values, *self._settings(step)])}):")
        self.line(depth + 1, f"report(shared, {index})")
        self.line(depth + 1, "return True")

    def _returning(self, index: int, step: Step, depth: int) -> None:
        form: Returning = step.op.definition.form
        function = self.function(form.function, form.function.__name__)
        values = [self._slice(n, step) for n in self._taken(step)]
        results = [self.names.of(("result", n), f"{self.name(n)}_result") for n in step.op.outputs]
        self.line(depth, f"{', '.join(results)} = {function}({', '.join([*values, *self._settings(step)])})")
        for result, output in zip(results, step.op.outputs, strict=True):
            target = self._slice(output, step)
            self.line(depth, f"if {result}.shape != {target}.shape:")
            self.line(depth + 1, f"report(shared, {index})")
            self.line(depth + 1, "return True")
            self.loops.copy(result, output, step, depth)

    def _copy(self, index: int, step: Step, depth: int) -> None:
        source, target = self.name(str(step.op.inputs[0])), self.name(step.op.outputs[0])
        flat = self.names.of(("flat", target), f"{target}_flat"), self.names.of(("flat", source), f"{source}_flat")
        self.line(depth, f"{flat[0]}, {flat[1]} = {target}.reshape({target}.size), {source}.reshape({source}.size)")
        self.line(depth, f"for i in range({target}.size):")
        self.line(depth + 1, f"{flat[0]}[i] = {flat[1]}[i]")

    def _meet(self, depth: int) -> None:
        self.line(depth, "if meet(shared, shards):")
        self.line(depth + 1, "return True")

    # Many batches in one call

    def _train(self, steps: Sequence[tuple[int, Step]], data: list[str], persistables: list[str]) -> None:
        lowered = self.lowered
        buffers = [self.buffer(i) for i in range(len(self.plan.buffers))]
        results = {name: self.result(name) for name in self.fetch} if lowered.has_fixed_shapes(self.fetch) else {}
        arrays = [*(self.raw(n) for n in data), *(self.name(n) for n in persistables), *buffers, *results.values()]
        self._header("train", ["shard", "shards", "shared", "order", "first", "last", "batch", *arrays])
        self.line(1, "for iteration in range(first, last):")
        self.line(2, "rows = order[iteration * batch : min((iteration + 1) * batch, order.size)]")
        self.line(2, "n = rows.size")
        for name in dict.fromkeys([*self.plan.place, *lowered.roots]):
            self._view(name)
        self._meet(2)
        for name in sorted(lowered.gathered):
            self.line(2, "for i in range(n * shard // shards, n * (shard + 1) // shards):")
            self.line(3, f"{self.name(name)}[i] = {self.raw(name)}[rows[i]]")
        self._steps(steps, 2)
        if results:
            self.line(0, "")
            self._meet(2)
            self.line(2, "if shard == 0:")
        for name, result in results.items():
            value = self.name(name)
            if not lowered.shapes[name]:
                self.line(3, f"{result}[iteration - first, 0] = {value}[0]")
                continue
            flat = self.names.of(("flat", name), f"{value}_flat")
            self.line(3, f"{flat} = {value}.reshape({value}.size)")
            self.line(3, f"for i in range({value}.size):")
            self.line(4, f"{result}[iteration - first, i] = {flat}[i]")
        self.line(1, "return False")

    def _view(self, name: str) -> None:
        """A variable as the part of a buffer that this batch needs."""
        shape = self.lowered.shapes[name]
        part = f"{self.buffer(self.plan.place[self.lowered.root(name)])}[: {size_text(shape)}]"
        sizes = ", ".join(s.text for s in shape)
        self.line(2, f"{self.name(name)} = {part}" + (f".reshape({sizes})" if len(shape) > 1 else ""))

    def buffer(self, index: int) -> str:
        return self.names.of(("buffer", index), f"buffer_{index}")

    def result(self, name: str) -> str:
        return self.names.of(("fetched", name), f"fetched_{name}")
