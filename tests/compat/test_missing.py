"""A name that a façade does not have: an AttributeError that says so and what is closest."""

from __future__ import annotations

import difflib
from timeit import timeit

import pytest

from app.compat import paddle, torch
from app.compat.missing import MissingNameError
from app.errors import AppError


@pytest.mark.parametrize(
    ("module", "name", "closest"),
    [
        (paddle, "tanhh", "closest: paddle.tanh"),
        (paddle, "Linear", "closest: paddle.nn.Linear, paddle.base.dygraph.Linear"),
        (paddle.nn, "linear", "closest: paddle.nn.functional.linear"),
        (paddle.nn, "RELU", "closest: paddle.nn.ReLU"),
        (paddle.nn, "xyzzy", "`python -m app run --coverage paddle` lists what is there"),
    ],
)
def test_what_is_closest_is_said(module: object, name: str, closest: str):
    with pytest.raises(AttributeError, match="in this façade") as caught:
        getattr(module, name)
    assert str(caught.value).split("in this façade; ")[1].startswith(closest)
    assert isinstance(caught.value, (AppError, MissingNameError))


def test_asking_whether_a_name_is_there_works():
    assert hasattr(paddle, "tanh")
    assert not hasattr(paddle, "cuda")
    assert getattr(paddle, "cuda", None) is None


def test_asking_is_cheap():
    """Optimisers and programs ask Tensors for attributes that these need not have."""
    x = torch.ones(1)
    asked = timeit(lambda: hasattr(x, "squeese"), number=1000)
    assert asked < 1000 * timeit(lambda: difflib.get_close_matches("squeese", dir(x)), number=3) / 30


def test_a_traced_function_says_it_with_its_line():
    @paddle.jit.to_static
    def function(x: object) -> object:
        return paddle.xyzzy(x)

    with pytest.raises(AttributeError, match=r"(?s)paddle has no 'xyzzy'.*test_missing.py:\d+: return paddle.xyzzy"):
        function(paddle.ones([1]))
