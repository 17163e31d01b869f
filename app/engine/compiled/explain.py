"""How the compiled engine runs a Program, for people: a verdict for each operator, and the generated source."""

from __future__ import annotations

from collections.abc import Sequence

from app.engine.compiled.engine import compile_program
from app.engine.compiled.lowering import Step
from app.engine.compiled.program import CompiledProgram
from app.graph.program import Program
from app.ops.form import Fused


def explain(program: Program, fetch: Sequence[str] = (), source: bool = True) -> str:
    """For each operator left after the passes: inlined, compiled or a Python call, and why; then the source."""
    native = compile_program(program, list(fetch))
    if isinstance(native, str):
        return f"The reference engine runs this Program operator by operator: {native}."
    before, after = len(program.global_block().ops), len(native.lowered.steps)
    lines = [f"{before} operators, {after} after the passes", "", *verdicts(native)]
    if source:
        lines += ["", native.source.text.rstrip()]
    return "\n".join(lines)


def after_passes(program: Program, fetch: Sequence[str]) -> Program:
    """The Program as the passes leave it for the engine; itself where it has no native form."""
    native = compile_program(program, list(fetch))
    return program if isinstance(native, str) else native.lowered.program


def verdicts(native: CompiledProgram) -> list[str]:
    """A line for each operator: what it makes, what it is, and how it runs."""
    rows = [(", ".join(s.op.outputs) or "-", s.op.type, s.verdict) for s in native.lowered.steps]
    widths = [min(max(len(row[i]) for row in rows), 48) for i in range(2)]
    return [f"{a:{widths[0]}}  {b:{widths[1]}}  {c}" for a, b, c in rows]


def in_short(program: Program, fetch: Sequence[str]) -> str:
    """One line: how many operators run natively, and what became of each custom one."""
    native = compile_program(program, list(fetch))
    if isinstance(native, str):
        return f"operator by operator: {native}"
    steps = native.lowered.steps
    in_python = sum(step.in_python for step in steps)
    many = f"{len(steps) - in_python} of {len(steps)}" if in_python else f"all {len(steps)}"
    custom = [f"{name} {verdict}" for step in steps for name, verdict in _custom(step)]
    return f"{many} operators native" + (f"; {', '.join(custom)}" if custom else "")


def _custom(step: Step) -> list[tuple[str, str]]:
    """The custom operators in a step, each with what it became in a word, or with the reason where that is Python."""
    form = step.op.definition.form
    members = form.body if isinstance(form, Fused) else (step.op,)
    verdict = step.verdict.partition(":")[0].lower() if not step.in_python else f"a {step.verdict}"
    return [(op.type, verdict) for op in members if op.definition.where]
