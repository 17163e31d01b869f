"""Explains how the compiled engine runs a Program: a verdict for each operator, and the generated source."""

from __future__ import annotations

from collections.abc import Sequence

from app.engine.compiled.engine import MOST_SET, compile_program
from app.engine.compiled.program import CompiledProgram
from app.engine.compiled.steps import Step
from app.graph.program import Operator, Program
from app.ops.lowering import Fused


def explain(program: Program, fetch: Sequence[str] = (), source: bool = True, sparse: bool = True) -> str:
    """Return a verdict for each operator after the passes (inlined, compiled or a Python call, and why), and the
    source.

    Products that may be `sparse` are shown as they are for data most of whose bytes are 0.
    """
    native = compile_program(program, list(fetch), sparse)
    if isinstance(native, str):
        return f"The reference engine runs this Program operator by operator: {native}."
    before, after = len(program.global_block().ops), len(native.lowered.steps)
    lines = [f"{before} operators, {after} after the passes", "", *verdicts(native)]
    if native.is_sparse:
        lines += [
            "",
            f"This is the form for a dataset in which less than {MOST_SET:.0%} of the bytes are not 0. For any other",
            "dataset, and for single batches, bytes are converted to floats and BLAS computes the products.",
        ]
    if source:
        lines += ["", native.source.text.rstrip()]
    return "\n".join(lines)


def verdicts(native: CompiledProgram) -> list[str]:
    """Return a line for each operator: its outputs, its type and how it runs, followed by those inside control flow."""
    rows = [row for step in native.lowered.steps for row in _rows(step, "")]
    widths = [min(max(len(row[i]) for row in rows), 48) for i in range(2)]
    return [f"{a:{widths[0]}}  {b:{widths[1]}}  {c}".rstrip() for a, b, c in rows]


def _rows(step: Step, indent: str) -> list[tuple[str, str, str]]:
    rows = [(indent + (", ".join(step.op.outputs) or "-"), step.op.type, step.verdict)]
    for part, steps in step.bodies.items():
        inside = [row for inner in steps for row in _rows(inner, indent + "    ")]
        if inside and part != "before":
            rows += [(f"{indent}  {part}:", "", ""), *inside]
    return rows


def in_short(program: Program, fetch: Sequence[str]) -> str:
    """Return a line: the number of native operators, and how each custom operator runs."""
    native = compile_program(program, list(fetch))
    if isinstance(native, str):
        return f"operator by operator: {native}"
    steps = native.lowered.steps
    in_python = sum(step.in_python for step in steps)
    many = f"{len(steps) - in_python} of {len(steps)}" if in_python else f"all {len(steps)}"
    parts = [f"{many} operators native"]
    told = dict.fromkeys(f"{name} {verdict}" for step in steps for name, verdict in _told(step))
    if told:
        parts.append(", ".join(told))
    if in_python:
        calls = "a Python call" if in_python == 1 else f"{in_python} Python calls"
        parts.append(f"with {calls} in it, each batch is run from Python, which can take several times as long")
    return "; ".join(parts)


def _told(step: Step) -> list[tuple[str, str]]:
    """Return the operators in a step that run in Python, with the reason, or the custom ones, each with how it runs."""
    if step.in_python:
        return [(op.type, f"a {step.verdict}") for op in _within(step.op)]
    return [
        (op.type, part.verdict.partition(":")[0].lower())
        for part in step.everything
        if not part.bodies
        for op in _within(part.op)
        if op.definition.custom
    ]


def _within(op: Operator) -> list[Operator]:
    """Return an operator, the operators fused into it, and those of its bodies."""
    lowering = op.definition.lowering
    members = list(lowering.body) if isinstance(lowering, Fused) else [op]
    return members + [deep for body in op.bodies.values() for inner in body.block.ops for deep in _within(inner)]
