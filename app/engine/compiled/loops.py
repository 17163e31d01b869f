"""The loops of generated source: elementwise chains, reductions and their counterparts, over any number of axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.engine.compiled.lowered import ROWS, Step, values_taken
from app.engine.compiled.sizes import Shape, UnknownSizeError
from app.engine.compiled.writer import Writer
from app.graph.program import Operator
from app.ops.dtype import INTEGERS
from app.ops.form import Constant, Elementwise, Fused, Reduction, Spread


class LoopWriter:
    """Writes steps of the kind `loop`."""

    def __init__(self, writer: Writer):
        self.writer = writer
        self.lowered = writer.lowered

    def comment(self, step: Step) -> list[str]:
        """What a step computes, in the words of the Program."""
        form = step.op.definition.form
        if step.kind == "keep":
            return []
        return [_short(op) for op in form.body] if isinstance(form, Fused) else [_short(step.op)]

    def write(self, step: Step, depth: int) -> None:
        form = step.op.definition.form
        if isinstance(form, Reduction):
            self._reduction(step, form, depth)
        else:
            self._elementwise(step, depth)

    def copy(self, source: str, target: str, step: Step, depth: int) -> None:
        """Copy an array that has a thread's rows, or everything, into a variable. (`a[:] = b` takes Numba long.)"""
        shape = self.lowered.shapes[target]
        index = [f"i{axis}" for axis in range(len(shape))]
        for axis, size in enumerate(shape):
            shared = axis == 0 and not step.alone
            self.line(depth + axis, f"for i{axis} in range({self._range(step) if shared else f'u({size})'}):")
        there = ", ".join(index) or "0"
        cut = step.share == ROWS and step.kind == "returning"
        here = ", ".join([f"i0 - u({self.writer.bounds(step)[0]})", *index[1:]]) if cut else there
        self.line(depth + len(shape), f"{self.writer.name(target)}[{there}] = {source}[{here}]")

    # One element of each output from one element of each input

    def _elementwise(self, step: Step, depth: int) -> None:
        shape = self.lowered.shapes[step.op.outputs[0]]
        ranges = {axis: f"u({size})" for axis, size in enumerate(shape)}
        if not step.alone:
            ranges[0] = self._range(step)
        for axis in range(len(shape)):
            self.line(depth, f"for i{axis} in range({ranges[axis]}):")
            depth += 1
            if axis == 0 and any(name and self.writer.is_scattered(name) for name in step.op.inputs):
                self.line(depth, "row = u(rows[i0])")
                for name in dict.fromkeys(n for n in step.op.inputs if n and self.writer.is_scattered(n)):
                    self.line(depth, f"fetch_ahead({self.writer.array(name)}, rows, i0)")
        local: dict[str, str] = {}
        form = step.op.definition.form
        for member in form.body if isinstance(form, Fused) else (step.op,):
            self._element(member, shape, local, set(step.op.outputs), depth)

    def _range(self, step: Step) -> str:
        low, high = self.writer.bounds(step)
        return f"u({low}), u({high})"

    def _element(self, op: Operator, shape: Shape, local: dict[str, str], outputs: set[str], depth: int) -> None:
        """One operator on one element. `local` holds the variables that stay inside the loop."""
        form = op.definition.form
        if isinstance(form, Constant):
            value = self.literal(form.value(op.attributes), self.lowered.dtype(op.outputs[0]))
        elif isinstance(form, Spread):
            value = self._spread(op, form, shape)
        else:
            value = self._call(op, form, shape, local)
        targets = [self._target(name, shape, local, outputs) for name in op.outputs]
        if len(targets) == 1:
            value = self._cast(value, op.outputs[0])
        self.line(depth, f"{', '.join(targets)} = {value}")

    def _target(self, name: str, shape: Shape, local: dict[str, str], outputs: set[str]) -> str:
        if name in outputs:
            local[name] = self._place(name, shape)
        else:
            local[name] = self.writer.names.of(("local", name), f"{self.writer.name(name)}_one")
        return local[name]

    def _call(self, op: Operator, form: Elementwise, shape: Shape, local: dict[str, str]) -> str:
        taken = values_taken(op)
        values = [local.get(n) or self._place(n, shape) for n in taken]
        if not form.settings and len(values) == 1:
            return values[0]
        settings = [repr(v) for v in op.attributes.values()] if form.settings else []
        function = form.function
        if form.integers is not None and self.lowered.dtype(taken[0]) in INTEGERS:
            function = form.integers
        return f"{self.writer.function(function, op.type, on_numbers=True)}({', '.join([*values, *settings])})"

    def _spread(self, op: Operator, form: Spread, shape: Shape) -> str:
        """The element of a reduced value that stands for an element of the whole."""
        y = str(op.inputs[0])
        axes = form.axes(op.attributes, len(shape))
        if y in self.lowered.constants:
            value = self.scalar(y)
        else:
            kept = len(self.lowered.shapes[y]) == len(shape)
            index = ["0" if a in axes else f"i{a}" for a in range(len(shape)) if kept or a not in axes]
            value = f"{self.writer.name(y)}[{', '.join(index) or '0'}]"
        if not form.share(op.attributes):
            return value
        return f"{value} / {self._number(self._count(shape, set(axes)), self.lowered.dtype(op.outputs[0]))}"

    # Folding along axes

    def _reduction(self, step: Step, form: Reduction, depth: int) -> None:
        """Fold the last axes, if they all go, in variables of their own; others are folded row by row.

        The sums of the former are exact to the last place or so of their type (see `_Folding`). The latter are folded
        in the type of the result one after the other, as NumPy does where it adds row to row.
        """
        op = step.op
        x, out = str(op.inputs[0]), op.outputs[0]
        shape, kept = self.lowered.shapes[x], self.lowered.shapes[out]
        axes = set(form.axes(op.attributes, len(shape)))
        outer = self._outer_axes(shape, kept, axes)
        target = f"{self.writer.name(out)}[{', '.join(outer[a] for a in range(len(kept))) or '0'}]"
        ranges = {a: f"u({size})" for a, size in enumerate(shape)}
        if kept and not step.alone:
            first = next(a for a in range(len(shape)) if outer[0] == f"i{a}")
            ranges[first] = self._range(step)
        whole_axes = [a for a in range(len(shape)) if f"i{a}" in outer.values()]
        last = max(whole_axes, default=-1) + 1
        rest, inside = range(last), range(last, len(shape))
        folding = _Folding(self, form, self.lowered.dtype(out))
        share = f" / {self._count(shape, axes)}" if form.mean else ""
        if inside and len(whole_axes) == last:
            depth = self._nest(rest, ranges, depth)
            value = folding.fold(lambda: self._nest(inside, ranges, depth), self._read(x, len(shape)), depth)
            self.line(depth, f"{target} = {value}{share}")
            return
        self.line(self._nest(whole_axes, ranges, depth), f"{target} = {folding.start}")
        deeper = self._nest(rest, ranges, depth)
        value = self._read(x, len(shape))
        if inside:
            value = folding.fold(lambda: self._nest(inside, ranges, deeper), value, deeper)
        self.line(deeper, f"{target} = {folding.combined(target, value)}")
        if share:
            count = self._number(self._count(shape, axes), self.lowered.dtype(out))
            self.line(self._nest(whole_axes, ranges, depth), f"{target} /= {count}")

    def _outer_axes(self, shape: Shape, kept: Shape, axes: set[int]) -> dict[int, str]:
        """For each axis of the result, the index of the input's loop that it is written at."""
        if len(kept) == len(shape) - len(axes):
            places = [a for a in range(len(shape)) if a not in axes]
        else:
            places = list(range(len(shape) - len(kept), len(shape)))
        if any(a not in axes and kept[p] != shape[a] for p, a in enumerate(places)):
            raise UnknownSizeError("a sum to a shape may or may not have to be stretched")
        return {p: "0" if a in axes or shape[a] == 1 else f"i{a}" for p, a in enumerate(places)}

    def _nest(self, axes: Any, ranges: dict[int, str], depth: int) -> int:
        for axis in axes:
            self.line(depth, f"for i{axis} in range({ranges[axis]}):")
            depth += 1
        return depth

    def _count(self, shape: Shape, axes: set[int]) -> str:
        return "(" + (" * ".join(f"({shape[a]})" for a in sorted(axes)) or "1") + ")"

    # Elements and numbers

    def _place(self, name: str, shape: Shape) -> str:
        """A variable's element at the place of an output's element: its axes are the output's last ones."""
        if name in self.lowered.constants:
            return self.scalar(name)
        own = self.lowered.shapes[name]
        offset = len(shape) - len(own)
        index = []
        for axis, size in enumerate(own):
            if size == 1 and shape[offset + axis] != 1:
                index.append("0")
            elif size == shape[offset + axis]:
                index.append(f"i{offset + axis}")
            else:
                wide = shape[offset + axis]
                raise UnknownSizeError(f"{name} may or may not have to be stretched: {size} against {wide}")
        if self.writer.is_scattered(name):
            if index[0] != "i0":
                raise UnknownSizeError(f"{name} is read at other rows than those of the batch")
            return f"{self.writer.array(name)}[{', '.join(['row', *index[1:]])}]"
        return f"{self.writer.name(name)}[{', '.join(index) or '0'}]"

    def _read(self, name: str, rank: int) -> str:
        """The element of a variable at the place of the loops over all of its axes."""
        if name in self.lowered.constants:
            return self.scalar(name)
        return f"{self.writer.name(name)}[{', '.join(f'i{a}' for a in range(rank)) or '0'}]"

    def scalar(self, name: str) -> str:
        """A variable that is a single number."""
        if name in self.lowered.constants:
            return self.literal(self.lowered.constants[name], self.lowered.dtype(name))
        return f"{self.writer.name(name)}[{', '.join('0' for _ in self.lowered.shapes[name]) or '0'}]"

    def literal(self, value: Any, dtype: str) -> str:
        """A number of a type, as source."""
        if dtype == "bool":
            return str(bool(value))
        text = repr(value)
        if text in ("inf", "-inf", "nan"):
            text = f"np.{text}" if text[0] != "-" else "-np.inf"
        return self._number(text, dtype)

    def _number(self, text: str, dtype: str) -> str:
        return f"np.{dtype}({text})"

    def _cast(self, value: str, name: str) -> str:
        dtype = self.lowered.dtype(name)
        return f"bool({value})" if dtype == "bool" else self._number(value, dtype)

    def line(self, depth: int, text: str) -> None:
        self.writer.line(depth, text)


class _Folding:
    """How a reduction's elements become one, in variables that live outside the loop.

    Sums of single precision add up in double. Sums of double precision keep what each addition rounds away, and get it
    back at the end: such a loop waits for one addition after the other in any case, so that this takes no longer.
    """

    def __init__(self, loops: LoopWriter, form: Reduction, dtype: str):
        self._loops, self._form, self._dtype = loops, form, dtype
        self.start = loops.literal(form.start(dtype), dtype)

    def combined(self, folded: str, element: str) -> str:
        """A value and one more."""
        if self._form.combine is None:
            return f"{folded} + {element}"
        function = self._loops.writer.function(self._form.combine, self._form.combine.__name__.strip("_<>"))
        return f"{function}({folded}, {element})"

    def fold(self, nest: Callable[[], int], element: str, depth: int) -> str:
        """Write the loop, which `nest` opens, over the elements; gives the value that they became."""
        adds = self._form.combine is None
        if adds and self._dtype == "float64":
            self._loops.line(depth, f"folded, lost = {self.start}, {self.start}")
            self._loops.line(nest(), f"folded, lost = add_exactly(folded, lost, {element})")
            return "given_back(folded, lost)"
        wide = "np.float64" if adds and self._dtype == "float32" else ""
        self._loops.line(depth, f"folded = {wide}({self.start})" if wide else f"folded = {self.start}")
        self._loops.line(nest(), f"folded = {self.combined('folded', element)}")
        return "folded"


def _short(op: Operator) -> str:
    text = str(op)
    return text if len(text) <= 110 else text[:107] + "..."
