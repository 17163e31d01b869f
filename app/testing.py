"""For tests: `check_operator` examines an operator of opsmith, PyTorch, JAX or Paddle, and fails if a check does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from app.checking.findings import Findings, findings_of, one_of, question_of
from app.checking.reproduction import report

__all__ = ["check_operator"]


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
    one = one_of(operator)
    one = replace(one, surrogate=one.surrogate or surrogate)
    question = question_of(shapes, settings, like, within, only, also, example=example, seed=seed)
    findings = findings_of(one, question)
    if not findings.ok:
        raise AssertionError(report(one, question, findings))
    return findings
