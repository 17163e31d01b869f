"""Gradients that were asked for where none can be: an error, or a warning where Paddle goes on."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import app
from app.compat import torch
from app.errors import GradientError


def wanting(*numbers: float) -> app.Tensor:
    return app.to_tensor(numbers, stop_gradient=False)


KINDS = [GradientError, RuntimeError, ValueError]


def test_backward_from_what_wants_no_gradient_does_nothing_and_says_so():
    with pytest.warns(UserWarning, match="backward from a Tensor with stop_gradient=True does nothing"):
        app.ones([1]).backward()


def test_beside_another_it_is_an_error():
    with pytest.raises(GradientError, match="element 1 of tensors does not require grad and does not have a grad_fn"):
        app.autograd.backward([wanting(1.0), app.ones([1])])


@pytest.mark.parametrize("kind", KINDS)
def test_for_pytorch_it_is_an_error_in_any_case(kind: type[Exception]):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(kind, match="element 0 of tensors does not require grad and does not have a grad_fn"):
            torch.ones(1).backward()


@pytest.mark.parametrize("kind", KINDS)
def test_an_input_that_was_not_used(kind: type[Exception]):
    x = wanting(1.0)
    with pytest.raises(kind, match=r"input 0 of grad, of shape .*was not used.*allow_unused=True"):
        app.grad(x * 2.0, wanting(1.0))
    assert app.grad(x * 2.0, wanting(1.0), allow_unused=True) == [None]


@pytest.mark.parametrize("change", [lambda x: app.grad(x * 2.0, []), lambda x: app.grad([], x)])
def test_nothing_at_all(change: Any):
    with pytest.raises(GradientError, match="cannot be empty"):
        change(wanting(1.0))


def test_none_is_a_gradient_of_a_pylayer_for_an_input_that_wants_one():
    """As in Paddle and PyTorch: nothing arrives there, not even zeros."""

    class Silent(app.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, dy):
            return None

    x = wanting(1.0)
    Silent.apply(x * x).backward()
    assert x.grad is None
    assert app.grad(Silent.apply(x), x, allow_unused=True) == [None]


def test_a_gradient_wants_gradients_in_paddle_and_none_in_pytorch():
    x = wanting(1.0)
    (x * 2.0).backward()
    assert not x.grad.stop_gradient
    y = torch.ones(1, requires_grad=True)
    (y * 2.0).backward()
    assert not y.grad.requires_grad


def test_backward_into_one_chosen_tensor():
    x, y = wanting(2.0), wanting(3.0)
    app.autograd.backward(x * y, inputs=y)
    assert x.grad is None
    assert y.grad.tolist() == [2]
