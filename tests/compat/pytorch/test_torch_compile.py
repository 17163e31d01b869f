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
    function = decorate(lambda x: x.t().neg())
    assert repr(function).startswith("<static")


def test_disabled_it_gives_the_function_itself():
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
def test_other_settings_are_refused(settings: dict[str, Any], message: str):
    with pytest.raises(AppError, match=message):
        torch.compile(words, **settings)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.drop = nn.Linear(4, 8), nn.Linear(8, 3), nn.Dropout(0.0)

    def forward(self, x):
        x = F.relu(self.first(x.view(x.size(0), -1)))
        if x.sum() > 1e6:
            x = x.clamp(max=1.0)
        return F.log_softmax(self.drop(self.second(x)), dim=1)


def trained(compile_net: Any, compile_step: Any) -> list[Any]:
    torch.manual_seed(0)
    net = compile_net(Net())
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.nll_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run = compile_step(step)
    x, y = torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])
    losses = [run(x[:size], y[:size]).item() for size in (6, 4, 6, 6)]
    return [*losses, *(p.detach().numpy() for p in net.parameters())]


def same(value: Any) -> Any:
    return value


@pytest.mark.parametrize("forms", [(traced, same), (same, traced)], ids=["module", "step"])
def test_training_gives_the_same_bits(forms: Any):
    for expected, found in zip(trained(same, same), trained(*forms), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_compiled_module_is_the_module():
    net = Net()
    names = list(net.state_dict())
    assert torch.compile(net) is net
    assert list(net.state_dict()) == names


# A traced value keeps its dialect


def test_branches_and_loops_keep_the_dialect():
    def function(x):
        y = x * 1
        if x.sum() > 0:
            y = y.clamp(min=1)
        while y.abs().sum() < 100:
            y = y.mul(2).permute(1, 0)
        for row in y:
            y = y.add(row.max(0).values, alpha=1)
        return y.max(1).indices

    found = traced(function)(X[:2, :2])
    np.testing.assert_array_equal(found.numpy(), function(X[:2, :2]).numpy())


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


def test_what_a_value_is_can_be_asked():
    def function(x):
        assert isinstance(x, torch.Tensor)
        assert torch.is_tensor(x)
        assert x.dtype == torch.float32
        return x * (x.dim() + x.size(0) + x.numel() + x.shape[1] + x.element_size())

    np.testing.assert_array_equal(traced(function)(X).numpy(), function(X).numpy())


def test_a_size_that_was_left_open_cannot_be_compared_unnoticed():
    function = traced(lambda x: x * 2 if x.size(0) == 2 else x)
    assert function(X).sum() == 2 * X.sum()
    assert function(X[:1]).sum() == X[:1].sum()


@pytest.mark.parametrize("name", ["numpy", "item", "tolist", "data_ptr", "stride", "register_hook"])
def test_what_only_eager_tensors_have_is_refused_with_the_line(name: str):
    def function(x):
        return getattr(x * 2, name)()

    with pytest.raises(
        AppError, match=r"part of a traced function.*\n  at .*test_torch_compile.py:\d+: return getattr"
    ):
        traced(function)(X)


def test_a_gradient_can_be_asked_of_a_value_made_in_the_function():
    def function(x):
        inner = x.detach().requires_grad_()
        (found,) = torch.autograd.grad((inner**2).sum(), inner)
        return found.max(1).values

    np.testing.assert_array_equal(traced(function)(X).numpy(), function(X).numpy())


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta"])
def test_a_step_in_a_compiled_function_counts_steps_and_follows_the_learning_rate(name: str):
    def numbers(compile_step: Any) -> Any:
        w = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
        optimizer = getattr(torch.optim, name)([w], lr=0.1)

        def step(x):
            optimizer.zero_grad()
            (w * x).sin().sum().backward()
            optimizer.step()

        run = compile_step(step)
        for call in range(5):
            optimizer.param_groups[0]["lr"] = 0.1 / (1 + call)
            (step if call == 3 else run)(torch.tensor([0.1, 0.2, 0.3]))
        return w.detach().numpy().copy(), optimizer.state_dict()["state"]

    expected, found = numbers(same), numbers(traced)
    np.testing.assert_array_equal(found[0], expected[0])
    assert str(found[1]) == str(expected[1])


def test_a_loaded_state_reaches_a_compiled_step():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    optimizer = torch.optim.Adam([w], lr=0.1)

    @traced
    def step(x):
        w.grad = None
        (w * x).sum().backward()
        optimizer.step()

    step(torch.ones(2))
    first = {
        **optimizer.state_dict(),
        "state": {0: {k: v.clone() for k, v in optimizer.state_dict()["state"][0].items()}},
    }
    for _ in range(3):
        step(torch.ones(2))
    known = optimizer.state[w]["step"]
    optimizer.load_state_dict(first)
    assert optimizer.state[w]["step"] is known  # which the compiled function refers to
    step(torch.ones(2))
    assert optimizer.state_dict()["state"][0]["step"].item() == 2
