"""The passes that bring a Program into the form that is lowered: this engine's own, and the general ones."""

from __future__ import annotations

from collections.abc import Collection

from app.engine.compiled.batch import with_one_batch_size
from app.engine.compiled.lowered import Lowered
from app.engine.compiled.lowering import why_python
from app.engine.compiled.on_numbers import with_functions_on_numbers
from app.engine.compiled.untaken import without_untaken
from app.engine.compiled.verdict import why_not
from app.graph.passes import Pass, fusion, pipeline
from app.graph.program import Program


def _batch_size(program: Program, keep: Collection[str]) -> Program:
    return with_one_batch_size(program)


def _on_numbers(program: Program, keep: Collection[str]) -> Program:
    return with_functions_on_numbers(program, why_not)


def _untaken(program: Program, keep: Collection[str]) -> Program:
    return without_untaken(program)


def _fuse(program: Program, keep: Collection[str]) -> Program:
    """Fusion that leaves alone what has to run as a Python call."""
    known = Lowered(program, [], {})
    return fusion(program, keep, lambda op: not why_python(op, known, why_not))


PASSES = (
    Pass("batch_size", _batch_size),
    Pass("on_numbers", _on_numbers),
    Pass("untaken", _untaken),
    *pipeline(_fuse),
)
"""All of them, in order."""
