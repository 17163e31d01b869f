"""The façade `torch`: what it has is PyTorch's, what it lacks is an error, and it leaves the framework alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import app
from app.compat import paddle, torch
from app.compat.modules import MissingNameError
from app.errors import DtypeError, OperatorError, ShapeError


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (torch, "einsum"), (torch.nn, "Linear"), (torch, "optim"), (torch.autograd, "functional"),
        (torch.nn.functional, "conv2d"), (torch.Tensor, "split"), (torch.ones(2), "topk"), (torch.ones(2), "chunk"),
        (torch.ones(2, requires_grad=True).exp().grad_fn, "next_functions"), (paddle, "CUDAGraph"),
        (paddle.fluid, "DistributeTranspiler"), (paddle.fluid.layers, "dynamic_lstm"),
    ],
)  # fmt: skip
def test_a_missing_name_is_an_error_that_says_where_to_find_it(owner: Any, name: str):
    with pytest.raises(MissingNameError) as caught:
        getattr(owner, name)
    assert f"has no {name!r} here: opsmith has the names that programs with operators of their own" in str(caught.value)
    assert "see docs/bridge.md" in str(caught.value)
    assert not hasattr(owner, name)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: torch.randn(2, generator=None), r"torch.randn\(\) got .* 'generator'"),
        (lambda: torch.zeros_like(torch.ones(2), layout=None), r"torch.zeros_like\(\) got .* 'layout'"),
        (lambda: torch.ones(2).sum(dtype=torch.float64), r"torch.sum\(\) got .* 'dtype'"),
    ],
)
def test_a_missing_parameter_is_an_error_that_names_the_function(call: Callable[[], Any], message: str):
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize("name", ["split", "tile", "index_select", "scale", "norm_", "equal_all", "transpose_"])
def test_a_method_of_the_framework_that_pytorch_has_not_or_that_differs_there_is_hidden(name: str):
    assert not hasattr(torch.ones(2), name)


def test_the_framework_is_left_alone():
    x, y = app.ones([2]), torch.ones(2)
    assert type(x + x) is type(x.detach()) is type(app.tanh(x)) is app.Tensor
    assert type(y + 1) is type(y.sum()) is type(y[0]) is type(2 * y) is type(y > 0) is torch.Tensor
    x.stop_gradient = False
    (x * x).sum().backward()
    assert type(x.grad) is app.Tensor
    assert not x.grad.stop_gradient
    assert len(x.split(2)) == 2  # parts; in PyTorch 2 is their size


def test_gradients_are_tensors_of_the_facade_wherever_a_program_sees_them():
    seen: list[Any] = []

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensors
            seen.extend([dy, x, dy * x])
            return dy * 2 * x

    x = torch.ones(2, requires_grad=True)
    y = x * 3
    y.retain_grad()
    y.register_hook(seen.append)
    result = Square.apply(y)
    result.sum().backward()
    (gradient,) = torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
    assert {type(value) for value in (*seen, result, x.grad, y.grad, gradient)} == {torch.Tensor}
    assert not x.grad.requires_grad
    assert gradient.requires_grad


def test_grad_calls_the_hooks_of_leaves_and_backward_keeps_the_gradient_after_all_hooks():
    x = torch.ones(1, requires_grad=True)
    x.register_hook(lambda g: g * 10)
    assert torch.autograd.grad((x * 2).sum(), x)[0].tolist() == [20.0]
    y = x * 3
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    (y * y).sum().backward()
    assert y.grad.tolist() == [12.0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: torch.ones(2).backward(), OperatorError, "does not require grad and does not have a grad_fn"),
        (lambda: torch.ones(2, requires_grad=True).backward(), OperatorError, "only for scalar outputs"),
        (lambda: torch.ones(1).retain_grad(), OperatorError, "no gradient to retain"),
        (lambda: torch.ones(2, requires_grad=True).numpy(), RuntimeError, r"use tensor.detach\(\).numpy\(\)"),
        (lambda: torch.tensor([1], requires_grad=True), RuntimeError, "floating point"),
        (lambda: torch.ones(2, device="cuda"), RuntimeError, "cuda"),
        (lambda: torch.device("cuda:0"), RuntimeError, "cuda"),
        (lambda: torch.ones(2, 3).t().view(6), ShapeError, "use reshape"),
        (lambda: torch.mm(torch.ones(2, 2, 2), torch.ones(2, 2)), ShapeError, "use matmul"),
        (lambda: torch.from_numpy([1.0]), DtypeError, "use torch.tensor"),
        (lambda: torch.tensor(300, dtype=torch.uint8), DtypeError, "do not fit into uint8"),
        (lambda: torch.ones(2)[torch.tensor([0, 1], dtype=torch.uint8)], OperatorError, r"index.bool\(\)"),
        (lambda: torch.ones(1).expand(3).add_(1), OperatorError, r"change its clone\(\)"),
        (lambda: torch.sum(torch.ones(2), dims=0), TypeError, "dims"),
        (lambda: torch.zeros(2, size=3), TypeError, "size"),
    ],
)
def test_what_pytorch_refuses_is_refused(call: Callable[[], Any], error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        call()


def test_memory_is_shared_as_in_pytorch():
    array = np.ones(3)
    shared, copied = torch.from_numpy(array), torch.tensor(array)
    shared.mul_(2)
    assert (array.tolist(), copied.tolist()) == ([2, 2, 2], [1, 1, 1])
    assert shared.numpy() is array
    assert torch.as_tensor(array).numpy() is array
    assert torch.as_tensor(shared) is shared
    x = torch.ones(2, requires_grad=True)
    y = x * x
    x.data[0] = 5.0  # which gradients do not see
    y.sum().backward()
    assert (x.tolist(), x.grad.tolist()) == ([5.0, 1.0], [10.0, 2.0])


def test_the_class_of_tensors_makes_them_of_numbers_or_of_sizes():
    assert torch.Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert torch.Tensor(2, 3).shape == torch.Tensor(torch.Size([2, 3])).shape == (2, 3)
    assert torch.Tensor().shape == (0,)


def test_a_result_names_the_operator_that_made_it():
    x = torch.ones(1, requires_grad=True)
    assert (str((x * 2).grad_fn), (x * 2).grad_fn.name(), x.grad_fn) == (
        "<MultiplyBackward0>",
        "MultiplyBackward0",
        None,
    )


def test_a_module_has_the_parameters_among_its_attributes():
    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = torch.nn.Parameter(torch.tensor([2.0]))

        def forward(self, x: Any) -> Any:
            return x * self.factor

    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.other = Scaled(), torch.ones(1)

        def forward(self, x: Any) -> Any:
            return self.inner(self.inner(x))

    net = Twice()
    (factor,) = net.parameters()
    assert factor is net.inner.factor
    net(torch.ones(1)).backward()
    assert factor.grad.tolist() == [4.0]
    assert repr(factor) == "Parameter containing:\ntensor([2.], requires_grad=True)"
    assert type(factor * 1) is torch.Tensor
