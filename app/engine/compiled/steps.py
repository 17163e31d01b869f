"""The source of steps: each kind of step in its own words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.engine.compiled.loops import LoopWriter
from app.engine.compiled.lowered import ROWS, Step, values_taken
from app.engine.compiled.schedule import FREE
from app.engine.compiled.sizes import N
from app.engine.compiled.verdict import only_reads_arrays
from app.engine.compiled.writer import Writer
from app.ops.form import Filling, Product, Returning


class StepWriter:
    """Writes steps, whatever their kind."""

    def __init__(self, writer: Writer):
        self.writer, self.lowered = writer, writer.lowered
        self.line, self.name = writer.line, writer.name
        self.loops = LoopWriter(writer)

    def write(self, steps: Sequence[tuple[int, Step]], base: int, depth: int) -> None:
        """A function's steps; what they are called in errors is counted from its first one."""
        self.line(depth, "lo, hi = cut(n, shard, shards), cut(n, shard + 1, shards)")
        for index, step in steps:
            self.line(0, "")
            self._step(index - base, step, depth)

    def _step(self, index: int, step: Step, depth: int) -> None:
        for text in self.loops.comment(step):
            self.line(depth, f"# {text}")
        if step.meet:
            self.writer.meet(depth)
        if step.alone:
            self.line(depth, f"if shard == {self.writer.loner(step.share)}:")
            depth += 1
        if step.users or any(part.kind in ("filling", "returning", "in_place") for part in step.everything):
            self.line(depth, f"note(shared, shard, u({index}))")
        self._kind(step, depth)

    def _kind(self, step: Step, depth: int) -> None:
        write: Callable[[Step, int], None] = {
            "loop": self.loops.write,
            "product": self._product,
            "filling": self._filling,
            "returning": self._returning,
            "copy": self._copy,
            "keep": self._keep,
            "in_place": self._in_place,
            "if": self._if,
            "while": self._while,
        }[step.kind]
        write(step, depth)

    # Control flow

    def _inside(self, steps: Sequence[Step], depth: int) -> None:
        """The steps of one part of control flow, which one thread does."""
        written = [step for step in steps if step.kind not in FREE]
        for step in written:
            for text in self.loops.comment(step):
                self.line(depth, f"# {text}")
            self._kind(step, depth)
        if not written:
            self.line(depth, "pass")

    def _if(self, step: Step, depth: int) -> None:
        holds, fails = step.inside.values()
        self.line(depth, f"if {self.loops.scalar(step.answer)}:")
        self._inside(holds, depth + 1)
        if any(part.kind not in FREE for part in fails):
            self.line(depth, "else:")
            self._inside(fails, depth + 1)

    def _while(self, step: Step, depth: int) -> None:
        before, asking, body = (step.inside[word] for word in ("before", "condition", "body"))
        for name in step.op.outputs:
            if name in self.lowered.kept:
                self.line(depth, f"forget({self.name(name)})")
        if any(part.kind not in FREE for part in before):
            self._inside(before, depth)
        self.line(depth, "while True:")
        if any(part.kind not in FREE for part in asking):
            self._inside(asking, depth + 1)
        self.line(depth + 1, f"if not {self.loops.scalar(step.answer)}:")
        self.line(depth + 2, "break")
        self._inside(body, depth + 1)

    def _keep(self, step: Step, depth: int) -> None:
        self.line(depth, f"keep({self.name(step.op.outputs[0])}, {self.name(str(step.op.inputs[0]))})")

    def _product(self, step: Step, depth: int) -> None:
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
        low, high = self.writer.bounds(step)
        bits = "32" if lowered.dtype(op.outputs[0]) == "float32" else "64"
        turns = [op.attributes[name] for name in form.transposes]
        self.line(depth, f"product{bits}({x}, {turns[0]}, {y}, {turns[1]}, {out}, {low}, {high}, {alpha}, {beta})")

    def _settings(self, step: Step) -> list[str]:
        return [repr(v) for v in step.op.attributes.values()]

    def _slice(self, variable: str, step: Step) -> str:
        """A variable as a function on rows gets it: its share, or all where it has no rows."""
        shape = self.lowered.shapes[variable]
        if step.share == ROWS and shape and shape[0] == N:
            return f"{self.name(variable)}[lo:hi]"
        return self.name(variable)

    def _filling(self, step: Step, depth: int) -> None:
        form: Filling = step.op.definition.form
        function = self.writer.function(form.function, step.op.type)
        values = [self._slice(n, step) for n in (*values_taken(step.op), *step.op.outputs)]
        if values_taken(step.op)[0] in self.lowered.kept:
            values[0] = f"kept_rows({values[0]}, {self.name(step.op.outputs[0])})"
        any_rows = "lo < hi and " if step.share == ROWS else ""
        self.line(depth, f"if {any_rows}not {function}({', '.join([*values, *self._settings(step)])}):")
        self.line(depth + 1, "report(shared, shard)")
        self.line(depth + 1, "return True")

    def _returning(self, step: Step, depth: int) -> None:
        form: Returning = step.op.definition.form
        function = self.writer.function(form.function, form.function.__name__)
        give = "read_only" if only_reads_arrays(step.op, self.lowered) else "copied"
        values = [f"{give}({self._slice(n, step)})" for n in values_taken(step.op)]
        results = [self.writer.names.of(("result", n), f"{self.name(n)}_result") for n in step.op.outputs]
        if step.share == ROWS:
            self.line(depth, "if lo < hi:")
            depth += 1
        self.line(depth, f"{', '.join(results)} = {function}({', '.join([*values, *self._settings(step)])})")
        for result, output in zip(results, step.op.outputs, strict=True):
            target = self._slice(output, step)
            self.line(depth, f"if {result}.shape != {target}.shape:")
            self.line(depth + 1, "report(shared, shard)")
            self.line(depth + 1, "return True")
            self.loops.copy(result, output, step, depth)

    def _in_place(self, step: Step, depth: int) -> None:
        self.line(depth, "if call_python(shared, n):")
        self.line(depth + 1, "return True")

    def _copy(self, step: Step, depth: int) -> None:
        source, target = self.name(str(step.op.inputs[0])), self.name(step.op.outputs[0])
        here, there = (self.writer.flat(n) for n in (step.op.outputs[0], str(step.op.inputs[0])))
        self.line(depth, f"{here}, {there} = {target}.reshape({target}.size), {source}.reshape({source}.size)")
        self.line(depth, f"for i in range({target}.size):")
        self.line(depth + 1, f"{here}[i] = {there}[i]")
