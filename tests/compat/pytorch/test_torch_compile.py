"""`torch.compile` traces and compiles; a traced value has the methods of PyTorch's Tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app.compat import torch
from app.compat.torch import nn
from app.compat.torch.nn import functional as F  # noqa: N812 - as programs write it
from app.errors import AppError


def words(x, y):
    z = x.permute(1, 0).clamp(min=0.1).float().reshape(-1)
    z.mul_(2)
    return z.max(0).values + y.index_select(1, torch.tensor([0, 1])).select(0, 0).sum()


def traced(function: Any) -> Any:
    return torch.compile(function, backend="eager")


X, Y = torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)


@pytest.mark.slow
def test_a_compiled_function_gives_what_the_eager_one_gives():
    gradients = []
    for function in (words, torch.compile(words)):  # by the compiled engine; the other tests compile nothing
        x = X.clone().requires_grad_()
        found = function(x, Y)
        assert isinstance(found, torch.Tensor)
        np.testing.assert_allclose(found.detach().numpy(), words(X, Y).numpy())
        found.sum().backward()
        gradients.append(x.grad.numpy())
    np.testing.assert_allclose(*gradients)


@pytest.mark.parametrize("decorate", [torch.compile, torch.compile(), torch.compile(fullgraph=True, dynamic=False)])
def test_it_is_a_decorator_with_and_without_arguments(decorate: Any):
    assert repr(decorate(lambda x: x.t().neg())).startswith("<static")


def test_a_module_and_a_function_that_is_not_compiled_are_returned():
    net = Net()
    names = list(net.state_dict())
    assert torch.compile(net) is net
    assert list(net.state_dict()) == names
    assert torch.compile(words, disable=True) is words


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"backend": "cudagraphs"}, "backend='cudagraphs' is not available; there are inductor"),
        ({"backend": print}, "is not available"),
        ({"mode": "fast"}, "there is no mode 'fast'"),
        ({"options": {"trace.enabled": True}}, "options of PyTorch's compiler"),
    ],
)
def test_wrong_settings_are_errors(settings: dict[str, Any], message: str):
    with pytest.raises(AppError, match=message):
        torch.compile(words, **settings)


# Training


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.drop = nn.Linear(4, 8), nn.Linear(8, 3), nn.Dropout(0.0)

    def forward(self, x):
        x = F.relu(self.first(x.view(x.size(0), -1)))
        if x.sum() > 1e6:
            x = x.clamp(max=1.0)
        return F.log_softmax(self.drop(self.second(x)), dim=1)


def trained(compile_net: Any) -> list[Any]:
    torch.manual_seed(0)
    net = compile_net(Net())
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    x, y = torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])
    losses = []
    for size in (6, 4, 6, 6):
        optimizer.zero_grad()
        loss = F.nll_loss(net(x[:size]), y[:size])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [*losses, *(p.detach().numpy() for p in net.parameters())]


def test_training_a_compiled_module_gives_the_same_bits():
    for expected, found in zip(trained(lambda net: net), trained(traced), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta"])
def test_a_step_in_a_compiled_function_counts_steps_and_follows_the_learning_rate(name: str):
    def numbers(compile_step: Any) -> Any:
        w = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
        optimizer = getattr(torch.optim, name)([w], lr=0.1)

        def step(x):
            optimizer.zero_grad()
            loss = (w * x).sin().sum()
            loss.backward()
            optimizer.step()
            return loss

        run = compile_step(step)
        losses = []
        for call in range(5):
            optimizer.param_groups[0]["lr"] = 0.1 / (1 + call)
            losses.append((step if call == 3 else run)(torch.tensor([0.1, 0.2, 0.3])).item())
        return [*losses, *w.tolist()], optimizer.state_dict()["state"]

    expected, found = numbers(lambda step: step), numbers(traced)
    assert found[0] == expected[0]
    assert str(found[1]) == str(expected[1])


def test_a_loaded_state_is_put_into_the_tensors_that_a_compiled_step_refers_to():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    optimizer = torch.optim.Adam([w], lr=0.1)

    @traced
    def step(x):
        w.grad = None
        (w * x).sum().backward()
        optimizer.step()

    step(torch.ones(2))
    state = {name: value.clone() for name, value in optimizer.state[w].items()}
    for _ in range(3):
        step(torch.ones(2))
    known = dict(optimizer.state[w])
    optimizer.load_state_dict({**optimizer.state_dict(), "state": {0: state}})
    for name, value in optimizer.state[w].items():
        assert value is known[name]
        assert value.tolist() == state[name].tolist()
    step(torch.ones(2))
    assert optimizer.state_dict()["state"][0]["step"].item() == 2


# A traced value keeps its dialect


def test_a_function_with_a_gradient_of_its_own_gets_tensors_of_the_dialect():
    class Halved(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            assert x.device.type == "cpu"
            return x.permute(1, 0).mul(0.5)

        @staticmethod
        def backward(ctx, dy):
            return dy.permute(1, 0).new_ones(2, 3).mul(7)

    leaf = X.clone().requires_grad_()
    traced(lambda x: Halved.apply(x).sum())(leaf).backward()
    assert leaf.grad.tolist() == [[7.0] * 3] * 2


def test_a_value_takes_the_dialect_of_the_first_operand():
    def function(x):
        ours = app.to_tensor([[1.0, 5.0, 2.0]])
        return (x + ours).max(1).values, (ours + x).max(1)

    both = traced(function)(X)
    for found, expected in zip(both, function(X), strict=True):
        assert type(found) is type(expected)
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_a_traced_value_answers_questions_and_gives_gradients():
    def function(x):
        assert isinstance(x, torch.Tensor)
        assert x.dtype == torch.float32
        inner = x.detach().requires_grad_()
        (found,) = torch.autograd.grad((inner**2).sum(), inner)
        return found.max(1).values * (x.dim() + x.size(0) + x.numel() + x.shape[1] + x.element_size())

    np.testing.assert_array_equal(traced(function)(X).numpy(), function(X).numpy())


def test_a_size_that_was_left_open_cannot_be_compared_unnoticed():
    function = traced(lambda x: x * 2 if x.size(0) == 2 else x)
    assert function(X).sum() == 2 * X.sum()
    assert function(X[:1]).sum() == X[:1].sum()


@pytest.mark.parametrize("name", ["numpy", "item", "tolist", "data_ptr", "stride", "register_hook"])
def test_methods_of_eager_tensors_alone_are_errors_with_the_line(name: str):
    def function(x):
        return getattr(x * 2, name)()

    with pytest.raises(
        AppError, match=r"part of a traced function.*\n  at .*test_torch_compile.py:\d+: return getattr"
    ):
        traced(function)(X)
