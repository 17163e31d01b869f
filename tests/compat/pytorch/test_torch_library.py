"""`torch.library.custom_op` and `opcheck`: gradients, what is refused, and what is found wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.compat import torch
from app.compat.torch.library import custom_op, opcheck
from app.errors import CustomOperatorError


def leaf() -> Any:
    return torch.ones(2, requires_grad=True)


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("cube", {}, "a name is like my_operators::cube, found 'cube'"),
        ("tests::cube", {"schema": "(Tensor x, Tensor y) -> Tensor"}, "a schema is not supported .*; leave it out"),
        ("tests::cube", {"mutates_args": ("z",)}, "mutates_args names z, but the function takes x, y"),
        ("tests::cube", {"mutates_args": (), "device_types": "cuda"}, "CPU"),
    ],
)
def test_wrong_arguments_of_custom_op_are_errors(name: str, settings: dict[str, Any], words: str):
    with pytest.raises((CustomOperatorError, RuntimeError), match=words):
        custom_op(name, lambda x, y: x * y, **settings)


def test_an_operator_returns_one_or_several_tensors_and_no_list():
    @custom_op("tests::both", mutates_args=())
    def both(x: Any, factor: float = 3.0) -> tuple[Any, Any]:
        return x * factor, x * 2

    both.register_autograd(lambda ctx, dy, doubled: (dy * 3.0 + doubled * 2.0, None))
    x = leaf()
    first, second = both(x * 1.0, factor=3.0)
    (first.sum() + second.sum()).backward()
    assert x.grad.tolist() == [5.0, 5.0]
    listed = custom_op("tests::listed", lambda x: [x * 1, x * 2], mutates_args=())
    with pytest.raises(CustomOperatorError, match=r"tests::listed returned a list, .* return a tuple of Tensors"):
        listed(x)


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


def test_a_correct_operator_passes_opcheck(double: Any):
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
        (lambda x: x.clone(), None, "test_faketensor .*: it has no fake; register .* @broken.register_fake"),
    ],
)
def test_opcheck_finds_a_broken_promise(function: Any, fake: Any, words: str):
    broken = custom_op("tests::broken", function, mutates_args=())
    if fake is not None:
        broken.register_fake(fake)
    with pytest.raises(CustomOperatorError, match=words):
        opcheck(broken, (torch.ones(2),))
    found = opcheck(broken, (torch.ones(2),), raise_exception=False)
    assert [outcome for outcome in found.values() if outcome != "SUCCESS"]


def test_a_backward_pass_without_a_gradient_is_an_error(double: Any):
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

    @torch.compile(backend="eager")
    def compiled(x: Any) -> Any:
        made = torch.empty(3)
        sine(x, made)
        return made * 2

    assert torch.allclose(compiled(torch.ones(3)), 2 * torch.ones(3).sin())
