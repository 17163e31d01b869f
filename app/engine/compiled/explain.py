"""How the compiled engine runs a Program, for people: a verdict for each operator, and the generated source."""

from __future__ import annotations

from collections.abc import Sequence

from app.engine.compiled.engine import compile_program
from app.engine.compiled.program import CompiledProgram
from app.graph.passes import optimise
from app.graph.program import Program


def explain(program: Program, fetch: Sequence[str] = (), source: bool = True) -> str:
    """For each operator left after the passes: inlined, compiled or a Python call, and why; then the source."""
    native = compile_program(program, list(fetch))
    if isinstance(native, str):
        return f"The reference engine runs this Program operator by operator: {native}."
    before, after = len(program.global_block().ops), len(optimise(program, set(fetch)).global_block().ops)
    lines = [f"{before} operators, {after} after the passes", "", *verdicts(native)]
    if source:
        lines += ["", native.source.text.rstrip()]
    return "\n".join(lines)


def verdicts(native: CompiledProgram) -> list[str]:
    """A line for each operator: what it makes, what it is, and how it runs."""
    rows = [(", ".join(s.op.outputs) or "-", s.op.type, s.verdict) for s in native.lowered.steps]
    widths = [min(max(len(row[i]) for row in rows), 48) for i in range(2)]
    return [f"{a:{widths[0]}}  {b:{widths[1]}}  {c}" for a, b, c in rows]
