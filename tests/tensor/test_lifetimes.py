"""What a recorded computation keeps alive, and for how long."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import numpy as np
import pytest
from leaves import leaf

import app
from app import Tensor, grad, to_tensor
from app.errors import OperatorError


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    """Only reference counts free memory meanwhile."""
    gc.disable()
    yield
    gc.enable()


def network(x: Tensor) -> Tensor:
    hidden = app.matmul(x, x).relu() + x
    first, second = app.split(hidden, 2)
    return app.concat([first.exp(), second]).softmax()[0].sum()


@pytest.mark.parametrize("then", ["nothing", "backward", "grad", "create_graph", "retained"])
def test_deleting_the_result_frees_nodes_and_arrays_at_once(then: str):
    x = to_tensor(np.eye(4), stop_gradient=False)
    hidden = x * 2.0
    references = weakref.ref(hidden._array), weakref.ref(hidden._node)
    y = network(hidden)
    first = None
    if then == "backward":
        y.backward()
    elif then == "grad":
        first = grad(y, x)
    elif then == "create_graph":
        first = grad(y, x, create_graph=True)
        grad(first[0].sum(), x, retain_graph=True)
    elif then == "retained":
        y.backward(retain_graph=True)
    assert references[1]() is not None
    del hidden, y, first
    assert [ref() for ref in references] == [None, None]
    x.grad = None
    alive = weakref.ref(x)
    del x
    assert alive() is None


def test_an_error_in_a_backward_pass_keeps_nothing_alive():
    x = leaf(2.0)
    y = x * x
    y.backward()
    node = weakref.ref(y._node)
    with pytest.raises(OperatorError):
        y.backward()
    del y
    assert node() is None


def test_a_long_chain_is_walked_and_freed_without_recursion():
    x = y = leaf(1.0)
    for _ in range(20_000):
        y = y + 1.0
    y.backward(retain_graph=True)
    assert x.grad.tolist() == [1.0]
    node = weakref.ref(y._node)
    del y
    assert node() is None
