"""The check of a gradient before training: what it finds, in what time, and that it leaves everything as it was."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forked
import numpy as np
import pytest

import app
from app.checking import before_training
from app.checking.before_training import GradientCheck, check_gradient
from app.checking.in_a_network import Place
from app.custom.lookup import find_operator

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("OPSMITH_CACHE", str(tmp_path))
    return tmp_path / "gradients"


def operator(backward: Callable[..., Any] | None = None, **options: Any) -> Any:
    def swish(x):
        return x / (1 + np.exp(-x))

    made = app.custom_op(swish, elementwise=True)
    if backward is not None:
        made.backward(backward, **options)
    return made


def swish_grad(x, dy):
    s = 1 / (1 + np.exp(-x))
    return dy * (s + x * s * (1 - s))


def half_above_zero(x, dy):
    return swish_grad(x, dy) * (1.0 if x < 0 else 0.5)


def answer(*given: Any) -> GradientCheck:
    """The result for an operator that can be checked."""
    found = check_gradient(*given)
    assert found is not None
    return found


def test_a_gradient_agrees_or_is_wrong_or_a_surrogate():
    assert answer(operator(swish_grad), "swish") == before_training.AGREES
    assert answer(operator(), "swish") == before_training.AGREES  # which is derived
    assert answer(operator(half_above_zero, surrogate=True), "swish").state == "surrogate"
    found = answer(operator(half_above_zero), "swish")
    assert found.wrong
    words = "gradient is wrong: it is half of what it should be where x > 0 (wrong in 14 of 24 elements; worst at "
    assert found.words.startswith(words)
    assert check_gradient(find_operator("relu"), "relu") is None  # a built-in operator


TIMED = """
import os
import time
import numpy as np
from app.checking.before_training import AGREES, SECONDS, SECONDS_ELEMENTWISE, check_gradient
from app.checking.in_a_network import Place
from app.custom.lookup import SHIPPED, find_operator, values_taken

def slowness():  # how much longer Python takes here and now than on the machine that the limits are for; at least 1
    began = time.process_time()
    sum(i * i for i in range(200_000))
    return max(1.0, (time.process_time() - began) / 0.012)

place = Place("", lambda: [np.random.default_rng(0).normal(size=(256, 101)).astype("float32")])
check_gradient(find_operator("custom.relu"), "custom.relu", {})  # what is imported late
slow = slowness()
for name in (f"custom.{name}" for name in SHIPPED):
    shipped = find_operator(name)
    if len(values_taken(shipped)) == 1:
        began = sum(os.times()[:4])  # of this process and its children
        assert check_gradient(shipped, name, {}, place) == AGREES, name
        seconds = sum(os.times()[:4]) - began
        limit = SECONDS_ELEMENTWISE if getattr(shipped, "elementwise", False) else SECONDS
        before, slow = slow, slowness()
        print(name, seconds, limit * max(before, slow))
"""


def test_the_shelf_is_right_and_checked_in_time(tmp_path: Path):
    (tmp_path / "timed.py").write_text(TIMED)
    done = forked.run(["timed.py"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    took = {name: (float(seconds), float(limit)) for name, seconds, limit in map(str.split, done.stdout.splitlines())}
    assert len(took) > 3
    assert {name: times for name, times in took.items() if times[0] >= times[1]} == {}


def place(*shape: int) -> Place:
    """A place in a network whose inputs have this shape."""
    return Place(str(shape), lambda: [np.random.default_rng(0).normal(size=shape).astype("float32")])


def test_an_operator_that_fits_one_width_alone_is_checked_with_it():
    def scaled(x):
        return x * np.arange(1.0, 8.0)

    made = app.custom_op(scaled, infer=lambda x: x)
    made.backward(lambda dy: dy * np.arange(1.0, 8.0))
    assert check_gradient(made, "scaled", {}, place(8, 7)) == before_training.AGREES
    found = answer(made, "scaled", {}, place(8, 8))
    assert found.state == "unknown"


def is_top(x, k):
    return x >= np.sort(x, axis=1)[:, -min(k, x.shape[1])][:, None]


def top(x, k=20):
    return x * is_top(x, k)


def top_grad(x, dy, k):
    return dy * is_top(x, k)


def test_the_gradient_is_checked_at_the_width_of_the_network():
    wrong, right = app.custom_op(top), app.custom_op(top, name="right")
    wrong.backward(lambda dy: dy)
    right.backward(top_grad)
    assert check_gradient(wrong, "top") == before_training.AGREES  # at width 6, all elements are among the first 20
    found = answer(wrong, "top", {}, place(256, 100))
    assert found.wrong
    assert "(wrong in 80 of 100 elements; worst at " in found.words
    assert re.search(r"; on x float64\[\d+, 100\] of the network$", found.words)
    assert check_gradient(right, "right", {}, place(256, 100)) == before_training.AGREES
    assert answer(right, "right", {"k": 3}, place(256, 100)) == before_training.AGREES


def test_larger_numbers_than_those_of_the_first_weights_are_checked_too():
    relu6 = app.custom_op(lambda x: min(max(x, 0.0), 6.0), name="relu6", elementwise=True)
    relu6.backward(lambda x, dy: dy if x > 0 else 0.0)
    assert answer(relu6, "relu6", {}, place(256, 100)).wrong


def test_a_slow_operator_is_checked_along_a_direction(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(before_training, "SECONDS", 0.05)  # too little for two calls for each of 24 elements

    def slow(x):
        time.sleep(0.002)
        return x * 2

    right, wrong = app.custom_op(slow), app.custom_op(slow, name="wrong")
    right.backward(lambda dy: dy * 2)
    wrong.backward(lambda dy: dy)
    assert check_gradient(right, "slow", {}, place(64, 8)) == before_training.AGREES
    found = answer(wrong, "wrong", {}, place(64, 8))
    assert found.wrong
    assert "it is half of what it should be" in found.words


def test_other_numbers_each_time_are_wrong_unless_they_follow_the_seed():
    noisy = app.custom_op(lambda x: x + np.random.normal(size=x.shape), name="noisy", infer=lambda x: x)
    noisy.backward(lambda dy: dy)
    found = answer(noisy, "noisy", {}, place(64, 50))
    assert found.words.startswith("the same inputs give another result each time, so that training cannot be repeated")
    assert found.wrong
    dropped = check_gradient(lambda x: app.nn.functional.dropout(app.relu(x), 0.3), "dropped", {}, place(64, 50))
    assert dropped == before_training.AGREES


@pytest.mark.parametrize("declared", [False, True])
def test_an_operator_that_mixes_rows_is_wrong_if_it_is_declared_row_by_row(declared: bool):
    def centred(x):
        return x - x.mean(axis=0)

    made = app.custom_op(centred, row_by_row=declared)
    made.backward(lambda dy: dy - dy.mean(axis=0))
    found = answer(made, "centred", {}, place(64, 50))
    assert found.mixes_rows
    assert found.wrong == declared
    assert found.words.startswith("it is declared row by row, but") == declared


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: time.sleep(0.005) or x * 2, "a call takes too long"),
        (lambda x: 1 / 0, "division by zero"),
    ],
)
def test_a_gradient_that_cannot_be_checked_is_unknown_with_the_reason(
    function: Callable[..., Any], why: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(before_training, "SECONDS", 0.05)
    made = app.custom_op(function, name="odd", infer=lambda x: x)
    made.backward(lambda dy: dy)
    found = answer(made, "odd")
    assert found.state == "unknown"
    assert why in found.words


def test_the_result_is_kept_under_the_hash_of_the_source(cache: Path, monkeypatch: pytest.MonkeyPatch):
    found = check_gradient(operator(half_above_zero), "swish")
    monkeypatch.setattr(before_training, "_checked", lambda *given: pytest.fail("it is known already"))
    assert check_gradient(operator(half_above_zero), "swish") == found
    for other in (operator(swish_grad), operator(half_above_zero, surrogate=True)):
        with pytest.raises(pytest.fail.Exception):
            check_gradient(other, "swish")


class Doubled(app.autograd.PyLayer):
    """Right for `factor=2` only."""

    factor = 2.0

    @staticmethod
    def forward(ctx, x, factor):
        return x * (Doubled.factor if factor is None else factor)

    @staticmethod
    def backward(ctx, dy):
        return dy * 2.0


class Scaled(app.nn.Layer):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return Doubled.apply(x, self.factor)

    def method(self, x):
        return self.forward(x)


def closing_over(factor):
    return lambda x: Doubled.apply(x, factor)


FACTORS = {"x": 2.0}


def looking_up(factor):
    FACTORS["x"] = factor
    return lambda x: Doubled.apply(x, FACTORS["x"])


def of_the_class(factor):
    Doubled.factor = factor
    return lambda x: Doubled.apply(x, None)


@pytest.mark.parametrize("made", [Scaled, lambda f: Scaled(f).method, closing_over, looking_up, of_the_class])
def test_no_answer_is_kept_where_values_that_may_change_decide_too(made: Callable[[float], Any]):
    assert check_gradient(made(2.0), "scaled") == before_training.AGREES
    assert answer(made(3.0), "scaled").wrong


def test_a_damaged_result_is_computed_again(cache: Path):
    check_gradient(operator(), "swish")
    (file,) = cache.iterdir()
    file.write_bytes(b"{")
    assert check_gradient(operator(), "swish") == before_training.AGREES


def test_the_check_changes_no_state_and_prints_nothing(capfd: pytest.CaptureFixture[str]):
    calls = []

    def noisy(x):
        calls.append(x)
        print(np.random.rand(), random.random())
        return x * 2

    made = app.custom_op(noisy, infer=lambda x: x)
    made.backward(lambda dy: dy * 2)
    before = np.random.get_state()[1].copy(), random.getstate(), app.get_rng_state()  # type: ignore[union-attr]
    assert check_gradient(made, "noisy") == before_training.AGREES
    after = np.random.get_state()[1], random.getstate(), app.get_rng_state()  # type: ignore[union-attr]
    assert (before[0] == after[0]).all()
    assert before[1:] == after[1:]
    assert calls == []
    assert capfd.readouterr() == ("", "")


def test_a_function_that_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(before_training, "_PATIENCE", 0.2)
    made = app.custom_op(lambda x: time.sleep(100), name="endless", infer=lambda x: x)
    made.backward(lambda dy: dy)
    found = answer(made, "endless")
    assert found.words == "gradient was not checked: it did not end within 0.2 seconds: try smaller inputs"
