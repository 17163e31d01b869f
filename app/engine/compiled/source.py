"""The source that is generated for a Program, as a tree that becomes machine code and as Python for people."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import prod
from typing import Any

from app.engine.compiled import runtime
from app.engine.compiled.buffers import Plan
from app.engine.compiled.kinds.native import NativeStep
from app.engine.compiled.language import (
    COUNT,
    INDEX,
    Array,
    Assign,
    Blank,
    Call,
    Element,
    Flat,
    Function,
    Infix,
    Length,
    Local,
    Number,
    Operand,
    Parameter,
    Return,
    View,
    printed,
)
from app.engine.compiled.parts import Part, parts_of, pattern
from app.engine.compiled.steps import Lowered
from app.engine.compiled.writer import HIGH, LOW, SHARD, SHARDS, SHARED, Writer, after
from app.ops.size import Size

HEAD = '''"""Generated for a Program: a comment before each step names the operator that it computes."""

from __future__ import annotations

import numpy as np
from numpy import inf, nan  # as Python prints these numbers

{functions}u = np.uintp  # indices that cannot be negative: LLVM then vectorises the loops over them
'''

THREAD = (Parameter("shard"), Parameter("shards"), Parameter("shared", "int64", (None,)))
ROWS = Array("rows")
"""Which rows of the data are the batch."""


@dataclass
class Source:
    """Generated text, the functions that it calls, and the order of its arguments."""

    text: str
    pattern: str
    """The text with variables replaced by numbers: equal for Programs that differ only in names."""
    trees: dict[str, Function]
    functions: dict[str, Any]
    parts: list[Part]
    data: list[str]
    persistables: list[str]
    is_whole: bool
    """Whether it has `train`, which runs many batches in one call. With Python calls in between, it has only parts."""


def generate(lowered: Lowered, plan: Plan, fetch: Sequence[str], whole: bool = True) -> Source:
    """Generate the source of a lowered Program; unless `whole`, only its parts."""
    return _Generator(lowered, plan, fetch).source(whole)


class _Generator:
    def __init__(self, lowered: Lowered, plan: Plan, fetch: Sequence[str]):
        self.lowered, self.plan, self.fetch = lowered, plan, fetch
        self.out = Writer(lowered, plan)
        self.functions: list[str] = []
        """The text of each."""
        self.trees: dict[str, Function] = {}

    def source(self, whole: bool) -> Source:
        lowered, out = self.lowered, self.out
        whole = whole and not any(step.in_python for step in lowered.steps)
        variables = lowered.program.global_block().vars
        if not whole:  # then every batch is gathered before its first part
            lowered.gathered |= {n for n, v in variables.items() if v.is_data}
        data = [n for n, v in variables.items() if v.is_data and self._is_read(n)]
        persistables = self._persistables()
        parts = parts_of(lowered)
        if not whole or len(parts) > 1:
            names_of_parts: dict[str, str] = {}
            for part in parts:
                self._part(part, names_of_parts, not whole)
        if whole:
            self.trees["train"] = self._train(parts, data, persistables)
            self.functions.append("\n".join(printed(self.trees["train"])))
        called = sorted(out.functions)
        names = f"# functions of operators: {', '.join(called)}\n\n" if called else ""
        body = names + "\n\n\n".join(self.functions)
        text = "\n".join([HEAD.format(functions=_imported(runtime.called_in(body))), body]) + "\n"
        same = pattern(text.splitlines(), out.names, out.functions)
        return Source(text, same, self.trees, out.functions, parts, data, persistables, whole)

    def _is_read(self, name: str) -> bool:
        return name in self.fetch or any(name in step.op.inputs for step in self.lowered.steps)

    def _persistables(self) -> list[str]:
        used = [n for step in self.lowered.steps for n in (*step.op.inputs, *step.op.outputs) if n]
        return list(dict.fromkeys(name for name in (*used, *self.fetch) if self.lowered.persists(name)))

    # The function of some steps

    def _part(self, part: Part, names_of_parts: dict[str, str], is_called_by_python: bool) -> None:
        """Write the function of a part, unless there is one that differs from it only in names."""
        out, lowered = self.out, self.lowered
        touched = dict.fromkeys(name for _, step in part.steps for name in step.touched)
        part.arguments = [name for name in touched if name not in lowered.constants]
        arguments = [self._parameter(name, self._handed(name, out.flat)) for name in part.arguments]
        numbers = [Parameter("step"), Parameter("rows", "int64", (None,)), Parameter("n")]
        function = Function(part.name, [*THREAD, *numbers, *arguments], [], is_called_by_python)
        with out.inside(function.body):
            out.do("begin", SHARED, SHARD, Local("step", COUNT))
            if is_called_by_python:  # no thread changes anything before all have begun, as some may never do
                out.meet()
            flat = [name for name in part.arguments if lowered.comes_flat(name)]
            self._views(flat, out.flat, are_planned=not is_called_by_python)
            self._steps(part.steps, part.first)
            out.add(Return(False))
        body = list(printed(function))[1:]  # without its name
        same = pattern([str(is_called_by_python), *body], out.names, out.functions)
        if same not in names_of_parts:
            self.functions.append("\n".join(printed(function)))
            self.trees[part.name] = function
        part.name = names_of_parts.setdefault(same, part.name)

    def _steps(self, steps: Sequence[tuple[int, NativeStep]], first: int) -> None:
        """Write steps in order. They are numbered from `first`, so that an error can name the operator."""
        out = self.out
        out.add(Assign([LOW, HIGH], out.rows))
        groups: list[list[tuple[int, NativeStep]]] = []
        for number, step in steps:
            if groups and step.joins_tiles_of(groups[-1][-1][1]):
                groups[-1].append((number - first, step))
            else:
                groups.append([(number - first, step)])
        for group in groups:
            out.add(Blank())
            if group[0][1].must_meet:
                out.meet()
            with out.tiles() if len(group) > 1 else nullcontext():
                for number, step in group:
                    out.comment(step.comment)
                    with out.when(out.is_first) if step.is_alone else nullcontext():
                        self._step(step, number)

    def _step(self, step: NativeStep, number: int) -> None:
        if step.users or step.calls_function:
            self.out.do("note", SHARED, SHARD, Number(number, COUNT))
        step.write(self.out)

    def _views(self, names: Sequence[str], memory: Callable[[str], str], are_planned: bool) -> None:
        """Declare variables as views of memory. Variables with the same memory and shape become one array, so that LLVM
        vectorises a loop that reads one and writes the other."""
        first: dict[View, str] = {}
        for name in names:
            place = self.out.view(name, self.out.memory(name) if are_planned else memory(name))
            same = first.setdefault(place, name)
            value = self.out.view(name, memory(name)) if same == name else self.out.array(same)
            self.out.assign(self.out.array(name), value)

    def _handed(self, name: str, flat: Callable[[str], str]) -> str:
        """Return the name for a variable in the call or declaration of a part; `flat` names its memory."""
        return flat(name) if self.lowered.comes_flat(name) else self.out.array_name(name)

    def _argument(self, name: str) -> Operand:
        """A variable as an argument of a part."""
        is_view = self.lowered.comes_flat(name) and self.lowered.persists(self.lowered.root(name))
        memory = self._handed(name, self.out.memory)
        return Flat(memory) if is_view else Array(memory)

    def _parameter(self, name: str, called: str) -> Parameter:
        """A variable as a parameter of a part."""
        lowered = self.lowered
        if lowered.comes_flat(name):
            return Parameter(called, lowered.dtype(name), (None,))
        return self._array(name, called)

    def _array(self, name: str, called: str) -> Parameter:
        """Data or a persistable variable as a parameter; known sizes are part of the code."""
        sizes = [None if isinstance(size, Size) else size for size in self.lowered.shapes[name]]
        return Parameter(called, self.lowered.dtype(name), tuple(sizes) or (1,))

    # The function of many batches

    def _train(self, parts: Sequence[Part], data: list[str], persistables: list[str]) -> Function:
        lowered, out = self.lowered, self.out
        buffers = [Parameter(out.buffer(i), b.dtype, (None,)) for i, b in enumerate(self.plan.buffers)]
        results = {name: self._fetched(name) for name in self.fetch} if lowered.has_fixed_shapes(self.fetch) else {}
        arrays = [self._array(name, out.raw(name)) for name in data]
        arrays += [*(self._array(name, out.name(name)) for name in persistables), *buffers]
        for name, result in results.items():
            arrays.append(Parameter(result, lowered.dtype(name), (None, prod(lowered.shape_at(name, 0)))))
        numbers = [Parameter("order", "int64", (None,)), *map(Parameter, ("first", "last", "batch"))]
        function = Function("train", [*THREAD, *numbers, *arrays], [])
        with out.inside(function.body):
            with out.loop("iteration", Local("first", COUNT), Local("last", COUNT)):
                self._begin_batch([name for name in results if len(parts) > 1], are_parts=len(parts) > 1)
                if len(parts) == 1:
                    self._steps(parts[0].steps, 0)
                else:
                    self._calls(parts)
                self._write_down(results)
            out.add(Return(False))
        return function

    def _begin_batch(self, results: Sequence[str], are_parts: bool) -> None:
        """Write the start of a batch: its rows, its variables as views of memory, and the gathering of data."""
        lowered, out = self.lowered, self.out
        iteration, size = Local("iteration", COUNT), Local("batch", COUNT)
        first, end = Infix(iteration, "*", size, COUNT), Infix(after(iteration), "*", size, COUNT)
        out.assign(ROWS, Array("order", (first, Call("min", (end, Length("order")), COUNT))))
        out.assign(Local("n", COUNT), Length("rows"))
        viewed = {*lowered.gathered, *results} if are_parts else {*self.plan.place, *lowered.roots}
        every = dict.fromkeys([*self.plan.place, *lowered.roots])
        self._views([name for name in every if name in viewed], out.memory, are_planned=True)
        out.meet()
        i = Local("i", INDEX)
        for name in sorted(lowered.gathered):
            with out.loop("i", *out.rows):
                if len(lowered.shapes[name]) > 1:
                    out.do("fetch_ahead", Array(out.raw(name)), ROWS, i)
                row = Element(out.raw(name), (Element("rows", (i,), COUNT),), lowered.dtype(name))
                out.assign(out.element(name, [i]), row)

    def _calls(self, parts: Sequence[Part]) -> None:
        """Write the calls of all parts."""
        out = self.out
        for part in parts:
            for _, step in part.steps:
                out.comment(step.comment)
            arrays = [self._argument(name) for name in part.arguments]
            first = Number(part.first, COUNT)
            out.give_up_if(Call(part.name, (SHARD, SHARDS, SHARED, first, ROWS, Local("n", COUNT), *arrays)))

    def _write_down(self, results: dict[str, str]) -> None:
        """Store the fetched values of this batch."""
        out, lowered = self.out, self.lowered
        if not results:
            return
        out.add(Blank())
        if not lowered.unsettled.isdisjoint(map(lowered.root, results)):
            out.meet()
        batch = Infix(Local("iteration", COUNT), "-", Local("first", COUNT), COUNT)
        with out.when(out.is_first):
            for name, result in results.items():
                rank = len(lowered.shapes[name])
                if rank == 0:
                    dtype = lowered.dtype(name)
                    out.assign(Element(result, (batch, Number(0, COUNT)), dtype), out.number(name))
                else:
                    value = out.array(name) if rank == 1 else Flat(out.name(name))
                    out.do("write_down", Array(result), batch, value)

    def _fetched(self, name: str) -> str:
        return self.out.names.of(("fetched", name), f"fetched_{name}")


def _imported(names: Sequence[str]) -> str:
    """Return the import of these names, wrapped to short lines."""
    lines = textwrap.wrap(", ".join(sorted(names)), 100)
    if not lines:
        return ""
    listed = lines[0] if len(lines) == 1 else "(\n    " + "\n    ".join(lines) + ",\n)"
    return f"from opsmith.engine.compiled.runtime import {listed}\n\n"
