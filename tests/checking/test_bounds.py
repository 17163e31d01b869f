"""An index outside of an array is found before the operator runs as machine code, where it would read other memory."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from checking.verdicts import with_backward, words
from numba import njit

import app
from app.checking.checks import examine
from app.checking.examples import inputs_for
from app.checking.operators import user_operator
from app.checking.processes import End
from app.checking.undisturbed import PythonProcess, undisturbed
from app.errors import BoundsError

pytestmark = pytest.mark.slow

TABLE, FACTOR = np.arange(3.0), 2.5


@njit
def fill(z, count):
    for i in range(count):
        z[i] = 3


@njit
def twice(x):
    out = np.empty_like(x)
    for i in range(x.size):
        out.flat[i] = x.flat[i] * 2
    return out


@njit
def writes_beyond(x):
    out = np.empty_like(x)
    fill(out.reshape(-1), x.size + 1)
    return out


@njit
def reads_beyond(x):
    out = x.copy()
    out[0] = x[x.shape[0]]
    return out


@njit
def grad_beyond(x, dy):
    return dy + x[x.shape[0], 0]


def looks_up(x):
    return TABLE[int(abs(x)) + 3]


def factory():
    inner = njit(lambda x: x[x.shape[0]])
    return njit(lambda x: x + inner(x))


class CallsNumbaItself(app.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return app.to_tensor(reads_beyond(x.numpy()))

    @staticmethod
    def backward(ctx, dy):
        return dy


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        (app.custom_op(writes_beyond), r"forward .*: index 24 is out of bounds .*\(test_bounds.py:"),
        (app.custom_op(reads_beyond), "forward .*: index 4 is out of bounds"),
        (app.custom_op(factory()), "forward .*: index 4 is out of bounds"),
        (app.custom_op(looks_up, elementwise=True), "forward .*: index [345] is out of bounds"),
        (with_backward(twice, grad_beyond), r"backward indexes outside .*, given x float64\[4, 6\]: .*index 4"),
        (CallsNumbaItself, "forward .*: index 4 is out of bounds"),
    ],
    ids=["a helper writes", "a read", "a closure", "elementwise", "backward", "a class"],
)
def test_an_index_outside_is_an_error_and_the_operator_is_not_run(operator: Any, message: str):
    with pytest.raises(BoundsError, match=message):
        inputs_for(user_operator(operator, "operator"))


@njit
def second_row(x):
    out = x.copy()
    out[1, 0] = 0
    return out


@njit
def from_behind(x):
    y = np.zeros_like(x)
    for i in range(x.size):
        y.flat[i] = x.flat[i - 3] * 2  # Numba checks no index of x.flat
    return y


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (second_row, "FAILED forward indexes outside of its arrays, given x float64[1, 6]: "),
        (from_behind, "FAILED compiled by Numba it gives another result than run as Python"),
        (twice, "ok both passes index inside their arrays"),
    ],
)
def test_the_verdict_of_the_check_of_bounds(function: Any, expected: str):
    operator = with_backward(function, lambda dy: dy * 2)
    assert words(operator, "bounds").startswith(expected)


@njit
def starts_with_the_first(x):
    out = x.copy()
    out[0, 0] = x[0, 0]
    return out


def test_a_batch_without_rows_is_not_given_to_compiled_code_that_writes_outside_of_it():
    ran: list[tuple[int, ...]] = []

    def forward(x):
        ran.append(x.shape)
        return starts_with_the_first(x)

    operator = with_backward(forward, lambda x, dy: dy * 1)
    text = words(operator, "empty batch")
    assert text.startswith("FAILED a batch without rows: forward indexes outside of its arrays, given x float64[0, 6]")
    assert (0, 6) not in ran


def test_nothing_is_checked_after_an_index_outside():
    operator = with_backward(second_row, lambda dy: dy)
    assert [v.check for v in examine(inputs_for(user_operator(operator, "operator")), ["gradient"])] == ["bounds"]


seen: set[type] = set()


def calls_twice(x):
    seen.add(type(twice))
    return twice(x)


def test_numba_functions_stay_compiled_in_the_process_that_checks():
    operator = with_backward(calls_twice, lambda dy: dy * 2)
    assert words(operator, "bounds") == "ok both passes index inside their arrays"
    assert seen == {type(twice)}


def test_proxies_in_modules_are_not_touched(monkeypatch: pytest.MonkeyPatch):
    class Proxy:
        @property
        def __class__(self):
            raise RuntimeError("asked what it is")

    module, proxy = ModuleType("some_module"), Proxy()
    vars(module).update(proxy=proxy, compiled=fill)
    monkeypatch.setitem(sys.modules, "some_module", module)

    def replaced() -> bytes:
        return bytes([vars(module)["proxy"] is proxy, vars(module)["compiled"] is not fill])

    assert undisturbed(replaced, 30, compiled=False) == bytes([True, True])
    assert vars(module)["compiled"] is fill


def test_a_function_on_numbers_that_could_index_is_run_as_python_and_one_that_cannot_is_not(
    monkeypatch: pytest.MonkeyPatch,
):
    module = sys.modules["app.checking.checks.bounds"]

    def looked_up(x):
        return TABLE[int(x)]

    def through_a_function(x):
        return looked_up(x) + 1.0

    def with_a_number(x):
        return x * np.abs(x) + FACTOR

    def has_run(function):
        asked = []
        monkeypatch.setattr(PythonProcess, "ask", lambda *_: asked.append(1) or End())
        operator = app.custom_op(function, elementwise=True)
        subject = inputs_for(user_operator(operator, "it"), [((2, 3), "float64")], {}, within=(0.0, 2.0))
        asked.clear()
        list(module.bounds(subject))
        return bool(asked)

    assert has_run(looked_up)
    assert has_run(njit(looked_up))
    assert has_run(through_a_function)
    assert not has_run(with_a_number)
