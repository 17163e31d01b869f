"""A layer or a function is saved without its code, and comes back as a layer that runs, and can be trained on."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import app
from app import jit, nn, static
from app.errors import AppError, OperatorError, ProgramError
from app.onnx.export import network_of
from app.static.model_file import read_model

SPEC = [static.InputSpec([None, 4], name="x")]


class Net(nn.Layer):
    """What a layer may have: parts that are trained otherwise than used, a buffer, control flow, a nest of results."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(4, 8), nn.BatchNorm1D(8), nn.Linear(8, 2)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("offset", app.to_tensor([0.5, -0.5]))

    def forward(self, x: Any) -> Any:
        h = self.drop(app.tanh(self.norm(self.first(x))))
        out = self.last(h) + self.offset
        if out.sum() > 0:
            out = out * 2.0
        if self.training:
            out = out + 1.0
        return {"out": out, "parts": [h, ("label", 3)]}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile nothing, which takes long and changes no fact."""
    monkeypatch.setattr("app.jit.running.BACKENDS", ("reference", "compiled"))


@pytest.fixture
def x() -> Any:
    return app.to_tensor(np.random.default_rng(0).normal(size=(6, 4)).astype("float32"))


@pytest.fixture
def net(x: Any) -> Net:
    """The layer after a pass in training, so that its running values are of its own."""
    net = Net()
    net(x)
    return net


@pytest.fixture
def back(net: Net, tmp_path: Path) -> Any:
    """The layer as it comes back from its files."""
    jit.save(net, str(tmp_path / "net"), SPEC)
    return jit.load(str(tmp_path / "net"))


def same(a: Any, b: Any) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, atol=1e-6)


def test_a_loaded_layer_gives_the_same_without_the_code(net: Net, back: Any, x: Any):
    assert net.training
    assert isinstance(back, jit.TranslatedLayer)
    assert not back.training
    assert back.program().equals(back.program(training=False))
    assert not back.program().equals(back.program(training=True))
    for inputs in (x, -x, x[:1]):
        expected, actual = net.eval()(inputs), back(inputs)
        same(actual["out"], expected["out"])
        same(actual["parts"][0], expected["parts"][0])
        assert actual["parts"][1] == ("label", 3)
    back.train()
    assert not np.allclose(back(x)["out"].numpy(), back(x)["out"].numpy())  # dropout draws


def test_a_loaded_layer_has_the_state_of_the_layer_and_trains_as_it_does(net: Net, x: Any, tmp_path: Path):
    net.drop.p = 0.0
    jit.save(net, str(tmp_path / "net"), SPEC)
    back = jit.load(str(tmp_path / "net")).train()
    assert {p.name: p.trainable for p in back.parameters()} == {p.name: p.trainable for p in net.parameters()}
    losses: list[list[float]] = []
    for layer in (net, back):
        optimizer, losses = app.optimizer.SGD(0.05, parameters=layer.parameters()), [*losses, []]
        for _ in range(5):
            loss = (layer(x)["out"] ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            losses[-1].append(loss.item())
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
    assert losses[1][-1] < losses[1][0]
    assert back.state_dict().keys() == net.state_dict().keys()
    for path, value in back.state_dict().items():
        same(value, net.state_dict()[path])
    assert Net().set_state_dict(back.state_dict()) == ([], [])


def test_a_loaded_layer_is_saved_again_and_used_in_a_traced_function(back: Any, x: Any, tmp_path: Path):
    jit.save(back, str(tmp_path / "again"), SPEC)
    same(jit.load(str(tmp_path / "again"))(x)["out"], back(x)["out"])
    around = jit.to_static(lambda value: back(value)["out"] * 10.0)
    same(around(x), back(x)["out"] * 10.0)


def test_a_traced_layer_is_saved_without_input_specs(x: Any, tmp_path: Path):
    layer = jit.to_static(nn.Sequential(nn.Linear(4, 3), nn.ReLU()))
    expected = layer(x)
    jit.save(layer, str(tmp_path / "net"))
    same(jit.load(str(tmp_path / "net"))(x), expected)
    assert read_model(str(tmp_path / "net")).training is None  # it computes the same in training


def shifted(x: Any, y: Any) -> Any:
    return x * 2.0 + y, y


def test_a_function_is_saved_with_tensors_that_describe_its_inputs(x: Any, tmp_path: Path):
    jit.save(shifted, str(tmp_path / "f"), [x, static.InputSpec([None, 1])])
    back = jit.load(str(tmp_path / "f"))
    one = app.to_tensor(np.ones((6, 1), "float32"))
    first, second = back(x, one)
    same(first, x.numpy() * 2 + 1)
    same(second, one)
    leaf = app.to_tensor(x.numpy(), stop_gradient=False)
    back(leaf, one)[0].sum().backward()
    same(leaf.grad, np.full((6, 4), 2.0))
    with pytest.raises(AppError, match=r"the layer takes 2 inputs \(x, y\), but got 1"):
        back(x)


def difference(x: Any, factor: float = 2.0, a: Any = 1.0, **others: Any) -> Any:
    for value in others.values():
        x = x * 2.0 + value
    return x * factor - a


def test_a_function_is_saved_as_it_was_called_last(x: Any, tmp_path: Path):
    f = jit.to_static(difference, backend="reference")
    one = app.ones([6, 1])
    for factor in (2.0, 3.0, 2.0):
        f(x, factor, one)
    jit.save(f, str(tmp_path / "f"))
    same(jit.load(str(tmp_path / "f"))(x, one), difference(x, 2.0, one))
    same(f(c=one, a=one, b=x, x=x), difference(c=one, a=one, b=x, x=x))
    jit.save(f, str(tmp_path / "f"))
    back = jit.load(str(tmp_path / "f"))
    with pytest.raises(AppError, match=r"takes 4 inputs \(x, a, c, b\)"):
        back(x)
    same(back(x, one, one, x), difference(x, a=one, c=one, b=x))
    nested = jit.to_static(lambda pair, a: pair[0] + pair[1] - a, backend="reference")
    nested([one, one], a=one)
    assert nested.main_program.global_block().vars.keys() >= {"pair_0", "pair_1", "a"}


class Louder(nn.Layer):
    def forward(self, x: Any, factor: float = 1.0) -> Any:
        return x * (10.0 if self.training else 1.0) * factor


@pytest.mark.parametrize("hook", [False, True])
def test_both_modes_of_a_layer_are_saved_whichever_was_called(hook: bool, x: Any, tmp_path: Path):
    for training in (False, True):
        layer = jit.to_static(Louder(), backend="reference")
        if hook:
            layer.register_forward_post_hook(lambda layer, inputs, output: output + 1.0)
        layer.train(training)
        layer(x, 2.0)
        jit.save(layer, str(tmp_path / "net"))
        back = jit.load(str(tmp_path / "net"))
        for mode in (False, True):
            same(back.train(mode)(x), layer.train(mode)(x, 2.0))


def test_jit_and_static_load_the_files_of_each_other(net: Net, x: Any, tmp_path: Path):
    executor = static.Executor(engine="reference")
    jit.save(net, str(tmp_path / "net"), SPEC)
    with static.scope_guard(static.Scope()):
        program, feed, fetch = static.load_inference_model(str(tmp_path / "net"))
        out = executor.run(program, feed={feed[0]: x.numpy()}, fetch_list=fetch)[0]
    same(out, net.eval()(x)["out"])
    with static.program_guard(static.Program(), static.Program()), static.scope_guard(static.Scope()):
        a = static.data("a", [None, 3])
        b = static.nn.fc(a, 2, activation="custom.relu")
        executor.run(static.default_startup_program())
        static.save_inference_model(str(tmp_path / "static"), a, b)
        (expected,) = executor.run(feed={"a": np.ones((2, 3), "float32")}, fetch_list=[b])
    back = jit.load(str(tmp_path / "static"))
    same(back(app.ones([2, 3])), expected)
    assert len(back.parameters()) == 2


def test_what_cannot_be_saved_is_an_error(net: Net, tmp_path: Path):
    def step(x: Any) -> Any:
        loss = net(x)["out"].mean()
        loss.backward()
        return loss

    for what, spec, message in (
        (step, SPEC, "runs a backward pass, which cannot be saved"),
        (nn.Linear(2, 2), None, "was not called yet and has no input_spec"),
        (3, SPEC, "jit.save takes a Layer or a function, not 3"),
    ):
        with pytest.raises(ProgramError, match=message):
            jit.save(what, str(tmp_path / "net"), spec)


class Tripled(app.autograd.PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 3.0

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        return dy * 3.0


def test_a_loaded_layer_with_a_backward_that_was_not_saved_computes_without_gradients(x: Any, tmp_path: Path):
    inner = nn.Linear(4, 3)
    jit.save(jit.to_static(lambda x: Tripled.apply(inner(x))), str(tmp_path / "net"), SPEC)
    back = jit.load(str(tmp_path / "net"))
    with pytest.raises(OperatorError, match=r"which a file does not contain: compute inside opsmith.no_grad\(\)"):
        back(x)
    with app.no_grad():
        same(back(x), inner(x) * 3.0)


# Hooks


class Scaled(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.inner(x) if x.sum() > 0 else self.inner(x) * 2

    def twice(self, x: Any) -> Any:
        return self(self.inner(x))


def times(factor: float) -> Any:
    def hook(layer: Any, inputs: Any, output: Any) -> Any:
        return output * factor if output.sum() > 0 else output * factor + inputs[0].sum()

    return hook


@pytest.mark.parametrize("sign", [1.0, -3.0])
def test_hooks_of_outer_and_inner_layers_are_traced_and_saved(sign: float, x: Any, tmp_path: Path):
    net, x = Scaled(), x * sign
    for layer, factor in ((net, 8.0), (net.inner, 0.5)):
        layer.register_forward_pre_hook(lambda layer, inputs: (inputs[0] + 1,))
        layer.register_forward_post_hook(times(factor))
    expected, of_method = net(x).numpy(), net.twice(x).numpy()
    same(jit.to_static(net.twice, backend="reference")(x), of_method)
    jit.save(net, str(tmp_path / "plain"), SPEC)
    traced = jit.to_static(copy.deepcopy(net), backend="reference")
    same(traced(x), expected)
    jit.save(traced, str(tmp_path / "traced"))
    for name in ("plain", "traced"):
        same(jit.load(str(tmp_path / name))(x), expected)


def test_an_exported_network_has_the_hooks():
    net = nn.Linear(4, 2)
    net.register_forward_post_hook(lambda layer, inputs, output: output * 8)
    model, _ = network_of(net, SPEC)
    assert "multiply" in [op.type for op in model.program.global_block().ops]


class Detaching(nn.Layer):
    """Has parts without gradients, and branches and loops that read inputs directly."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        with app.no_grad():
            noted = self.linear(x) + 3 * x
        y = self.linear((5 * x).detach() + x)
        if x.sum() > 0:
            with app.no_grad():
                noted = noted * self.linear(x)
            y = y + 2 * x * noted
        else:
            y = y + x * noted
        for _ in range(app.ones([], "int64") * 2):
            y = 0.5 * y + self.linear(y).detach() + x
        return y


@pytest.mark.parametrize("sign", [1.0, -3.0])
def test_what_was_detached_has_no_gradient_in_a_loaded_layer_and_everything_else_has(
    sign: float, x: Any, tmp_path: Path
):
    net = Detaching()
    jit.save(net, str(tmp_path / "net"), SPEC)
    of_layers = []
    for layer in (net, jit.load(str(tmp_path / "net"))):
        own = app.to_tensor(sign * abs(x.numpy()), stop_gradient=False)
        layer(own).sum().backward()
        of_layers.append([t.grad.numpy() for t in (own, *layer.parameters())])
    for expected, loaded in zip(*of_layers, strict=True):
        np.testing.assert_allclose(loaded, expected, rtol=1e-5, atol=1e-4)


def test_a_layer_that_changes_its_input_without_gradient_is_saved_for_inputs_that_need_none(x: Any, tmp_path: Path):
    class Net(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            with app.no_grad():
                x.set_value(x * 2)
            return self.linear(x)

    net = Net()
    jit.save(net, str(tmp_path / "net"), SPEC)
    loaded = jit.load(str(tmp_path / "net"))
    same(loaded(x.clone()), net(x.clone()).numpy())
    own = app.to_tensor(x.numpy(), stop_gradient=False)
    with pytest.raises(app.errors.GradientError, match="was saved without gradients of its inputs"):
        loaded(own)
    with app.no_grad():
        same(loaded(own), net(x.clone()).numpy())


def test_a_saved_branch_that_would_give_no_gradient_is_refused(tmp_path: Path):
    data = static.data("x", [None, 4])
    out = static.nn.cond(data.sum() > 0, lambda: data * 3, lambda: data * 2)
    static.save_inference_model(str(tmp_path / "saved"), [data], [out])
    layer = jit.load(str(tmp_path / "saved"))
    ones = app.ones([2, 4])
    assert layer(ones).numpy().tolist() == [[3.0] * 4] * 2
    ones.stop_gradient = False
    with pytest.raises(app.errors.GradientError, match=r"x needs a gradient, and had none in the Program .* jit.save"):
        layer(ones)


def test_a_loaded_branch_with_a_norm_changes_its_running_values(x: Any, tmp_path: Path):
    class Net(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1D(4)

        def forward(self, x: Any) -> Any:
            return self.norm(x) if x.sum() > 0 else 2 * x

    net = Net()
    jit.save(net, str(tmp_path / "net"), SPEC)
    loaded = jit.load(str(tmp_path / "net"))
    net.train()
    loaded.train()
    for value in (x.abs(), -x.abs()):
        with app.no_grad():
            same(loaded(value), net(value).numpy())
    for own, other in zip(net.state_dict().values(), loaded.state_dict().values(), strict=True):
        same(other, own.numpy())
