"""`copy.deepcopy` and pickles of Tensors: the numbers are copied, and where they came from is left behind."""

from __future__ import annotations

import copy
import pickle

import app
from app import nn


def test_a_copy_is_a_leaf_with_its_own_numbers_and_without_gradient_and_hooks():
    x = app.to_tensor([1.0, 2.0], stop_gradient=False)
    calls = []
    x.register_hook(calls.append)
    (x * 3.0).sum().backward()
    for copied, numbers in ((copy.deepcopy(x), [1.0, 2.0]), (copy.deepcopy(x * 2.0), [2.0, 4.0])):
        assert (copied.tolist(), copied.stop_gradient, copied.is_leaf, copied.grad) == (numbers, False, True, None)
        (copied * 3.0).sum().backward()
        assert copied.grad.tolist() == [3, 3]
        copied.set_value([9.0, 9.0])
    assert (x.tolist(), x.grad.tolist(), len(calls)) == ([1, 2], [3, 3], 1)


def test_a_copy_of_a_view_has_memory_of_its_own():
    x = app.to_tensor([1.0, 2.0, 3.0])
    copied = copy.deepcopy(x[1:])
    x[1] = 9.0
    assert copied.tolist() == [2, 3]


def test_a_tensor_that_appears_twice_is_copied_once():
    x = app.ones([2])
    first, second, other = copy.deepcopy([x, x, app.ones([2])])
    assert first is second
    assert first is not other


def test_copies_have_names_of_their_own():
    x = app.ones([1])
    x.name = "x"
    names = [x.name, copy.deepcopy(x).name, copy.deepcopy(x).name]
    assert len(set(names)) == 3
    assert all(name.startswith("x_deepcopy") for name in names[1:])


def test_parameters_stay_parameters():
    layer = nn.Linear(3, 2, weight_attr=app.ParamAttr(learning_rate=0.5))
    layer.bias.trainable = False
    copied = copy.deepcopy(layer)
    assert type(copied.weight) is type(layer.weight)
    assert (copied.weight.persistable, copied.bias.trainable) == (True, False)
    assert copied.weight.attr is layer.weight.attr
    assert {p.name for p in copied.parameters()}.isdisjoint(p.name for p in layer.parameters())
    before = layer.weight.numpy()
    copied(app.ones([1, 3])).sum().backward()
    app.optimizer.SGD(0.1, parameters=copied.parameters()).step()
    assert (layer.weight.numpy() == before).all()
    assert (copied.weight.numpy() != before).all()


def test_a_pickle_holds_numbers_and_a_name_but_no_graph():
    parameter = nn.create_parameter([2], "float32")
    (parameter * 2.0).sum().backward()
    part = parameter[:1]  # that looks into the same memory
    again, taken = pickle.loads(pickle.dumps([parameter, part]))
    assert (again.tolist(), again.name) == (parameter.tolist(), parameter.name)
    assert (again.stop_gradient, again.grad) == (False, None)
    assert (taken.tolist(), taken.is_leaf) == (part.tolist(), True)
