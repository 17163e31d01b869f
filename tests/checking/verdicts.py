"""Operators to be checked, and what the checks say of them."""

from __future__ import annotations

from typing import Any

from app import custom_op
from app.checking.checks import examine
from app.checking.examples import inputs_for
from app.checking.operators import user_operator


def words(operator: Any, *only: str, **given: Any) -> str:
    return "\n".join(f"{v.state} {v.words}" for v in examine(inputs_for(user_operator(operator, "it"), **given), only))


def elementwise(function: Any) -> Any:
    return custom_op(function, name="it", elementwise=True)


def with_backward(forward: Any, backward: Any, surrogate: bool = False, **options: Any) -> Any:
    operator = custom_op(forward, name="it", **options)
    operator.backward(backward, surrogate=surrogate)
    return operator
