"""The source that is generated for a Program: Python that a person can read and Numba can compile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from app.engine.compiled.buffers import Plan
from app.engine.compiled.lowered import LAST, WHOLE, Lowered
from app.engine.compiled.parts import Part, parts_of, pattern
from app.engine.compiled.steps import StepWriter
from app.engine.compiled.writer import Writer

HEAD = '''"""Generated for a Program: a comment before each step names the operator that it computes."""

import numpy as np
from numba import njit
from numpy import inf, nan  # as Python prints these numbers

from app.engine.compiled.runtime import begin, cut, fetch_ahead, meet, note, product32, product64, report
from app.engine.compiled.runtime import add_exactly, given_back, stay_apart, write_down

u = np.uintp  # indices that cannot be negative: LLVM then vectorises the loops over them
'''

KEEPING = "from app.engine.compiled.runtime import forget, keep, kept_rows  # what loops keep of their iterations\n"

READING = "from app.engine.compiled.runtime import copied, read_only  # what users' functions are given\n"

CALLING = "from app.engine.compiled.runtime import call_python\n"


@dataclass
class Source:
    """Generated text, the functions that it calls, and the order of its arguments."""

    text: str
    functions: dict[str, Callable[..., Any]]
    parts: list[Part]
    data: list[str]
    persistables: list[str]
    kept: list[str]
    """What loops keep of their iterations, in memory that grows."""
    whole: bool
    """Whether it has `train`, which runs many batches in one call; a Python call in between prevents that."""


def generate(lowered: Lowered, plan: Plan, fetch: Sequence[str], whole: bool = True) -> Source:
    """The source of a lowered Program, which fetches some variables; in parts alone, if not `whole`."""
    return _Generator(lowered, plan, fetch).source(whole)


class _Generator:
    def __init__(self, lowered: Lowered, plan: Plan, fetch: Sequence[str]):
        self.lowered, self.plan, self.fetch = lowered, plan, fetch
        self.writer = Writer(lowered, plan)
        self.line, self.name = self.writer.line, self.writer.name
        self.steps = StepWriter(self.writer)

    def source(self, whole: bool) -> Source:
        lowered = self.lowered
        whole = whole and not any(step.in_python for step in lowered.steps)
        variables = lowered.program.global_block().vars
        if not whole:  # then every batch is gathered before its first part
            lowered.gathered |= {n for n, v in variables.items() if v.is_data}
        data = [n for n, v in variables.items() if v.is_data and self._is_read(n)]
        persistables = self._persistables()
        parts = parts_of(lowered)
        if not whole or len(parts) > 1:
            known: dict[str, str] = {}
            for part in parts:
                self._part(part, known, not whole)
        if whole:
            self._train(parts, data, persistables)
        functions = sorted(self.writer.functions)
        names = [f"# functions of operators: {', '.join(functions)}", ""] if functions else []
        more = [KEEPING] if lowered.kept else []
        more += [CALLING] if any(step.kind == "in_place" for step in lowered.steps) else []
        more += [READING] if any(step.kind == "returning" for step in lowered.everything) else []
        text = "\n".join([HEAD, *more, *names, *self.writer.lines]) + "\n"
        return Source(text, self.writer.functions, parts, data, persistables, sorted(lowered.kept), whole)

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

    def _part(self, part: Part, known: dict[str, str], kept: bool) -> None:
        """The function for some steps, unless there is one that differs from it only in names."""
        named = dict.fromkeys(n for _, s in part.steps for n in s.touched)
        part.arguments = [n for n in named if n not in self.lowered.constants]
        arguments = [self._handed(n, self.writer.flat) for n in part.arguments]
        before = len(self.writer.lines)
        self.writer.header("_", ["shard", "shards", "shared", "step", "rows", "n", *arguments], kept)
        self.line(1, "stay_apart()")
        self.line(1, "begin(shared, shard, step)")
        self._views([n for n in part.arguments if self.lowered.comes_flat(n)], self.writer.flat, 1, not kept)
        self.steps.write(part.steps, part.first, 1)
        self.line(1, "return False")
        written = self.writer.lines[before:]
        same = pattern(written, self.writer.names, self.writer.functions)
        if same in known:
            del self.writer.lines[before:]
        else:
            self.writer.lines[before:] = [line.replace("def _(", f"def {part.name}(", 1) for line in written] + ["", ""]
        part.name = known.setdefault(same, part.name)

    def _views(self, names: Sequence[str], memory: Callable[[str], str], depth: int, planned: bool) -> None:
        """Variables as parts of memory. Those that were planned into the same part are one array: LLVM then sees that
        they are, and makes instructions on vectors of a loop that reads one and writes the other."""
        first: dict[str, str] = {}
        for name in names:
            part = self.writer.part(name, self.writer.memory(name) if planned else memory(name))
            same = first.setdefault(part, name)
            text = self.writer.part(name, memory(name)) if same == name else self.name(same)
            self.line(depth, f"{self.name(name)} = {text}")

    def _handed(self, name: str, flat: Callable[[str], str]) -> str:
        """What stands for a variable where a part is called, or declared; `flat` names the memory that it lies in."""
        return flat(name) if self.lowered.comes_flat(name) else self.writer.array(name)

    def _train(self, parts: Sequence[Part], data: list[str], persistables: list[str]) -> None:
        lowered = self.lowered
        buffers = [self.writer.buffer(i) for i in range(len(self.plan.buffers))]
        results = {name: self._fetched(name) for name in self.fetch} if lowered.has_fixed_shapes(self.fetch) else {}
        arrays = [*map(self.writer.raw, data), *map(self.name, persistables), *buffers]
        arrays += [*map(self.name, sorted(lowered.kept)), *results.values()]
        self.writer.header("train", ["shard", "shards", "shared", "order", "first", "last", "batch", *arrays])
        self.line(1, "for iteration in range(first, last):")
        self.line(2, "rows = order[iteration * batch : min((iteration + 1) * batch, order.size)]")
        self.line(2, "n = rows.size")
        wanted = {*lowered.gathered, *results} if len(parts) > 1 else {*self.plan.place, *lowered.roots}
        every = dict.fromkeys([*self.plan.place, *lowered.roots])
        self._views([name for name in every if name in wanted], self.writer.memory, 2, True)
        self.writer.meet(2)
        for name in sorted(lowered.gathered):
            self.line(2, "for i in range(cut(n, shard, shards), cut(n, shard + 1, shards)):")
            if len(lowered.shapes[name]) > 1:
                self.line(3, f"fetch_ahead({self.writer.raw(name)}, rows, i)")
            self.line(3, f"{self.name(name)}[i] = {self.writer.raw(name)}[rows[i]]")
        if len(parts) == 1:
            self.steps.write(parts[0].steps, 0, 2)
        else:
            self._calls(parts)
        writers = {name: lowered.unsettled.get(lowered.root(name), WHOLE) for name in results}
        if results:
            self.line(0, "")
        if not set(writers.values()) <= {WHOLE, LAST}:
            self.writer.meet(2)
            writers = dict.fromkeys(results, WHOLE)
        for name, result in results.items():
            self.line(2, f"if shard == {self.writer.loner(writers[name])}:")
            value = self.name(name)
            if not lowered.shapes[name]:
                self.line(3, f"{result}[iteration - first, 0] = {value}[0]")
                continue
            flat = value if len(lowered.shapes[name]) == 1 else f"{value}.reshape({value}.size)"
            self.line(3, f"write_down({result}, iteration - first, {flat})")
        self.line(1, "return False")

    def _calls(self, parts: Sequence[Part]) -> None:
        """The calls of all parts. There is one way out of them, as arrays are let go of at each way out."""
        self.line(2, "if (")
        for part in parts:
            for _, step in part.steps:
                for text in self.steps.loops.comment(step):
                    self.line(3, f"# {text}")
            arrays = [self._handed(n, self.writer.memory) for n in part.arguments]
            call = f"{part.name}(shard, shards, shared, u({part.first}), rows, n, {', '.join(arrays)})"
            self.line(3, call if part is parts[0] else f"or {call}")
        self.line(2, "):")
        self.line(3, "return True")

    def _fetched(self, name: str) -> str:
        return self.writer.names.of(("fetched", name), f"fetched_{name}")
