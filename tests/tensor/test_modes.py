"""Whether operators are recorded: by context, by decorator, by switch, and nested in each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import app
from app import enable_grad, is_grad_enabled, no_grad, set_grad_enabled, to_tensor


@pytest.fixture(autouse=True)
def recording() -> Iterator[None]:
    """Each test begins with recording on, and must leave it so."""
    assert is_grad_enabled()
    yield
    left_on = is_grad_enabled()
    set_grad_enabled(True)
    assert left_on


def records() -> bool:
    x = to_tensor([1.0], stop_gradient=False)
    y = x * 2
    assert y.stop_gradient is y.is_leaf is not is_grad_enabled()
    return not y.stop_gradient


SWITCHES = [
    pytest.param(lambda: no_grad(), False, id="no_grad"),
    pytest.param(lambda: enable_grad(), True, id="enable_grad"),
    pytest.param(lambda: set_grad_enabled(False), False, id="set_grad_enabled-off"),
    pytest.param(lambda: set_grad_enabled(True), True, id="set_grad_enabled-on"),
]


@pytest.mark.parametrize(("outer", "on_outside"), SWITCHES)
@pytest.mark.parametrize(("inner", "on_inside"), SWITCHES)
def test_contexts_nest(outer: Any, on_outside: bool, inner: Any, on_inside: bool):
    assert records()
    with outer():
        assert records() is on_outside
        with inner():
            assert records() is on_inside
        assert records() is on_outside
    assert records()


@pytest.mark.parametrize(("switch", "on"), SWITCHES)
def test_decorators_switch_during_the_call_alone(switch: Any, on: bool):
    @switch()
    def function(depth: int, *, word: str) -> list[Any]:
        """What it does."""
        return [records(), word, *(function(depth - 1, word=word) if depth else [])]

    assert records()
    assert function(2, word="a") == [on, "a"] * 3
    assert records()
    with no_grad():
        assert function(0, word="b") == [on, "b"]
        assert not records()
    assert (function.__name__, function.__doc__) == ("function", "What it does.")


@pytest.mark.parametrize(("switch", "on"), [(no_grad, False), (enable_grad, True)])
def test_decorators_without_parentheses(switch: Any, on: bool):
    @switch
    def function(number: int) -> Any:
        return records(), number

    with set_grad_enabled(not on):
        assert function(3) == (on, 3)
        assert records() is not on


@pytest.mark.parametrize(("switch", "on"), SWITCHES)
def test_an_exception_restores_the_mode(switch: Any, on: bool):
    with pytest.raises(ZeroDivisionError), switch():
        1 / 0  # noqa: B018
    assert records()

    @switch()
    def function() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        function()
    assert records()


def test_set_grad_enabled_switches_at_once():
    set_grad_enabled(False)
    assert not records()
    set_grad_enabled(True)
    assert records()


@pytest.mark.parametrize(("switch", "on"), SWITCHES[:2])
def test_one_context_can_be_entered_again_inside_itself(switch: Any, on: bool):
    context = switch()
    with context:
        with enable_grad(), context:
            assert records() is on
        assert records() is on
    assert records()


def test_a_layer_called_without_recording():
    layer = app.nn.Linear(2, 1)
    with no_grad():
        assert layer(to_tensor([[1.0, 2.0]])).stop_gradient
    assert not layer(to_tensor([[1.0, 2.0]])).stop_gradient
