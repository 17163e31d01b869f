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


def in_short(program: Program, fetch: Sequence[str], operator: str = "") -> str:
    """Return a line: whether all is compiled, and how each custom operator runs; `operator` is the name of the only
    one, if the Program has one."""
    native = compile_program(program, list(fetch))
    if isinstance(native, str):
        return f"operator by operator: {native}"
    steps = native.lowered.steps
    in_python = sum(step.in_python for step in steps)
    verdicts = dict.fromkeys(line for step in steps for line in _of_custom(step, operator))
    parts = ["partly compiled" if in_python else "compiled", *([", ".join(verdicts)] if verdicts else [])]
    if in_python:
        calls = "a Python call" if in_python == 1 else f"{in_python} Python calls"
        parts.append(f"with {calls} in it, each batch is run from Python, which can take several times as long")
    return "; ".join(parts)


def _of_custom(step: Step, operator: str) -> list[str]:
    """Return how the operators in a step run if it runs in Python, with the reason, or else how the custom ones do."""

    def name_of(op: Operator) -> str:
        own = op.type.removeprefix("py_func.").removesuffix("_grad")
        return (operator or own) if op.definition.custom else op.type

    if step.in_python:
        return [f"{name_of(op)} is a {step.verdict}" for op in _within(step.op)]
    return [
        f"{name_of(op)} {part.verdict.partition(':')[0].lower()}"
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
