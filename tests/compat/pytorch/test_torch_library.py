"""`torch.library.custom_op`: lists of Tensors, what is recorded where, and schemas that have to agree."""

from __future__ import annotations

from typing import Any

import pytest

from app.compat import torch
from app.compat.torch.library import custom_op
from app.errors import CustomOperatorError


def leaf() -> Any:
    return torch.ones(2, requires_grad=True)


def test_backward_gets_one_list_for_a_list_of_tensors():
    seen: list[Any] = []

    @custom_op("tests::split", mutates_args=())
    def split(x: Any) -> list[Any]:
        return [x * 1, x * 2]

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        seen.append((type(output), len(output), torch.is_grad_enabled()))

    def backward(ctx: Any, gradients: Any) -> Any:
        seen.append([g.tolist() for g in gradients])
        return gradients[0] + 2 * gradients[1]

    split.register_autograd(backward, setup_context=setup)
    x = leaf()
    one, two = split(x)
    (one.sum() + 3 * two.sum()).backward()
    assert x.grad.tolist() == [7.0, 7.0]
    split(x)[1].sum().backward()
    setting_up = (list, 2, False)
    assert seen == [setting_up, [[1.0, 1.0], [3.0, 3.0]], setting_up, [[0.0, 0.0], [1.0, 1.0]]]


def test_results_may_be_tensors_and_lists():
    @custom_op("tests::both", mutates_args=())
    def both(x: Any, factor: float = 3.0) -> tuple[Any, list[Any]]:
        return x * factor, [x, x * 2]

    both.register_autograd(lambda ctx, dy, listed: (dy * 3.0 + listed[1] * 2.0, None))
    x = leaf()
    alone, (_, doubled) = both(x * 1.0, factor=3.0)
    (alone.sum() + doubled.sum()).backward()
    assert x.grad.tolist() == [5.0, 5.0]


def product(x: Any, y: Any) -> Any:
    return x * y


@pytest.mark.parametrize(
    ("schema", "mutates", "words"),
    [
        ("(Tensor x, Tensor y) -> Tensor", ("x",), r"changes nothing, but mutates_args is \('x',\)"),
        ("(Tensor(a!) x, Tensor y) -> Tensor", (), r"changes x, but mutates_args is \(\)"),
        ("(Tensor(a!) x, Tensor y) -> Tensor", "unknown", "changes x, but mutates_args is 'unknown'"),
        ("(Tensor x) -> Tensor", (), "has 1 parameters, the function 2: x, y"),
        ("Tensor x -> ?", (), "a schema is like"),
        (None, ("z",), "mutates_args names z, but the function takes x, y"),
    ],
)
def test_a_schema_and_what_is_changed_have_to_agree(schema: Any, mutates: Any, words: str):
    with pytest.raises(CustomOperatorError, match=words):
        custom_op("tests::product", product, mutates_args=mutates, schema=schema)


@pytest.mark.parametrize(
    ("schema", "mutates"),
    [
        ("(Tensor x, Tensor y) -> Tensor", ()),
        ("(Tensor(a!) x, Tensor? y=None) -> (Tensor, Tensor[])", ("x",)),
        ("(Tensor a, *, int[2] b) -> Tensor", ()),
        (None, "unknown"),
        (None, ("y",)),
    ],
)
def test_schemas_that_agree(schema: Any, mutates: Any):
    made = custom_op("tests::product", product, mutates_args=mutates, schema=schema)
    assert made(torch.ones(1), torch.ones(1)).tolist() == [1.0]
