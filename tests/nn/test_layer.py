"""Layers: how parameters and layers are found, named, saved, restored, switched and shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import nn, static, to_tensor
from app.errors import AppError, ShapeError
from app.graph import names
from app.graph.defaults import static_mode
from app.tensor import Parameter


class Net(nn.Layer):
    """Two layers, a parameter of its own, and things that are no part of its state."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.act = nn.ReLU()
        self.inner = nn.Sequential(nn.Linear(4, 2), nn.Tanh())
        self.scale = self.create_parameter([2])
        self.note = "text"
        self.constant = to_tensor([1.0])

    def forward(self, x: Any, shift: float = 0.0) -> Any:
        return self.inner(self.act(self.first(x))) * self.scale + shift


PATHS = ["scale", "first.weight", "first.bias", "inner.0.weight", "inner.0.bias"]


def test_parameters_are_found_by_path():
    net = Net()
    assert [path for path, _ in net.named_parameters()] == PATHS
    assert [list(p.shape) for p in net.parameters()] == [[2], [3, 4], [4], [4, 2], [2]]
    assert dict(net.named_parameters())["inner.0.weight"] is net.inner[0].weight
    assert [path for path, _ in net.named_parameters(include_sublayers=False)] == ["scale"]
    assert [path for path, _ in net.named_parameters(prefix="net")] == [f"net.{path}" for path in PATHS]


def test_layers_are_found_by_path():
    net = Net()
    assert [path for path, _ in net.named_sublayers()] == ["first", "act", "inner", "inner.0", "inner.1"]
    assert next(net.named_sublayers(include_self=True)) == ("", net)
    assert list(net.children()) == [net.first, net.act, net.inner]
    assert len(net.sublayers(include_self=True)) == 6


def test_a_parameter_that_is_shared_is_found_once():
    net = Net()
    net.inner[0].weight = net.first.weight
    assert [path for path, _ in net.named_parameters()] == ["scale", "first.weight", "first.bias", "inner.0.bias"]


def test_what_takes_the_name_of_a_parameter_or_layer_takes_its_place():
    net = Net()
    net.scale = None
    net.inner = nn.Linear(4, 2)
    net.act = net.create_parameter([1])
    assert list(net.state_dict()) == ["act", "first.weight", "first.bias", "inner.weight", "inner.bias"]


def test_what_is_deleted_is_no_part_of_the_state():
    net = Net()
    del net.inner
    del net.scale
    assert list(net.state_dict()) == ["first.weight", "first.bias"]
    with pytest.raises(AttributeError):
        net.inner  # noqa: B018
    with pytest.raises(AttributeError):
        del net.inner


def test_layers_and_parameters_can_be_added_under_any_name():
    net = nn.Layer()
    layer, weight = nn.Linear(1, 1, bias_attr=False), nn.create_parameter([2])
    assert net.add_sublayer("0", layer) is layer
    assert net.add_parameter("w", weight) is weight
    assert dict(net.named_parameters()) == {"w": weight, "0.weight": layer.weight}


@pytest.mark.parametrize("wrong", [nn.functional.relu, nn.ReLU, "relu", None])
def test_what_is_no_layer_cannot_be_added_as_one(wrong: Any):
    with pytest.raises(AppError, match="Sequential: sublayer '1' must be a Layer, found"):
        nn.Sequential(nn.Linear(1, 1), wrong)


def test_names_are_those_of_the_layer_and_the_part():
    with names.guard():
        net = Net()
        again = nn.Linear(1, 1, name="head")
    assert (net.full_name(), net.first.full_name(), net.inner[0].full_name()) == ("net_0", "linear_0", "linear_1")
    assert [p.name for p in net.parameters()] == [
        *["net_0.w_0", "linear_0.w_0", "linear_0.b_0", "linear_1.w_0", "linear_1.b_0"]
    ]
    assert again.weight.name == "head_0.w_0"


def test_names_in_a_program_are_those_of_eager_layers():
    with names.guard():
        eager = [p.name for p in Net().parameters()]
    main = static.Program()
    with names.guard(), static_mode(), static.program_guard(main, static.Program()):
        assert [p.name for p in Net().parameters()] == eager
    assert [p.name for p in main.all_parameters()] == sorted(eager, key=[p.name for p in main.all_parameters()].index)


def test_a_layer_is_called_with_what_its_forward_takes():
    net = Net()
    x = to_tensor(np.ones((5, 3), "float32"))
    np.testing.assert_array_equal(net(x, shift=2.0).numpy(), (net(x) + 2.0).numpy())
    with pytest.raises(NotImplementedError, match="Layer needs a method forward"):
        nn.Layer()(x)


# State


def test_state_goes_from_one_network_to_another():
    source, target = Net(), Net()
    x = to_tensor(np.ones((5, 3), "float32"))
    source.scale.set_value([2.0, 3.0])
    assert not np.array_equal(source(x).numpy(), target(x).numpy())
    target.set_state_dict(source.state_dict())
    np.testing.assert_array_equal(source(x).numpy(), target(x).numpy())
    assert target.scale is not source.scale


def test_state_is_taken_from_arrays_and_keeps_the_parameters_type_and_identity():
    net = nn.Linear(2, 1)
    weight = net.weight
    net.set_state_dict({"weight": np.array([[1.0], [2.0]]), "bias": [3.0]})
    assert net.weight is weight
    assert (weight.tolist(), net.bias.tolist(), weight.dtype) == ([[1.0], [2.0]], [3.0], "float32")
    net.load_dict({"weight": to_tensor([[4], [5]]), "bias": [6]})
    assert weight.tolist() == [[4.0], [5.0]]


def test_a_state_with_other_names_is_refused():
    net = nn.Linear(2, 1)
    state = {"weight": np.ones((2, 1)), "biass": np.ones(1), "extra": 1}
    with pytest.raises(AppError) as caught:
        net.set_state_dict(state)
    assert str(caught.value) == "Linear.set_state_dict: missing are bias, unknown are biass, extra"


def test_a_state_of_another_shape_changes_nothing():
    net = nn.Linear(2, 1)
    before = {path: p.tolist() for path, p in net.state_dict().items()}
    with pytest.raises(ShapeError, match=r"bias has shape \[1\], the state dict has \[2\]"):
        net.set_state_dict({"weight": np.zeros((2, 1)), "bias": np.zeros(2)})
    assert {path: p.tolist() for path, p in net.state_dict().items()} == before


def test_train_and_eval_reach_every_layer():
    net = Net()
    assert all(layer.training for layer in net.sublayers(include_self=True))
    net.eval()
    assert not any(layer.training for layer in net.sublayers(include_self=True))
    net.train()
    assert all(layer.training for layer in net.sublayers(include_self=True))


def test_gradients_are_cleared():
    net = Net()
    net(to_tensor(np.ones((5, 3), "float32"))).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.clear_gradients()
    assert all(p.grad is None for p in net.parameters())


def test_repr_shows_the_layers_inside():
    assert repr(nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU()))) == (
        "Sequential(\n  (0): Linear(in_features=3, out_features=4)\n  (1): Sequential(\n    (0): ReLU()\n  )\n)"
    )


# The layers that there are


def test_linear():
    layer = nn.Linear(3, 2)
    x = np.arange(6, dtype="float32").reshape(2, 3)
    layer.bias.set_value([1.0, -1.0])
    np.testing.assert_allclose(layer(to_tensor(x)).numpy(), x @ layer.weight.numpy() + [1.0, -1.0], rtol=1e-6)
    assert layer(to_tensor(x[0])).shape == [2]
    assert layer(to_tensor(np.ones((4, 5, 3), "float32"))).shape == [4, 5, 2]
    assert layer(to_tensor(x[:0])).shape == [0, 2]


def test_linear_without_bias():
    layer = nn.Linear(3, 2, bias_attr=False)
    assert layer.bias is None
    assert list(layer.state_dict()) == ["weight"]
    assert layer(to_tensor(np.zeros((1, 3), "float32"))).tolist() == [[0.0, 0.0]]


def test_linear_of_the_wrong_width_says_which_product():
    with pytest.raises(ShapeError, match=r"operator matmul of \(float32\[2, 5\], float32\[3, 2\]\): the inner sizes"):
        nn.Linear(3, 2)(app.ones([2, 5]))


def test_a_parameter_attribute_says_name_first_value_and_whether_it_is_trained():
    attr = nn.ParamAttr(name="mine", initializer=nn.initializer.Constant(2.0), trainable=False)
    layer = nn.Linear(2, 1, weight_attr=attr, bias_attr=nn.initializer.Constant(5.0))
    assert (layer.weight.name, layer.weight.tolist(), layer.weight.trainable) == ("mine", [[2.0], [2.0]], False)
    assert layer.bias.tolist() == [5.0]
    assert nn.Linear(2, 1, weight_attr="named").weight.name == "named"
    (layer(app.ones([1, 2])) * 1.0).sum().backward()
    assert layer.weight.grad is None
    assert layer.bias.grad.tolist() == [1.0]


def test_parameters_begin_with_the_default_type():
    assert isinstance(nn.Linear(1, 1).weight, Parameter)
    assert nn.create_parameter([2], "float64").dtype == "float64"


def test_sequential():
    first, second = nn.Linear(3, 2), nn.Softmax()
    x = app.ones([4, 3])
    for net in (nn.Sequential(first, second), nn.Sequential([first, second])):
        np.testing.assert_array_equal(net(x).numpy(), second(first(x)).numpy())
        assert (len(net), net[0], net[-1]) == (2, first, second)
        assert list(net.state_dict()) == ["0.weight", "0.bias"]
    assert nn.Sequential()(x) is x


@pytest.mark.parametrize("count", [1, 2])
def test_sequential_with_names(count: int):
    layers = [("one", nn.Linear(3, 3)), ("two", nn.Linear(3, 3))][:count]
    net = nn.Sequential(*layers)
    assert list(net.state_dict()) == ["one.weight", "one.bias", "two.weight", "two.bias"][: 2 * count]
    np.testing.assert_array_equal(net.one.weight.numpy(), layers[0][1].weight.numpy())


@pytest.mark.parametrize(
    ("layer", "function"),
    [
        (nn.ReLU(), app.relu),
        (nn.Tanh(), app.tanh),
        (nn.Sigmoid(), app.sigmoid),
        (nn.LeakyReLU(0.2), lambda x: app.leaky_relu(x, 0.2)),
        (nn.Softmax(0), lambda x: app.softmax(x, 0)),
        (nn.Flatten(), lambda x: app.flatten(x, 1)),
        (nn.Flatten(0, 1), lambda x: app.flatten(x, 0, 1)),
    ],
)
def test_layers_without_parameters(layer: nn.Layer, function: Any):
    x = to_tensor(np.linspace(-2, 2, 24).reshape(2, 3, 4))
    assert layer(x).shape == function(x).shape
    np.testing.assert_array_equal(layer(x).numpy(), function(x).numpy())
    assert layer.parameters() == []
