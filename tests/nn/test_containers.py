"""Containers: what they hold is found, replaced, added and removed as in a list or a dictionary."""

from __future__ import annotations

from collections import OrderedDict

import pytest

import app
from app import nn
from app.errors import AppError


def layers(count: int) -> list[nn.Layer]:
    return [nn.Linear(2, 2) for _ in range(count)]


def test_a_list_of_layers_is_part_of_the_layer_that_holds_it():
    class Net(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.stack = nn.LayerList([nn.Linear(2, 2) for _ in range(2)])

        def forward(self, x: app.Tensor) -> app.Tensor:
            for layer in self.stack:
                x = layer(x)
            return x

    net = Net()
    assert list(net.state_dict()) == ["stack.0.weight", "stack.0.bias", "stack.1.weight", "stack.1.bias"]
    assert net(app.ones([1, 2])).shape == [1, 2]


@pytest.mark.parametrize("kind", [nn.LayerList, lambda some: nn.Sequential(*some)])
def test_layers_in_order(kind: type[nn.LayerList]):
    a, b, c, d = layers(4)
    held = kind([a, b])
    assert held.append(c) is held
    held.insert(1, d)
    assert (list(held), len(held), held[-1], held[1]) == ([a, d, b, c], 4, c, d)
    assert [name for name, _ in held.named_children()] == ["0", "1", "2", "3"]
    del held[0]
    assert list(held) == [d, b, c]
    held[0] = a
    assert (list(held), list(held[1:]), type(held[1:])) == ([a, b, c], [b, c], type(held))
    held.extend([d])
    assert held["3"] is d
    with pytest.raises(IndexError, match="has 4 parts, there is none at 4"):
        held[4]


def test_a_sequence_takes_layers_pairs_lists_and_dictionaries():
    a, b = layers(2)
    for made in (
        nn.Sequential(("x", a), ("y", b)),
        nn.Sequential(OrderedDict(x=a, y=b)),
        nn.Sequential([("x", a), ("y", b)]),
    ):
        assert dict(made.named_children()) == {"x": a, "y": b}
        assert made["x"] is a
    mixed = nn.Sequential(a, ("y", b))
    assert [name for name, _ in mixed.named_children()] == ["0", "y"]


def test_layers_by_name():
    a, b, c = layers(3)
    held = nn.LayerDict({"a": a, "b": b})
    held["c"] = c
    assert (list(held), list(held.values()), len(held), "c" in held) == (["a", "b", "c"], [a, b, c], 3, True)
    assert held.pop("a") is a
    del held["b"]
    assert dict(held.items()) == {"c": c}
    held.update([("d", a)])
    assert list(held.keys()) == ["c", "d"]
    assert list(held.state_dict()) == ["c.weight", "c.bias", "d.weight", "d.bias"]
    held.clear()
    assert not len(held)
    with pytest.raises(AppError, match="is not a pair of a name and a layer"):
        nn.LayerDict([a])


def test_parameters_in_order():
    first, second = nn.create_parameter([2]), nn.create_parameter([3])
    held = nn.ParameterList([first])
    held.append(second)
    assert (list(held), held[1], len(held)) == ([first, second], second, 2)
    assert [name for name, _ in held.named_parameters()] == ["0", "1"]
