"""For tests: `check_operator` examines an operator of opsmith, PyTorch, JAX or Paddle, and fails if a check does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from app import __version__
from app.checking.checks import check_names
from app.checking.examination import Inputs, Question, examination
from app.checking.finding import Found
from app.checking.findings import Findings, name_of, one_of, range_of, sizes_of
from app.custom.lookup import OF_FILES

__all__ = ["check_operator"]

_LITERAL = 64
"""An array of an example call with at most this many elements is written out."""


def __dir__() -> list[str]:
    return __all__


def check_operator(
    operator: str | Callable[..., Any],
    *example: Any,
    shapes: Sequence[Sequence[int]] = (),
    like: str | Callable[..., Any] = "",
    within: tuple[float, float] | None = None,
    only: Collection[str] = (),
    also: Collection[str] = (),
    surrogate: bool = False,
    seed: int = 0,
    **settings: Any,
) -> Findings:
    """Examine an operator in a test: an AssertionError says what is wrong, on which inputs, and how to show it.

    Args:
        operator: The operator, such as `MyFunction.apply`, or the name of one.
        *example: The arguments of an example call, for an operator of another framework. Its tensors are the inputs;
            whole numbers stay as they are, and everything else is passed on.
        shapes: A shape for each input instead of an example; by default found by trying.
        like: An operator that should compute the same, of opsmith or of the same framework.
        within: The range from which inputs are drawn.
        only: The names of the checks to run; by default all.
        also: Checks of other frameworks that must not be refused: "compile", "vmap", "forward", "jit".
        surrogate: Whether the gradient differs from the derivative on purpose.
        seed: Another number draws other inputs.
        **settings: Settings of the operator.
    """
    __tracebackhide__ = True  # by pytest, which then shows the test
    check_names([*only, *also])
    one = one_of(operator)
    one = replace(one, surrogate=one.surrogate or surrogate)
    sizes = [(sizes_of(shape), "float64") for shape in shapes]
    name, other = (like, None) if isinstance(like, str) else (name_of(like), like)
    limits = None if within is None else range_of(within)
    question = Question(sizes, settings, name, other, limits, only, also, example, seed)
    findings, inputs = Findings(one.label), ""
    for part in examination(one, question):
        if isinstance(part, Inputs):
            inputs = str(part)
        else:
            findings.append(part)
    if not findings.ok:
        raise AssertionError(report(one, question, findings, inputs))
    return findings


def report(one: Found, question: Question, findings: Findings, inputs: str) -> str:
    """What failed, as an issue needs it: the operator, inputs, versions, both values, and a script that shows it."""
    failures = [f"{first.check}: {first.words}" for first, *_ in findings.reasons]
    seed = f", seed {question.seed}"
    framework = "" if one.foreign is None else f"{one.foreign.framework.name} {_version(one.foreign.framework.name)}, "
    lines = [
        one.label,
        *(f"  FAILED  {words}" for words in failures),
        f"{inputs}, contiguous{seed}" if inputs else "no inputs were found",
        f"{framework}NumPy {np.__version__}, opsmith {__version__}, Python {sys.version.partition(' ')[0]}",
        "This shows it:",
        *(f"    {line}" for line in _script(one, question, findings.failed[0].check)),
    ]
    return "\n".join(lines)


def _version(name: str) -> str:
    return str(getattr(sys.modules.get(name), "__version__", ""))


def _script(one: Found, question: Question, check: str) -> list[str]:
    """The lines of a program that fails in the same way."""
    lines, call = ["from opsmith.testing import check_operator"], one.name
    foreign = one.foreign
    if foreign is not None:
        home = foreign.home
        if home.startswith(OF_FILES):
            home = Path(str(getattr(sys.modules.get(home), "__file__", home))).stem
        lines = [f"import numpy, {foreign.framework.name}", *lines, f"from {home} import {foreign.name}"]
        call = foreign.name + (".apply" if hasattr(foreign.thing, "apply") else "")
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


def _written(value: Any, one: Found) -> str:
    """An argument of an example call as source."""
    foreign = one.foreign
    if foreign is None or not (isinstance(value, np.ndarray) or foreign.framework.is_tensor(value)):
        return repr(value)
    array = value if isinstance(value, np.ndarray) else foreign.framework.array(value)
    make = {"torch": "torch.tensor", "jax": "jax.numpy.array", "paddle": "paddle.to_tensor"}[foreign.framework.name]
    if array.size <= _LITERAL:
        text = repr(array.tolist())
    elif array.dtype.kind == "f":
        text = f"numpy.random.default_rng(0).uniform({array.min():.4g}, {array.max():.4g}, {array.shape})"
    else:
        text = f"numpy.random.default_rng(0).integers({array.min()}, {array.max() + 1}, {array.shape})"
    return f"{make}({text})"
