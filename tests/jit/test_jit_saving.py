"""A layer or a function is saved without its code, and comes back as a layer that runs, and can be trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import app
from app import jit, nn, static
from app.errors import AppError, ProgramError
from app.static import InputSpec
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


def test_a_layer_in_use_says_the_same_without_its_code(net: Net, back: Any, x: Any):
    assert net.training
    assert isinstance(back, jit.TranslatedLayer)
    assert not back.training
    assert back.program().equals(back.program(training=False))
    assert not back.program().equals(back.program(training=True))
    for given in (x, -x, x[:1]):
        expected, found = net.eval()(given), back(given)
        same(found["out"], expected["out"])
        same(found["parts"][0], expected["parts"][0])
        assert found["parts"][1] == ("label", 3)


def test_its_parameters_have_the_paths_that_they_had(net: Net, back: Any):
    assert back.state_dict().keys() == net.state_dict().keys()
    assert {p.name: p.trainable for p in back.parameters()} == {p.name: p.trainable for p in net.parameters()}
    for path, value in back.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), net.state_dict()[path].numpy())
    other = Net()
    assert other.set_state_dict(back.state_dict()) == ([], [])


def test_it_is_trained_on_as_the_layer_would_be(net: Net, x: Any, tmp_path: Path):
    net.drop.p = 0.0
    jit.save(net, str(tmp_path / "net"), SPEC)
    back = jit.load(str(tmp_path / "net")).train()
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
    for path, value in back.state_dict().items():
        same(value, net.state_dict()[path])


def test_dropout_draws_in_training_alone(back: Any, x: Any):
    same(back(x)["out"], back(x)["out"])
    back.train()
    assert not np.allclose(back(x)["out"].numpy(), back(x)["out"].numpy())


def test_what_was_loaded_is_saved_again_and_used_inside_another(back: Any, x: Any, tmp_path: Path):
    jit.save(back, str(tmp_path / "again"), SPEC)
    same(jit.load(str(tmp_path / "again"))(x)["out"], back(x)["out"])
    around = jit.to_static(lambda value: back(value)["out"] * 10.0)
    same(around(x), back(x)["out"] * 10.0)


def test_a_layer_that_was_called_needs_no_description(x: Any, tmp_path: Path):
    layer = jit.to_static(nn.Sequential(nn.Linear(4, 3), nn.ReLU()))
    expected = layer(x)
    jit.save(layer, str(tmp_path / "net"))
    same(jit.load(str(tmp_path / "net"))(x), expected)
    with pytest.raises(ProgramError, match="was not called yet and has no input_spec"):
        jit.save(nn.Linear(2, 2), str(tmp_path / "other"))


def shifted(x: Any, y: Any) -> Any:
    return x * 2.0 + y, y


def test_functions_are_saved_too_and_tensors_describe_their_inputs(x: Any, tmp_path: Path):
    jit.save(shifted, str(tmp_path / "f"), [x, static.InputSpec([None, 1])])
    back = jit.load(str(tmp_path / "f"))
    one = app.to_tensor(np.ones((6, 1), "float32"))
    first, second = back(x, one)
    same(first, x.numpy() * 2 + 1)
    same(second, one)
    given = app.to_tensor(x.numpy(), stop_gradient=False)
    back(given, one)[0].sum().backward()
    same(given.grad, np.full((6, 4), 2.0))
    with pytest.raises(AppError, match=r"the layer takes 2 inputs \(x, y\), but got 1"):
        back(x)
    with pytest.raises(ProgramError, match=r"jit.save takes a Layer or a function, not 3"):
        jit.save(3, str(tmp_path / "g"), SPEC)


def test_both_doors_open_the_same_file(net: Net, x: Any, tmp_path: Path):
    jit.save(net, str(tmp_path / "net"), SPEC)
    with static.scope_guard(static.Scope()):
        program, feed, fetch = static.load_inference_model(str(tmp_path / "net"))
        out = static.Executor().run(program, feed={feed[0]: x.numpy()}, fetch_list=fetch)[0]
    same(out, net.eval()(x)["out"])
    with static.program_guard(static.Program(), static.Program()), static.scope_guard(static.Scope()):
        a = static.data("a", [None, 3])
        b = static.nn.fc(a, 2, activation="custom.relu")
        static.Executor().run(static.default_startup_program())
        static.save_inference_model(str(tmp_path / "static"), a, b)
        (expected,) = static.Executor().run(feed={"a": np.ones((2, 3), "float32")}, fetch_list=[b])
    back = jit.load(str(tmp_path / "static"))
    same(back(app.ones([2, 3])), expected)
    assert len(back.parameters()) == 2


def test_a_function_that_trains_is_refused(net: Net, tmp_path: Path):
    def step(x: Any) -> Any:
        loss = net(x)["out"].mean()
        loss.backward()
        return loss

    with pytest.raises(ProgramError, match="runs a backward pass, which cannot be saved"):
        jit.save(step, str(tmp_path / "step"), SPEC)


def test_a_layer_that_computes_the_same_in_training_is_written_once(tmp_path: Path):
    app.jit.save(app.nn.Linear(2, 2), str(tmp_path / "linear"), [InputSpec([None, 2], "float32")])
    assert read_model(str(tmp_path / "linear")).training is None
