"""`torch.library.custom_op`: lists of Tensors, what is recorded where, and schemas that have to agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.compat import torch
from app.compat.torch.library import custom_op, opcheck
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


# opcheck, and torch.ops


@pytest.fixture
def double() -> Any:
    @custom_op("tests::double", mutates_args=())
    def double(x: Any, factor: int = 2) -> Any:
        return torch.from_numpy(x.numpy() * factor)

    double.register_fake(lambda x, factor=2: torch.empty_like(x))
    return double


ALL = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


def test_an_operator_is_found_under_torch_ops(double: Any):
    assert torch.ops.tests.double(torch.ones(2), factor=3).tolist() == [3.0, 3.0]
    assert torch.ops.tests.double.default is double
    with pytest.raises(AttributeError, match=r"no operator tests::treble; registered are .*tests::double"):
        torch.ops.tests.treble  # noqa: B018 - looking it up is what fails


def test_an_operator_that_keeps_its_promises(double: Any):
    assert opcheck(double, (torch.ones(2),)) == dict.fromkeys(ALL, "SUCCESS")
    assert opcheck(double, [torch.ones(2)], {"factor": 3}, test_utils="test_schema") == {"test_schema": "SUCCESS"}
    with pytest.raises(CustomOperatorError, match="there is no check 'test_scheme'"):
        opcheck(double, (torch.ones(2),), test_utils="test_scheme")


def changes_its_input(x: Any) -> Any:
    x.numpy()[0] = 5
    return x.clone()


@pytest.mark.parametrize(
    ("function", "fake", "words"),
    [
        (changes_its_input, torch.empty_like, "test_schema .*: it changed x in place; name it in mutates_args"),
        (lambda x: x, torch.empty_like, "test_schema .*: its output has the memory of x; return a clone"),
        (lambda x: x[:1], torch.empty_like, "test_schema .*: its output has the memory of x"),
        (lambda x: x.clone(), lambda x: x.new_empty(3), r"output 0 is of shape \[2\] .* its fake says \[3\]"),
        (lambda x: x.clone(), lambda x: x.new_empty(2, dtype=torch.int64), "its fake says .* torch.int64"),
        (lambda x: (x.clone(), x.clone()), torch.empty_like, "it returned 2 Tensors, its fake 1"),
        (
            lambda x: x.clone(),
            None,
            "test_faketensor .*: it has no fake; register .* @broken.register_fake",
        ),
    ],
)
def test_a_broken_promise_is_found(function: Any, fake: Any, words: str):
    broken = custom_op("tests::broken", function, mutates_args=())
    if fake is not None:
        broken.register_fake(fake)
    with pytest.raises(CustomOperatorError, match=words):
        opcheck(broken, (torch.ones(2),))
    found = opcheck(broken, (torch.ones(2),), raise_exception=False)
    assert [outcome for outcome in found.values() if outcome != "SUCCESS"]


def test_an_operator_without_a_gradient_says_so_in_a_backward_pass(double: Any):
    x = leaf()
    assert not double(x.detach()).requires_grad
    y = custom_op("tests::scaled", lambda x: x * 2, mutates_args=())(x)
    assert y.requires_grad
    with pytest.raises(CustomOperatorError, match="no autograd formula was registered; use register_autograd"):
        y.sum().backward()


def test_an_operator_may_change_what_it_names():
    @custom_op("tests::sine", mutates_args={"output"}, device_types="cpu")
    def sine(input: Any, output: Any) -> None:
        np.sin(input.numpy(), out=output.numpy())

    out = torch.empty(3)
    sine(torch.ones(3), out)
    assert torch.allclose(out, torch.ones(3).sin())
    assert opcheck(sine, (torch.randn(3), torch.empty(3))) == dict.fromkeys(ALL, "SUCCESS")
    with pytest.raises(RuntimeError, match="CPU"):
        custom_op("tests::elsewhere", lambda x: x, mutates_args=(), device_types="cuda")
