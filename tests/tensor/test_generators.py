"""Generator functions decorated with `no_grad` and its like: each step runs inside, and nothing between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import app
from app import enable_grad, is_grad_enabled, no_grad, set_grad_enabled

SWITCHES = [
    pytest.param(no_grad(), False, id="no_grad"),
    pytest.param(no_grad, False, id="no_grad-bare"),
    pytest.param(enable_grad(), True, id="enable_grad"),
    pytest.param(lambda f: set_grad_enabled(False)(f), False, id="set_grad_enabled"),
]


@pytest.fixture(autouse=True)
def recording() -> Iterator[None]:
    yield
    left_on = is_grad_enabled()
    set_grad_enabled(True)
    assert left_on


@pytest.mark.parametrize(("switch", "on"), SWITCHES)
def test_steps_run_inside_and_the_caller_outside(switch: Callable[..., Any], on: bool):
    @switch
    def numbers(count: int) -> Iterator[Any]:
        """Some numbers."""
        for number in range(count):
            assert is_grad_enabled() is on
            yield number
        assert is_grad_enabled() is on

    with set_grad_enabled(not on):
        found = []
        for number in numbers(3):
            assert is_grad_enabled() is not on
            found.append(number)
    assert found == [0, 1, 2]
    assert (numbers.__name__, numbers.__doc__) == ("numbers", "Some numbers.")


def test_values_are_sent_in_and_a_result_comes_out():
    @no_grad()
    def echo() -> Any:
        first = yield "ready"
        second = yield first * 2
        return [first, second, is_grad_enabled()]

    def around() -> Any:
        return (yield from echo())

    generator = around()
    assert next(generator) == "ready"
    assert generator.send(5) == 10
    with pytest.raises(StopIteration) as end:
        generator.send("last")
    assert end.value.value == [5, "last", False]


def test_errors_are_thrown_in_and_come_out():
    @no_grad()
    def careful() -> Any:
        try:
            yield 1
        except KeyError:
            assert not is_grad_enabled()
            yield "caught"
        raise ZeroDivisionError(is_grad_enabled())

    generator = careful()
    next(generator)
    assert generator.throw(KeyError("gone")) == "caught"
    assert is_grad_enabled()
    with pytest.raises(ZeroDivisionError, match="False"):
        next(generator)


@pytest.mark.parametrize("by", ["close", "del"])
def test_it_is_closed_inside(by: str):
    seen = []

    @no_grad()
    def watched() -> Any:
        try:
            while True:
                yield is_grad_enabled()
        finally:
            seen.append(is_grad_enabled())

    generator = watched()
    assert next(generator) is False
    if by == "close":
        generator.close()
    del generator
    assert seen == [False]


def test_two_at_a_time():
    @no_grad()
    def off() -> Any:
        for _ in range(2):
            yield is_grad_enabled()

    @enable_grad()
    def on() -> Any:
        for one in off():
            yield is_grad_enabled(), one

    assert list(on()) == [(True, False)] * 2
    assert list(zip(on(), off(), strict=True)) == [((True, False), False)] * 2


def test_a_data_loader_that_is_a_generator():
    weight = app.to_tensor([2.0], stop_gradient=False)

    @no_grad()
    def scaled() -> Iterator[app.Tensor]:
        for number in (1.0, 2.0):
            yield weight * number

    for value in scaled():
        assert value.stop_gradient
        assert not (value * weight).stop_gradient
