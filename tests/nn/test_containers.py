"""Containers: what they hold is found, replaced, added and removed as in a list or a dictionary."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

import app
from app import nn
from app.errors import AppError


def layers(count: int) -> list[nn.Layer]:
    return [nn.Linear(2, 2) for _ in range(count)]


def test_layers_of_a_container_are_part_of_the_layer_that_holds_it():
    net = nn.Layer()
    net.stack = nn.LayerList(layers(2))
    assert list(net.state_dict()) == ["stack.0.weight", "stack.0.bias", "stack.1.weight", "stack.1.bias"]


@pytest.mark.parametrize("kind", [nn.LayerList, lambda some: nn.Sequential(*some)])
def test_layer_lists_and_sequences_behave_as_lists(kind: type[nn.LayerList]):
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


def test_a_sequence_takes_layers_pairs_lists_and_dictionaries_and_calls_them_in_order():
    a, b = layers(2)
    x = app.ones([4, 2])
    for made, names in (
        (nn.Sequential(a, b), "01"),
        (nn.Sequential([a, b]), "01"),
        (nn.Sequential(("x", a), ("y", b)), "xy"),
        (nn.Sequential(OrderedDict(x=a, y=b)), "xy"),
        (nn.Sequential([("x", a), ("y", b)]), "xy"),
        (nn.Sequential(a, ("y", b)), "0y"),
    ):
        assert list(made.named_children()) == [(names[0], a), (names[1], b)]
        assert made[names[0]] is getattr(made, names[0]) is a
        np.testing.assert_array_equal(made(x).numpy(), b(a(x)).numpy())
    assert list(nn.Sequential(("one", a)).state_dict()) == ["one.weight", "one.bias"]
    assert nn.Sequential()(x) is x


def test_a_layer_dict_behaves_as_a_dictionary():
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


def test_a_parameter_list_behaves_as_a_list():
    first, second = nn.create_parameter([2]), nn.create_parameter([3])
    held = nn.ParameterList([first])
    held.append(second)
    assert (list(held), held[1], len(held)) == ([first, second], second, 2)
    assert [name for name, _ in held.named_parameters()] == ["0", "1"]
