"""`copy.deepcopy` and pickles of Tensors: the numbers are copied, and where they came from is left behind."""

from __future__ import annotations

import copy
import pickle

import app
from app import nn


def test_copies_have_names_of_their_own():
    x = app.ones([1])
    x.name = "x"
    names = [x.name, copy.deepcopy(x).name, copy.deepcopy(x).name]
    assert len(set(names)) == 3
    assert all(name.startswith("x_deepcopy") for name in names[1:])


def test_parameters_stay_parameters():
    layer = nn.Linear(3, 2)
    layer.bias.trainable = False
    copied = copy.deepcopy(layer)
    assert type(copied.weight) is type(layer.weight)
    assert (copied.weight.persistable, copied.bias.trainable) == (True, False)
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
    again, slice_again = pickle.loads(pickle.dumps([parameter, part]))
    assert (again.tolist(), again.name) == (parameter.tolist(), parameter.name)
    assert (again.stop_gradient, again.grad) == (False, None)
    assert (slice_again.tolist(), slice_again.is_leaf) == (part.tolist(), True)
