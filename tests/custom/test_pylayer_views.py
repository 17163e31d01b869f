"""What a PyLayer gives out of the memory of its inputs: it cannot be changed in place where gradients had to follow."""

from __future__ import annotations

from typing import Any

import pytest
from layers import data, layer

import app
from app.autograd import Function
from app.errors import InPlaceError


def widened(dy: Any) -> Any:
    return app.concat([dy, app.zeros([1], "float64")])


Part = layer(lambda ctx, x: x[:2], lambda ctx, dy: widened(dy))
Same = layer(lambda ctx, x: x, lambda ctx, dy: dy, Function)  # as in PyTorch, it is not changed by being returned
Pair = layer(lambda ctx, x: (x * 1.0, x[:2]), lambda ctx, whole, part: whole + widened(part))


CHANGES = [lambda y: y.multiply_(app.to_tensor([2.0])), lambda y: y.__setitem__(0, 5.0), lambda y: y[:1].zero_()]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("apply", [Part.apply, Same.apply, lambda x: Pair.apply(x)[1]])
@pytest.mark.parametrize("leaf", [True, False])
def test_a_view_of_an_input_is_not_changed(apply: Any, change: Any, leaf: bool):
    start = data(1.0, 2.0, 3.0)
    x = start if leaf else start * 1.0
    y = apply(x)
    with pytest.raises(InPlaceError, match=r"operator \w+ .* returned a view of its input, which cannot be changed"):
        change(y)
    assert x.tolist() == [1, 2, 3]


def test_it_is_not_where_forward_ran_unrecorded_either():
    x = data(1.0, 2.0, 3.0)
    with app.no_grad():
        y = Part.apply(x)
        y.multiply_(app.to_tensor([2.0, 2.0]))
    assert x.tolist() == [2, 4, 3]
    with pytest.raises(InPlaceError, match="returned a view"):
        y.zero_()


def test_it_may_be_where_no_gradient_is_wanted():
    x = data(1.0, 2.0, 3.0, stop_gradient=True)
    Part.apply(x).zero_()
    assert x.tolist() == [0, 0, 3]


def test_it_is_not_where_what_comes_in_wants_gradients():
    x = data(1.0, 2.0, 3.0, stop_gradient=True)
    for change in (lambda y, w: y.add_(w), lambda y, w: y.__setitem__(0, w)):
        with pytest.raises(InPlaceError, match="returned a view"):
            change(Part.apply(x), data(5.0)[0])
    assert x.tolist() == [1, 2, 3]


def test_a_result_in_memory_of_its_own_may_be_changed():
    x = data(1.0, 2.0, 3.0)
    whole = Pair.apply(x)[0]
    whole.multiply_(app.to_tensor([2.0]))
    whole.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_a_view_may_be_used_and_copied():
    x = data(1.0, 2.0, 3.0)
    y = Part.apply(x)
    copied = y.clone()
    copied.multiply_(app.to_tensor([2.0, 2.0]))
    (copied + y[1] + y.reshape([2])).sum().backward()
    assert x.grad.tolist() == [3, 5, 0]
