"""What an issue about a failure needs beside the failure: the inputs, the versions, and a script that shows it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from app.checking.examination import Question
from app.checking.findings import Findings
from app.checking.operators import UserOperator
from app.custom.lookup import OF_FILES
from app.version import __version__

_LITERAL = 64
"""An array of an example call with at most this many elements is written out."""
_TENSORS = {"torch": "torch.tensor", "jax": "jax.numpy.array", "paddle": "paddle.to_tensor"}
_WITH_GRADIENT = {"torch": ", requires_grad=True", "paddle": ", stop_gradient=False"}


def report(one: UserOperator, question: Question, findings: Findings) -> str:
    """The failures of an operator, with all that an issue needs."""
    failures = [f"  FAILED  {first.check}: {first.words}" for first, *_ in findings.reasons]
    return "\n".join([one.label, *failures, *evidence(one, question, findings)])


def evidence(one: UserOperator, question: Question, findings: Findings) -> list[str]:
    """The inputs, the versions, and a script that shows the first failure."""
    framework = "" if one.foreign is None else f"{one.foreign.framework.name} {_version(one.foreign.framework.name)}, "
    return [
        f"{findings.inputs}, contiguous, seed {question.seed}" if findings.inputs else "no inputs were found",
        f"{framework}NumPy {np.__version__}, opsmith {__version__}, Python {sys.version.partition(' ')[0]}",
        "This shows it:",
        *(f"    {line}" for line in _script(one, question, findings.failed[0].check)),
    ]


def _version(name: str) -> str:
    return str(getattr(sys.modules.get(name), "__version__", ""))


def _script(one: UserOperator, question: Question, check: str) -> list[str]:
    """The lines of a program that fails in the same way."""
    lines, call = ["from opsmith.testing import check_operator"], one.name
    foreign = one.foreign
    if foreign is not None:
        home = foreign.home
        if home.startswith(OF_FILES):
            home = Path(str(getattr(sys.modules.get(home), "__file__", home))).stem
        lines = [f"import numpy, {foreign.framework.name}", *lines, f"from {home} import {foreign.name}"]
        call = foreign.name + (".apply" if foreign.is_definite and hasattr(foreign.thing, "apply") else "")
    else:
        call = repr(one.name)
    arguments = [_written(value, one) for value in question.example]
    if question.shapes:
        arguments.append(f"shapes={[shape for shape, _ in question.shapes]}")
    if question.within:
        arguments.append(f"within={question.within}")
    if question.like:
        arguments.append(f"like={question.like!r}" if question.other is None else f"like={question.like}")
    if check in question.also:
        arguments.append(f"also={[check]}")
    if check != "runs":
        arguments.append(f"only={[check]}")
    if question.seed:
        arguments.append(f"seed={question.seed}")
    arguments += [f"{name}={_written(value, one)}" for name, value in question.settings.items()]
    return [*lines, f"check_operator({', '.join([call, *arguments])})"]


def _written(value: Any, one: UserOperator) -> str:
    """An argument of an example call as source."""
    foreign = one.foreign
    if foreign is None or not (isinstance(value, np.ndarray) or foreign.framework.is_tensor(value)):
        return repr(value)
    array = value if isinstance(value, np.ndarray) else foreign.framework.array(value)
    make = _TENSORS[foreign.framework.name]
    if array.size <= _LITERAL:
        text = repr(array.tolist())
    elif array.dtype.kind == "f":
        text = f"numpy.random.default_rng(0).uniform({array.min():.4g}, {array.max():.4g}, {array.shape})"
    else:
        text = f"numpy.random.default_rng(0).integers({array.min()}, {array.max() + 1}, {array.shape})"
    is_tensor = foreign.framework.is_tensor(value)
    more = _WITH_GRADIENT[foreign.framework.name] if is_tensor and foreign.framework.needs_gradient(value) else ""
    return f"{make}({text}{more})"
