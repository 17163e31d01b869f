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


@pytest.mark.parametrize("wrong", [nn.functional.relu, nn.ReLU, "relu", 3])
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


def test_what_is_missing_in_a_state_or_unknown_is_told_and_the_rest_is_taken():
    net = nn.Linear(2, 1)
    state = {"weight": np.ones((2, 1)), "biass": np.ones(1), "extra": 1}
    with pytest.warns(UserWarning, match="Linear.set_state_dict: ") as told:
        assert net.set_state_dict(state) == (["bias"], ["biass", "extra"])
    assert [str(w.message) for w in told] == [
        "Linear.set_state_dict: bias: missing, and stay as they are",
        "Linear.set_state_dict: biass, extra: not in this layer",
    ]
    assert net.weight.tolist() == [[1.0], [1.0]]


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
    assert all(not p.grad.numpy().any() for p in net.parameters())
    net.clear_gradients(set_to_zero=False)
    assert all(p.grad is None for p in net.parameters())


def test_repr_shows_the_layers_inside():
    assert repr(nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU()))) == (
        "Sequential(\n  (0): Linear(in_features=3, out_features=4, dtype=float32)\n"
        "  (1): Sequential(\n    (0): ReLU()\n  )\n)"
    )


# The layers that there are


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


# Buffers, hooks and what is done to every layer


class Counting(nn.Layer):
    """Counts its calls in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", to_tensor([0.0]))
        self.register_buffer("passing", to_tensor([1.0]), persistable=False)
        self.inner = nn.Linear(2, 2)

    def forward(self, x: Any) -> Any:
        self.calls = self.calls + 1.0
        return self.inner(x)


def test_buffers_are_state_but_no_parameters():
    net = Counting()
    net(app.ones([1, 2]))
    assert [name for name, _ in net.named_buffers()] == ["calls", "passing"]
    assert net.buffers()[0].tolist() == [1.0]
    assert list(net.state_dict()) == ["inner.weight", "inner.bias", "calls"]
    other = Counting()
    other.set_state_dict(net.state_dict())
    assert other.calls.tolist() == [1.0]
    with pytest.raises(AppError, match="the attribute 'inner' exists already"):
        net.register_buffer("inner", to_tensor(0.0))
    with pytest.raises(AppError, match="buffer 'x' must be a Tensor, found int"):
        net.register_buffer("x", 3)


def test_hooks_see_and_replace_inputs_and_outputs_until_they_are_removed():
    layer, seen = nn.Identity(), []
    before = layer.register_forward_pre_hook(lambda layer, inputs: (inputs[0] * 2.0,))
    after = layer.register_forward_post_hook(lambda layer, inputs, output: output + 1.0)
    watching = layer.register_forward_post_hook(lambda layer, inputs, output: seen.append(output.item()))
    assert layer(to_tensor(3.0)).item() == 7.0
    assert seen == [7.0]
    before.remove()
    after.remove()
    assert layer(to_tensor(3.0)).item() == 3.0
    watching.remove()
    watching.remove()
    assert layer(to_tensor(3.0)).item() == 3.0
    assert seen == [7.0, 3.0]


def test_a_function_is_applied_to_every_layer_the_inner_ones_first():
    net, seen = Net(), []
    assert net.apply(lambda layer: seen.append(type(layer).__name__)) is net
    assert seen == ["Linear", "ReLU", "Linear", "Tanh", "Sequential", "Net"]


def test_train_and_eval_give_the_layer():
    net = Net()
    assert net.eval() is net
    assert net.train() is net
    assert net.training


def test_another_element_type():
    net = Counting()
    assert net.to(dtype="float64") is net
    assert {v.dtype for v in (*net.parameters(), *net.buffers())} == {"float64"}
    assert net(app.ones([1, 2], "float64")).dtype == "float64"
    assert net.float().inner.weight.dtype == "float32"
    assert nn.Layer(dtype="float64").create_parameter([1]).dtype == "float64"


def test_layers_and_parameters_set_too_early_are_told():
    class Early(nn.Layer):
        def __init__(self) -> None:
            self.inner = nn.Linear(1, 1)

    with pytest.raises(AppError, match=r"Early.__init__ must call super\(\).__init__\(\) before it sets 'inner'"):
        Early()


def test_a_shared_layer_is_found_once():
    shared = nn.Linear(1, 1)
    net = nn.Sequential(shared, nn.ReLU(), shared)
    assert [path for path, _ in net.named_sublayers()] == ["0", "1"]
    assert len(net.parameters()) == 2


def test_a_state_by_the_parameters_own_names():
    net = nn.Linear(2, 1)
    state = {p.name: np.full(p.shape, 3.0) for p in net.parameters()}
    assert net.set_state_dict(state, use_structured_name=False) == ([], [])
    assert net.bias.tolist() == [3.0]


@pytest.mark.parametrize(
    ("made", "name"), [(nn.LayerNorm(2), "layer_norm"), (nn.BatchNorm1D(2), "batch_norm1d"), (nn.ReLU(), "re_lu")]
)
def test_full_names_have_words_apart(made: nn.Layer, name: str):
    assert made.full_name().rpartition("_")[0] == name


def test_a_layer_without_bias_says_so_by_false():
    assert nn.Linear(1, 1, bias_attr=False).bias is None
    assert list(nn.LayerNorm(2, weight_attr=False).state_dict()) == ["bias"]
    with pytest.raises(AppError, match="3 does not describe a parameter"):
        nn.Linear(1, 1, weight_attr=3)
