"""Does it run natively, and alike everywhere? If it is not inlined, the line of the user's file that stops it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from app import static
from app.checking.blame import why_not_inlined
from app.checking.subject import Subject
from app.checking.verdict import Verdict, failed, note, ok
from app.engine import Executor
from app.errors import AppError


def engines(subject: Subject) -> Iterator[Verdict]:
    """Tensors, the reference engine and the compiled one give the same."""
    arrays = subject.arrays(dtype="float32")
    eager = subject.run(arrays)
    arriving = [np.ones_like(o) for o in eager.outputs]
    backward = subject.run(arrays, arriving).gradients if subject.has_gradient else []
    wanted = [*eager.outputs, *backward]
    with subject.in_program([i.shape for i in subject.inputs]) as (program, data, outputs):
        floats = [v for v, i in zip(data, subject.inputs, strict=True) if i.is_float]
        gradients = static.gradients(outputs, floats) if subject.has_gradient else []
        fetched = [*outputs, *gradients]
        feed = {v.name: a for v, a in zip(data, arrays, strict=True)}
        for engine in ("reference", "compiled"):
            asked = [v for v in fetched if v is not None]
            try:
                results = Executor(engine=engine).run(program, feed=feed, fetch_list=asked)
            except AppError as error:
                yield failed(f"the {engine} engine fails: {error}")
                return
            expected = [w for w, v in zip(wanted, fetched, strict=True) if v is not None]
            for variable, found, number in zip(asked, results, expected, strict=True):
                if number is not None and not np.allclose(found, number, rtol=1e-3, atol=1e-5, equal_nan=True):
                    yield failed(f"the {engine} engine gives another {variable.name} than Tensors do")
                    return
    yield ok("Tensors, the reference engine and the compiled engine agree")


def inlined(subject: Subject) -> Iterator[Verdict]:
    """How the compiled engine runs it, and what stops it from more."""
    from app.engine.compiled.engine import compile_program  # imported late, as Numba is

    with subject.in_program([i.shape for i in subject.inputs]) as (program, data, outputs):
        floats = [v for v, i in zip(data, subject.inputs, strict=True) if i.is_float]
        try:
            made = static.gradients(outputs, floats)
        except AppError:  # which the check of the gradient tells
            made = []
        native = compile_program(program, [v.name for v in (*outputs, *made) if v is not None])
    if isinstance(native, str):
        yield note(f"there is no native form: {native}")
        return
    steps = [(user, step) for step in native.lowered.steps for user in step.users]
    if not steps:
        yield ok("it is made of the framework's operators alone, which are compiled")
    for user, step in steps:
        native_loop = step.verdict.startswith("inlined")
        reason = "" if native_loop else why_not_inlined(user, native.lowered)
        yield (ok if native_loop else note)(f"{user.type}: {step.verdict.partition(' with ')[0]}{reason}")
