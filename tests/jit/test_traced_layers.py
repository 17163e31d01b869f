"""Traced methods and layers: the traces of each object, states, and what is traced again."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from jit.traces import static, tensor

import app
from app.errors import ProgramError
from app.jit import to_static
from app.static import InputSpec


class Scaled:
    def __init__(self, by):
        self.by = by

    @to_static(backend="reference")
    def times(self, x):
        return x * self.by


def test_each_object_has_its_own_traces_of_a_method():
    assert [float(Scaled(by).times(tensor(1))) for by in (2, 3)] == [2.0, 3.0]


class ScaledMore(Scaled):
    @to_static(backend="reference")
    def times(self, x):
        return super().times(x) + 1


def test_a_method_that_calls_that_of_a_base_class_is_traced_once():
    scaled = ScaledMore(2)
    assert [(float(scaled.times(tensor(1))), len(scaled.times.traces)) for _ in range(2)] == [(3.0, 1), (3.0, 1)]


class Named(app.nn.Layer):
    by = 2

    @classmethod
    @to_static(backend="reference")
    def times(cls, x):
        return x * cls.by if x.sum() > 0 else x


class NamedMore(Named):
    by = 3


def test_each_class_has_its_own_traces_of_a_class_method():
    for _ in range(2):
        assert [float(each.times(tensor(1))) for each in (Named, NamedMore, Named())] == [2.0, 3.0, 2.0]
    assert [len(each.times.traces) for each in (Named, NamedMore)] == [1, 1]


class Slotted:
    __slots__ = ("by",)

    @to_static(backend="reference")
    def times(self, x):
        return x * self.by


def test_an_object_without_a_place_for_the_traces_of_its_method_is_an_error():
    with pytest.raises(
        ProgramError, match=r'Slotted has no __dict__ for the traces .* add "__dict__" to its __slots__'
    ):
        Slotted().times(tensor(1))


class ScaledLayer(app.nn.Layer):
    def __init__(self, by):
        super().__init__()
        self.by = by

    def forward(self, x):
        return x * self.by


@pytest.mark.parametrize(
    ("make", "call"),
    [(Scaled, lambda each: each.times(tensor(1))), (lambda by: static(ScaledLayer(by)), lambda each: each(tensor(1)))],
)
def test_a_shallow_copy_has_its_own_traces_of_a_method(make, call):
    first = make(2)
    assert float(call(first)) == 2.0
    second = copy.copy(first)
    second.by = 3
    assert [float(call(second)), float(call(first))] == [3.0, 2.0]


class Replacing(app.nn.Layer):
    """A layer that sets an attribute to a Tensor."""

    def __init__(self):
        super().__init__()
        self.state = self.other = tensor(1)

    def forward(self, x):
        self.state = self.state + x
        return self.state * 1


class Handing(Replacing):
    """A layer that sets an attribute to a Tensor from outside."""

    def forward(self, x):
        self.state = [self.other]
        return x + self.state[0]


@pytest.mark.parametrize("kind", [Replacing, Handing])
def test_an_attribute_of_a_layer_cannot_be_set_to_a_tensor(kind):
    with pytest.raises(ProgramError, match=r"state cannot be set to a Tensor .*set_value\(...\)\n  at .*: self.st"):
        static(kind())(tensor(1))


class Losing(Replacing):
    """A layer that reads a Tensor, and forgets it."""

    def forward(self, x):
        y = x + self.state
        self.state = None
        return y


def test_an_attribute_that_holds_a_tensor_cannot_be_set_to_something_else():
    with pytest.raises(ProgramError, match=r"state cannot be set to something else than a Tensor.*\n  at .*: self.st"):
        static(Losing())(tensor(1))


class Averaging(app.nn.Layer):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", tensor(1))

    def forward(self, x):
        if self.training:
            self.mean.set_value(self.mean * 0.5 + x.mean() * 0.5)
        return x - self.mean


@pytest.mark.parametrize("backend", ["reference", pytest.param("compiled", marks=pytest.mark.soak)])
def test_a_buffer_that_is_changed_in_place_is_that_of_each_call(backend):
    eager, traced = Averaging(), to_static(Averaging(), backend=backend)
    for training, rows in ((True, 1), (True, 2), (False, 1), (True, 1), (False, 2)):
        eager.training = traced.training = training
        assert traced(tensor(rows, value=3.0)).tolist() == eager(tensor(rows, value=3.0)).tolist()
        assert float(traced.mean) == float(eager.mean)
    assert len(traced.forward.traces) == 4


def test_a_loaded_layer_keeps_its_states(tmp_path, monkeypatch):
    monkeypatch.setattr("app.jit.running.BACKENDS", ("reference",))
    eager, traced = Averaging(), static(Averaging())
    for layer in (eager, traced):
        layer(tensor(1, value=3.0))
    app.jit.save(traced, str(tmp_path / "layer"), input_spec=[InputSpec([None])])
    loaded = app.jit.load(str(tmp_path / "layer"))
    loaded.train()
    for rows in (2, 3, 1):
        assert loaded(tensor(rows)).tolist() == eager(tensor(rows)).tolist()


class Passing(app.nn.Layer):
    """A layer that hands on a Tensor without computing with it."""

    def __init__(self):
        super().__init__()
        self.one = tensor(1)

    def forward(self, x):
        return x * 1, self.one


def test_a_tensor_that_is_handed_on_is_that_of_each_call():
    layer = static(Passing())
    for number in (1.0, 2.0):
        layer.one = tensor(1, value=number)
        for _ in range(2):
            assert layer(tensor(1))[1] is layer.one
    assert len(layer.forward.traces) == 2


def test_a_layer_may_have_an_attribute_that_contains_itself():
    layer = ScaledLayer(2)
    layer.table = {"numbers": [1.0]}
    layer.table["all"] = layer.table
    assert float(static(layer)(tensor(1))) == 2.0


class Held:
    def __init__(self):
        self.factor = tensor(1)

    @to_static(backend="reference")
    def times(self, x):
        return x * self.factor


def test_a_layer_a_parameter_or_a_tensor_that_was_replaced_is_traced_again():
    net, held = static(app.nn.Sequential(app.nn.Linear(1, 1), app.nn.Linear(1, 1))), Held()
    f = static(lambda x: net(x))
    for _ in range(2):
        for run in (net, f):
            assert float(run(tensor(1, 1))) == pytest.approx(float(net[1](net[0](tensor(1, 1)))))
        setattr(net, "1", app.nn.Linear(1, 1))
        net[0].weight = app.nn.Linear(1, 1).weight
    assert float(held.times(tensor(1))) == 1.0
    held.factor = tensor(1, value=5.0)
    assert float(held.times(tensor(1))) == 5.0


def test_hooks_that_were_added_to_a_layer_or_removed_are_traced_again():
    layer = app.nn.Sequential()
    traced = static(lambda x: layer(x) + 0.0)
    x = app.to_tensor([2.0])
    assert traced(x).tolist() == [2.0]
    for factor in (10.0, 3.0):
        before = layer.register_forward_pre_hook(lambda layer, inputs, factor=factor: inputs[0] * factor)
        after = layer.register_forward_post_hook(lambda layer, inputs, output, factor=factor: output * factor)
        assert [traced(x).tolist() for _ in range(2)] == [[2.0 * factor**2]] * 2
        before.remove()
        assert traced(x).tolist() == [2.0 * factor]
        after.remove()
    assert traced(x).tolist() == [2.0]


def test_a_layer_can_be_copied():
    layer = to_static(app.nn.Linear(2, 2), backend="reference")
    layer(tensor(1, 2))
    other = copy.deepcopy(layer)
    layer.weight.set_value(np.zeros((2, 2), "float32"))
    assert abs(other(tensor(1, 2)).numpy()).sum() > 0


class Decorated(app.nn.Layer):
    def __init__(self):
        super().__init__()
        self.inner = app.nn.Linear(2, 1)

    @to_static(backend="reference")
    def forward(self, x):
        return self.inner(x)


@to_static(backend="reference")
def doubled(x):
    return x * 2


@pytest.mark.parametrize("make", [Decorated, lambda: static(app.nn.Linear(2, 1)), lambda: Scaled(2.0), lambda: doubled])
def test_what_was_traced_can_be_pickled(make):
    traced = make()
    call = traced.times if isinstance(traced, Scaled) else traced
    expected = call(tensor(1, 2)).tolist()
    back = pickle.loads(pickle.dumps(traced))
    call = back.times if isinstance(back, Scaled) else back
    assert call(tensor(1, 2)).tolist() == expected
    assert (back is traced) is (traced is doubled)
