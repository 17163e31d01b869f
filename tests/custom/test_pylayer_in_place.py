"""PyLayers that return or change their inputs, and results that share memory with an input."""

from __future__ import annotations

from typing import Any

import pytest
from layers import data, layer

import app
from app.autograd import Function, PyLayer
from app.errors import InPlaceError


def returned(ctx: Any, x: Any) -> Any:
    return x


def five_times(ctx: Any, dy: Any) -> Any:
    return dy * 5.0


def test_an_input_that_a_pylayer_returns_was_changed_in_place():
    identity = layer(returned, five_times)
    x = data(1.0, 2.0)
    y = x * 2.0
    squared = y**2
    z = identity.apply(y)
    assert z is y
    assert y.inplace_version == 1
    z.sum().backward()
    assert x.grad.tolist() == [10.0, 10.0]
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation since"):
        squared.backward()
    with pytest.raises(ValueError, match="a leaf Tensor with stop_gradient=False"):
        identity.apply(data(1.0))


@pytest.mark.parametrize(
    ("forward", "base"),
    [(returned, Function), (lambda ctx, x: (ctx.mark_not_inplace(x), x)[1], PyLayer)],
    ids=["Function", "mark_not_inplace"],
)
def test_an_input_that_is_returned_unchanged_is_a_new_result(forward: Any, base: type[PyLayer]):
    x = data(1.0)
    y = layer(forward, five_times, base).apply(x)
    assert y is not x
    y.backward()
    assert (x.grad.tolist(), x.inplace_version) == ([5.0], 0)


def test_an_input_that_a_function_marks_as_dirty_is_changed_in_place():
    def forward(ctx, x):
        x.add_(app.ones([1], "float64"))
        ctx.mark_dirty(x)
        return x

    cus = layer(forward, five_times, Function)
    x = data(1.0)
    y = x * 2.0
    assert cus.apply(y) is y
    y.backward()
    assert (y.tolist(), x.grad.tolist()) == ([3.0], [10.0])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        cus.apply(data(1.0))
    wrong = layer(lambda ctx, x: (ctx.mark_dirty(x), x * 1.0)[1], five_times, Function)
    with pytest.raises(RuntimeError, match="marked as dirty was not returned"):
        wrong.apply(x * 1.0)


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_backward_that_changes_its_gradient_in_place_is_an_error_because_others_may_read_it(create_graph: bool):
    doubled = layer(lambda ctx, x: x * 2.0, lambda ctx, dy: dy.multiply_(dy + 1.0), Function)
    x, start = data(1.0), data(1.0)
    y = doubled.apply(x) + x * 1.0
    with pytest.raises(InPlaceError, match=r"in place|gradient 0, which backward got, .* change a copy of it"):
        y.backward(start, create_graph=create_graph)


# --- Views of inputs: a change in place would leave gradients wrong ---


def widened(dy: Any) -> Any:
    return app.concat([dy, app.zeros([1], "float64")])


Part = layer(lambda ctx, x: x[:2], lambda ctx, dy: widened(dy))
Same = layer(returned, lambda ctx, dy: dy, Function)
Pair = layer(lambda ctx, x: (x * 1.0, x[:2]), lambda ctx, whole, part: whole + widened(part))
CHANGES = [lambda y: y.multiply_(app.to_tensor([2.0])), lambda y: y.__setitem__(0, 5.0), lambda y: y[:1].zero_()]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("apply", [Part.apply, Same.apply, lambda x: Pair.apply(x)[1]])
@pytest.mark.parametrize("leaf", [True, False])
def test_a_view_of_an_input_cannot_be_changed(apply: Any, change: Any, leaf: bool):
    start = data(1.0, 2.0, 3.0)
    x = start if leaf else start * 1.0
    y = apply(x)
    with pytest.raises(InPlaceError, match=r"is a view of the same memory|memory of a leaf"):
        change(y)
    assert x.tolist() == [1, 2, 3]


def test_a_view_made_under_no_grad_can_be_changed_only_there():
    x = data(1.0, 2.0, 3.0)
    with app.no_grad():
        y = Part.apply(x)
        y.multiply_(app.to_tensor([2.0, 2.0]))
    assert x.tolist() == [2, 4, 3]
    with pytest.raises(InPlaceError, match=r"is a view of the same memory|memory of a leaf"):
        y.zero_()


def test_a_view_of_an_input_without_gradient_takes_only_values_without_gradient():
    x = data(1.0, 2.0, 3.0, stop_gradient=True)
    for change in (lambda y, w: y.add_(w), lambda y, w: y.__setitem__(0, w)):
        with pytest.raises(InPlaceError, match=r"is a view of the same memory|memory of a leaf"):
            change(Part.apply(x), data(5.0)[0])
    assert x.tolist() == [1, 2, 3]
    Part.apply(x).zero_()
    assert x.tolist() == [0, 0, 3]


def test_copies_of_a_view_and_results_with_memory_of_their_own_can_be_changed():
    x = data(1.0, 2.0, 3.0)
    y = Part.apply(x)
    copied, whole = y.clone(), Pair.apply(x)[0]
    copied.multiply_(app.to_tensor([2.0, 2.0]))
    whole.multiply_(app.to_tensor([2.0]))
    (copied + y[1] + y.reshape([2]) + whole.sum()).sum().backward()
    assert x.grad.tolist() == [3 + 4, 5 + 4, 0 + 4]
