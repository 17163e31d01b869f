"""Every hook makes the same kind of operator, which knows its functions and where it came from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import app
from app import custom_op, static
from app.custom.operator import CustomOperator

ROOT = Path(__file__).parents[2]


def twice(x):
    return x * 2


def twice_grad(x, dy):
    return dy * 2


def of_two_functions(x, y, dy):
    return dy * 2


class Twice(app.autograd.PyLayer):
    like = "scale"

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        return dy * 2


def by_decorator(x: Any) -> Any:
    operator = custom_op(twice, like="scale")
    operator.backward(twice_grad)
    return operator(x)


def by_py_func(x: Any) -> Any:
    return static.py_func(twice, x, static.InputSpec([None, 3], "float32"), of_two_functions, like="scale")


HOOKS = [
    (by_decorator, "custom_op", "arrays", twice, twice_grad),
    (by_py_func, "py_func", "arrays", twice, of_two_functions),
    (Twice.apply, "pylayer", "Tensors", Twice.forward, Twice.backward),
]


@pytest.mark.parametrize(("apply", "hook", "works_on", "function", "backward"), HOOKS, ids=[h[1] for h in HOOKS])
def test_every_hook_makes_a_custom_operator(apply: Any, hook: str, works_on: str, function: Any, backward: Any):
    with static.program_guard(static.Program(), static.Program()):
        apply(static.data("x", [None, 3]))
        (operator,) = (op.definition for op in static.default_main_program().global_block().ops)
    assert isinstance(operator, CustomOperator)
    assert operator.custom
    assert (operator.origin.hook, operator.works_on, operator.like) == (hook, works_on, "scale")
    assert (operator.function, operator.backward_function) == (function, backward)
    gradient = operator.gradient_operator
    assert isinstance(gradient, CustomOperator)
    assert (gradient.function, gradient.origin.functions) == (backward, {"operator": operator})


def test_the_page_leads_from_the_decorator_to_the_fused_loop_through_at_most_ten_files():
    page = (ROOT / "docs" / "your-own-operator.md").read_text(encoding="utf-8")
    walk = page.partition("## From `@app.custom_op` to the fused loop")[2].partition("\n## ")[0]
    files = re.findall(r"\]\(\.\./(app/\S+)\)", walk)
    assert 5 < len(files) == len(set(files)) <= 10
    assert all((ROOT / file).is_file() for file in files)
