"""Whether operators are recorded: by decorator, and by switch. test_threads_at_random.py nests contexts at random."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

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
    y = to_tensor([1.0], stop_gradient=False) * 2
    assert y.stop_gradient is y.is_leaf is not is_grad_enabled()
    return not y.stop_gradient


SWITCHES = [
    pytest.param(lambda: no_grad(), False, id="no_grad"),
    pytest.param(lambda: enable_grad(), True, id="enable_grad"),
    pytest.param(lambda: set_grad_enabled(False), False, id="set_grad_enabled-off"),
    pytest.param(lambda: set_grad_enabled(True), True, id="set_grad_enabled-on"),
]


@pytest.mark.parametrize(("switch", "on"), [*SWITCHES, (lambda: no_grad, False), (lambda: enable_grad, True)])
def test_decorators_switch_during_the_call_alone(switch: Any, on: bool):
    @switch()
    def function(depth: int, *, word: str) -> list[Any]:
        """What it does."""
        if not depth:
            assert word != "wrong"
        return [records(), word, *(function(depth - 1, word=word) if depth else [])]

    assert records()
    assert function(2, word="a") == [on, "a"] * 3
    with pytest.raises(AssertionError):
        function(1, word="wrong")
    assert records()
    with no_grad():
        assert function(0, word="b") == [on, "b"]
        assert not records()
    assert (function.__name__, function.__doc__) == ("function", "What it does.")


def test_set_grad_enabled_switches_at_once():
    set_grad_enabled(False)
    assert not records()
    set_grad_enabled(True)
    assert records()
