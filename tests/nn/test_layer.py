"""Layers and containers: parameters, names, state, modes, hooks and text."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import app
from app import nn, static, to_tensor
from app.errors import AppError, OperatorError
from app.graph import names
from app.graph.defaults import static_mode
from app.tensor import Parameter


class Net(nn.Layer):
    """Two layers, a parameter of its own, buffers, and attributes that are no part of its state."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.act = nn.ReLU()
        self.inner = nn.Sequential(nn.Linear(4, 2), nn.Tanh())
        self.scale = self.create_parameter([2])
        self.register_buffer("calls", to_tensor([0.0]))
        self.register_buffer("passing", to_tensor([1.0]), persistable=False)
        self.note = "text"
        self.constant = to_tensor([1.0])

    def forward(self, x: Any, shift: float = 0.0) -> Any:
        self.calls = self.calls + 1.0
        return self.inner(self.act(self.first(x))) * self.scale + shift


PATHS = ["scale", "first.weight", "first.bias", "inner.0.weight", "inner.0.bias"]
X = to_tensor(np.ones((5, 3), "float32"))


def paths(net: nn.Layer) -> list[str]:
    return [path for path, _ in net.named_parameters()]


# Parameters, layers and buffers


def test_parameters_layers_and_buffers_are_found_by_path():
    net = Net()
    assert paths(net) == PATHS
    assert [list(p.shape) for p in net.parameters()] == [[2], [3, 4], [4], [4, 2], [2]]
    assert dict(net.named_parameters())["inner.0.weight"] is net.inner[0].weight
    assert [path for path, _ in net.named_parameters(include_sublayers=False)] == ["scale"]
    assert [path for path, _ in net.named_parameters(prefix="net")] == [f"net.{path}" for path in PATHS]
    assert [path for path, _ in net.named_sublayers()] == ["first", "act", "inner", "inner.0", "inner.1"]
    assert next(net.named_sublayers(include_self=True)) == ("", net)
    assert list(net.children()) == [net.first, net.act, net.inner]
    assert len(net.sublayers(include_self=True)) == 6
    assert [path for path, _ in net.named_buffers()] == ["calls", "passing"]
    assert list(net.state_dict()) == [*PATHS, "calls"]


def test_shared_parameters_and_layers_are_found_once():
    net = Net()
    net.inner[0].weight = net.first.weight
    assert paths(net) == ["scale", "first.weight", "first.bias", "inner.0.bias"]
    shared = nn.Linear(1, 1)
    net = nn.Sequential(shared, nn.ReLU(), shared)
    assert [path for path, _ in net.named_sublayers()] == ["0", "1"]
    assert len(net.parameters()) == 2


def test_attributes_can_be_replaced_deleted_and_added_under_any_name():
    net = Net()
    net.scale = None
    net.inner = nn.Linear(4, 2)
    net.act = net.create_parameter([1])
    assert paths(net) == ["act", "first.weight", "first.bias", "inner.weight", "inner.bias"]
    del net.inner
    del net.act
    assert paths(net) == ["first.weight", "first.bias"]
    with pytest.raises(AttributeError):
        net.inner  # noqa: B018
    with pytest.raises(AttributeError):
        del net.inner
    layer, weight = nn.Linear(1, 1, bias_attr=False), nn.create_parameter([2])
    assert net.add_sublayer("0", layer) is layer
    assert net.add_parameter("w", weight) is weight
    assert paths(net) == ["w", "first.weight", "first.bias", "0.weight"]


def test_a_parameter_that_replaces_a_buffer_is_trained_and_a_tensor_that_replaces_a_parameter_is_an_error():
    net = Net()
    net.calls = nn.create_parameter([1])
    assert "calls" in paths(net)
    assert [path for path, _ in net.named_buffers()] == ["passing"]
    for value in (net.first.weight * 0.5, np.zeros((3, 4)), 0.0):
        with pytest.raises(TypeError, match=r"Linear.weight is a parameter, so .* change its numbers by weight.set_v"):
            net.first.weight = value
    assert "first.weight" in paths(net)
    del net.first.weight
    net.first.weight = to_tensor(np.ones((3, 4), "float32"))
    net.first.bias = None
    net.first.bias = to_tensor(np.ones(4, "float32"))
    assert not {"first.weight", "first.bias"} & set(paths(net))
    assert net.first(X[:1]).tolist() == [[4.0] * 4]


def test_parts_that_are_set_in_a_shallow_copy_are_not_listed_in_the_original():
    net = Net()
    copied = copy.copy(net)
    copied.scale = nn.create_parameter([1])
    copied.first = nn.Linear(3, 1)
    assert [list(p.shape) for p in net.parameters()] == [[2], [3, 4], [4], [4, 2], [2]]
    assert copied.parameters()[0] is copied.scale
    assert copied.inner is net.inner


def test_names_are_those_of_the_layer_and_the_part_in_both_modes():
    with names.guard():
        net, head = Net(), nn.Linear(1, 1, name="head")
    assert (net.full_name(), net.first.full_name(), net.inner[0].full_name()) == ("net_0", "linear_0", "linear_1")
    expected = [p.name for p in net.parameters()]
    assert expected == ["net_0.w_0", "linear_0.w_0", "linear_0.b_0", "linear_1.w_0", "linear_1.b_0"]
    assert head.weight.name == "head_0.w_0"
    for layer, name in ((nn.BatchNorm1D(2), "batch_norm1d"), (nn.ReLU(), "re_lu")):
        assert layer.full_name().rpartition("_")[0] == name
    main = static.Program()
    with names.guard(), static_mode(), static.program_guard(main, static.Program()):
        assert [p.name for p in Net().parameters()] == expected
    assert {p.name for p in main.all_parameters()} == set(expected)


def test_a_parameter_attribute_says_name_first_value_and_whether_it_is_trained():
    attr = nn.ParamAttr(name="mine", initializer=nn.initializer.Constant(2.0), trainable=False)
    layer = nn.Linear(2, 1, weight_attr=attr, bias_attr=nn.initializer.Constant(5.0))
    assert (layer.weight.name, layer.weight.tolist(), layer.weight.trainable) == ("mine", [[2.0], [2.0]], False)
    assert isinstance(layer.weight, Parameter)
    assert layer.bias.tolist() == [5.0]
    layer(app.ones([1, 2])).sum().backward()
    assert (layer.weight.grad, layer.bias.grad.tolist()) == (None, [1.0])
    assert nn.Linear(2, 1, weight_attr="named").weight.name == "named"
    without = nn.Linear(3, 2, bias_attr=False)
    assert (without.bias, list(without.state_dict())) == (None, ["weight"])
    assert without(app.zeros([1, 3])).tolist() == [[0.0, 0.0]]
    assert list(nn.Linear(2, 1, weight_attr=False).state_dict()) == ["bias"]


# State


def test_state_moves_from_one_network_to_another():
    source, target = Net(), Net()
    source.scale.set_value([2.0, 3.0])
    assert not np.array_equal(source(X).numpy(), target(X).numpy())
    target.set_state_dict(source.state_dict())
    np.testing.assert_array_equal(source(X).numpy(), target(X).numpy())
    assert target.scale is not source.scale
    assert target.calls.tolist() == [2.0]


def test_state_is_taken_from_arrays_and_keeps_the_parameters_type_and_identity():
    net = nn.Linear(2, 1)
    weight = net.weight
    net.set_state_dict({"weight": np.array([[1.0], [2.0]]), "bias": [3.0]})
    assert net.weight is weight
    assert (weight.tolist(), net.bias.tolist(), weight.dtype) == ([[1.0], [2.0]], [3.0], "float32")
    net.set_state_dict({"weight": to_tensor([[4], [5]]), "bias": [6]})
    assert weight.tolist() == [[4.0], [5.0]]
    state = {p.name: np.full(p.shape, 3.0) for p in net.parameters()}
    assert net.set_state_dict(state, use_structured_name=False) == ([], [])
    assert net.bias.tolist() == [3.0]


def test_missing_and_unknown_entries_of_a_state_warn_and_the_others_are_taken():
    net = nn.Linear(2, 1)
    state = {"weight": np.ones((2, 1)), "biass": np.ones(1), "extra": 1}
    with pytest.warns(UserWarning, match="Linear.set_state_dict: ") as warnings:
        assert net.set_state_dict(state) == (["bias"], ["biass", "extra"])
    assert [str(w.message) for w in warnings] == [
        "Linear.set_state_dict: bias: missing, and stay as they are",
        "Linear.set_state_dict: biass, extra: not in this layer",
    ]
    assert net.weight.tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("bias", np.zeros(2), r"bias has shape \[1\], the state dict has \[2\]"),
        ("bias", [1j], "bias is float32, and was given complex128; nothing was changed"),
        ("bias", ["a"], "bias is float32, and was given <U1; nothing was changed"),
        ("bias", [1e300], "bias is float32, and was given float64, with numbers that float32 cannot hold; nothing"),
        ("steps", [1.5], r"steps is int8, and was given float64; .* give np.asarray\(value\).astype\('int8'\)"),
        ("steps", [300], "steps is int8, and was given int64, with numbers that int8 cannot hold; nothing was changed"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(name: str, wrong: Any, message: str):
    net = nn.Linear(2, 1)
    net.register_buffer("steps", to_tensor([7], "int8"))
    before = {path: p.tolist() for path, p in net.state_dict().items()}
    with pytest.raises(OperatorError, match=message):
        net.set_state_dict({"weight": np.zeros((2, 1)), "bias": [0.0], "steps": [3], name: wrong})
    assert {path: p.tolist() for path, p in net.state_dict().items()} == before
    net.set_state_dict({"weight": np.zeros((2, 1)), "bias": [np.inf], "steps": [3]})
    assert (net.bias.tolist(), net.steps.tolist()) == ([np.inf], [3])


def test_the_values_of_a_layer_can_be_exchanged():
    net = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    state = net.state_dict()
    first, second = net[0].weight.tolist(), net[1].weight.tolist()
    net.set_state_dict({**state, "0.weight": state["1.weight"], "1.weight": state["0.weight"]})
    assert (net[0].weight.tolist(), net[1].weight.tolist()) == (second, first)


# Calls, and changes of every layer


def test_a_layer_is_called_with_the_arguments_of_its_forward():
    net = Net()
    np.testing.assert_array_equal(net(X, shift=2.0).numpy(), (net(X) + 2.0).numpy())
    with pytest.raises(NotImplementedError, match="Layer needs a method forward"):
        nn.Layer()(X)


def test_train_eval_and_functions_reach_every_layer():
    net, seen = Net(), []
    assert net.training
    for switch, training in ((net.eval, False), (net.train, True)):
        assert switch() is net
        assert {layer.training for layer in net.sublayers(include_self=True)} == {training}
    assert net.apply(lambda layer: seen.append(type(layer).__name__)) is net
    assert seen == ["Linear", "ReLU", "Linear", "Tanh", "Sequential", "Net"]


def test_gradients_are_cleared():
    net = Net()
    net(X).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.clear_gradients()
    assert all(not p.grad.numpy().any() for p in net.parameters())
    net.clear_gradients(set_to_zero=False)
    assert all(p.grad is None for p in net.parameters())


def test_a_layer_can_change_its_element_type():
    net = Net()
    assert net.to(dtype="float64") is net
    assert {v.dtype for v in (*net.parameters(), *net.buffers())} == {"float64"}
    assert net(X.astype("float64")).dtype == "float64"
    assert net.float().inner[0].weight.dtype == "float32"
    assert nn.Layer(dtype="float64").create_parameter([1]).dtype == "float64"


def test_hooks_see_and_replace_inputs_and_outputs_until_they_are_removed():
    layer, seen = nn.Sequential(), []
    before = layer.register_forward_pre_hook(lambda layer, inputs: (inputs[0] * 2.0,))
    after = layer.register_forward_post_hook(lambda layer, inputs, output: output + 1.0)
    watching = layer.register_forward_post_hook(lambda layer, inputs, output: seen.append(output.item()))
    assert layer(to_tensor(3.0)).item() == 7.0
    before.remove()
    after.remove()
    assert layer(to_tensor(3.0)).item() == 3.0
    watching.remove()
    watching.remove()
    assert layer(to_tensor(3.0)).item() == 3.0
    assert seen == [7.0, 3.0]


def test_repr_shows_the_layers_inside():
    assert repr(nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU()))) == (
        "Sequential(\n  (0): Linear(in_features=3, out_features=4, dtype=float32)\n"
        "  (1): Sequential(\n    (0): ReLU()\n  )\n)"
    )


# Containers


def layers(count: int) -> list[nn.Layer]:
    return [nn.Linear(2, 2) for _ in range(count)]


def test_a_sequence_has_its_layers_by_number_name_and_slice():
    a, b, c = layers(3)
    held = nn.Sequential(a, b, c)
    assert (list(held), len(held), held[-1], held["1"]) == ([a, b, c], 3, c, b)
    assert (list(held[1:]), type(held[1:])) == ([b, c], nn.Sequential)
    assert [name for name, _ in held[1:].named_children()] == ["0", "1"]
    assert list(nn.Sequential(("stack", held)).state_dict())[:3] == ["stack.0.weight", "stack.0.bias", "stack.1.weight"]
    with pytest.raises(IndexError):
        held[3]


def test_a_sequence_takes_layers_pairs_lists_and_dictionaries_and_calls_them_in_order():
    a, b = layers(2)
    x = app.ones([4, 2])
    for sequence, keys in (
        (nn.Sequential(a, b), "01"),
        (nn.Sequential([a, b]), "01"),
        (nn.Sequential(("x", a), ("y", b)), "xy"),
        (nn.Sequential(OrderedDict(x=a, y=b)), "xy"),
        (nn.Sequential([("x", a), ("y", b)]), "xy"),
        (nn.Sequential(a, ("y", b)), "0y"),
    ):
        assert list(sequence.named_children()) == [(keys[0], a), (keys[1], b)]
        assert sequence[keys[0]] is getattr(sequence, keys[0]) is a
        np.testing.assert_array_equal(sequence(x).numpy(), b(a(x)).numpy())
    assert list(nn.Sequential(("one", a)).state_dict()) == ["one.weight", "one.bias"]
    assert nn.Sequential()(x) is x


# Errors


def same_path() -> nn.Layer:
    return nn.Sequential(("a.b", nn.Linear(1, 1)), ("a", nn.Sequential(("b", nn.Linear(1, 1)))))


def test_a_state_dict_is_put_into_one_that_has_the_paths_of_another_layer():
    first, second = nn.Linear(1, 1), nn.Linear(1, 1)
    state = first.state_dict()
    assert second.state_dict(destination=state) is state
    assert state["weight"] is second.weight


class Early(nn.Layer):
    def __init__(self) -> None:
        self.inner = nn.Linear(1, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (Early, r"Early.__init__ must call super\(\).__init__\(\) before it sets 'inner'"),
        (lambda: Net().register_buffer("inner", to_tensor(0.0)), "the attribute 'inner' exists already"),
        (lambda: Net().register_buffer("x", 3), "buffer 'x' must be a Tensor, found int"),
        (lambda: same_path().state_dict(), "state_dict: two values have the path 'a.b.weight'; .* rename one"),
        (lambda: nn.Linear(1, 1, weight_attr=3), "3 does not describe a parameter"),
        (lambda: nn.Linear(3, 2)(app.ones([2, 5])), r"operator matmul of \(float32\[2, 5\], float32\[3, 2\]\): the in"),
        *(
            (lambda wrong=wrong: nn.Sequential(nn.Linear(1, 1), wrong), "sublayer '1' must be a Layer, found")
            for wrong in (nn.functional.relu, nn.ReLU, "relu", 3)
        ),
    ],
)
def test_wrong_arguments_are_errors(call: Any, message: str):
    with pytest.raises(AppError, match=message):
        call()
