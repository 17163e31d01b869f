"""Values made from nothing: the same eagerly and, in static mode, as operators of the default Program."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import app
from app import Tensor, static
from app.errors import DtypeError, OperatorError
from app.graph.defaults import static_mode

MAKERS: list[tuple[Callable[[], Any], np.ndarray]] = [
    (lambda: app.zeros([2, 3]), np.zeros((2, 3), "float32")),
    (lambda: app.zeros(3, "int32"), np.zeros(3, "int32")),
    (lambda: app.zeros([]), np.zeros((), "float32")),
    (lambda: app.ones([2, 0]), np.ones((2, 0), "float32")),
    (lambda: app.ones((np.int64(2),), bool), np.ones(2, bool)),
    (lambda: app.full([2], 1.5), np.full(2, 1.5, "float32")),
    (lambda: app.full([2], 7), np.full(2, 7, "float32")),
    (lambda: app.full([2], True), np.full(2, True)),
    (lambda: app.full([2], 7, "float64"), np.full(2, 7.0)),
    (lambda: app.full([2], np.float64(0.1)), np.full(2, 0.1, "float32")),
    (lambda: app.arange(4), np.arange(4, dtype="int64")),
    (lambda: app.arange(1, 7, 2), np.array([1, 3, 5])),
    (lambda: app.arange(3.0), np.arange(3, dtype="float32")),
    (lambda: app.arange(0, 1, 0.25), np.array([0, 0.25, 0.5, 0.75], "float32")),
    (lambda: app.arange(5, 0, -2), np.array([5, 3, 1])),
    (lambda: app.arange(3, dtype="float64"), np.arange(3.0)),
    (lambda: app.arange(np.float32(0), np.float32(1), np.float32(0.5)), np.array([0, 0.5], "float32")),
    (lambda: app.linspace(0, 1, 5), np.linspace(0, 1, 5, dtype="float32")),
    (lambda: app.linspace(3, 1, 1, "float64"), np.array([3.0])),
    (lambda: app.eye(2), np.eye(2, dtype="float32")),
    (lambda: app.eye(2, 3, "int64"), np.eye(2, 3, dtype="int64")),
]
RANDOM: list[tuple[Callable[[], Any], float, float, str]] = [
    # a maker, the lowest and the highest value, the type
    (lambda: app.uniform([2000], min=2.0, max=3.0), 2.0, 3.0, "float32"),
    (lambda: app.uniform([2000], "float16"), -1.0, 1.0, "float16"),
    (lambda: app.uniform([20, 100], "float64"), -1.0, 1.0, "float64"),
    (lambda: app.rand([2000]), 0.0, 1.0, "float32"),
    (lambda: app.randint(3, 9, [2000]), 3, 8, "int64"),
    (lambda: app.randint(5, shape=[2000], dtype="int32"), 0, 4, "int32"),
]


def in_program(make: Callable[[], Any], seed: int | None = None) -> tuple[Any, np.ndarray]:
    """The variable that is made in a Program of its own, and its value when that runs."""
    program = static.Program()
    program.random_seed = seed
    with static_mode(), static.program_guard(program, static.Program()):
        variable = make()
    return variable, static.Executor().run(program, fetch_list=[variable])[0]


@pytest.mark.parametrize(("make", "expected"), MAKERS)
def test_values_are_the_same_eagerly_and_in_a_program(make: Callable[[], Any], expected: np.ndarray):
    tensor, (variable, value) = make(), in_program(make)
    assert isinstance(tensor, Tensor)
    assert isinstance(variable, static.Variable)
    assert tensor.stop_gradient
    assert variable.stop_gradient
    for array in (tensor.numpy(), value):
        assert array.dtype == expected.dtype
        np.testing.assert_array_equal(array, expected)
    assert (tensor.dtype, variable.dtype, variable.shape) == (expected.dtype, expected.dtype, expected.shape)


def assert_repeats_by_seed(make: Callable[[], Any]) -> np.ndarray:
    """The values of a seed are the same again, and in a Program of that seed; the next ones are others."""
    app.seed(3)
    first, second = make().numpy(), make().numpy()
    app.seed(3)
    np.testing.assert_array_equal(make().numpy(), first)
    assert not np.array_equal(first, second)
    variable, value = in_program(make, seed=3)
    np.testing.assert_array_equal(value, first)
    assert (variable.shape, variable.dtype) == (first.shape, first.dtype)
    return first


@pytest.mark.parametrize(("make", "low", "high", "dtype"), RANDOM)
def test_random_values_are_in_their_range(make: Callable[[], Any], low: float, high: float, dtype: str):
    values = assert_repeats_by_seed(make)
    assert values.dtype == dtype
    assert low <= values.min() <= low + 0.01
    assert high - 0.01 <= values.max() <= high


@pytest.mark.parametrize(
    ("make", "mean", "deviation"),
    [(lambda: app.normal(5.0, 0.5, [4000]), 5.0, 0.5), (lambda: app.randn([40, 100]), 0.0, 1.0)],
)
def test_normal_values_have_their_mean_and_deviation(make: Callable[[], Any], mean: float, deviation: float):
    values = assert_repeats_by_seed(make)
    assert values.mean() == pytest.approx(mean, abs=0.05)
    assert values.std() == pytest.approx(deviation, rel=0.05)


def test_the_state_of_random_numbers_can_be_restored():
    state = app.get_rng_state()
    first = app.rand([3]).tolist()
    app.set_rng_state(state)
    assert app.rand([3]).tolist() == first


def test_a_program_without_a_seed_draws_anew_at_every_run():
    program = static.Program()
    with static_mode(), static.program_guard(program, static.Program()):
        variable = app.randn([4])
    first, second = (static.Executor().run(program, fetch_list=[variable])[0] for _ in range(2))
    assert not np.array_equal(first, second)


def test_wrong_arguments_are_errors():
    with pytest.raises(OperatorError, match=r"operator fill_constant of \(\) failed: ValueError: negative dimensions"):
        app.ones([-1])
    with pytest.raises(OperatorError, match=r"operator integer_random of \(\) failed: ValueError: low >= high"):
        app.randint(5, 5)
    with pytest.raises(DtypeError, match="'float31' is not an element type"):
        app.zeros([1], "float31")
    of_torch = type("dtype", (), {"__repr__": lambda self: "torch.float32"})()
    with pytest.raises(DtypeError, match=r"torch\.float32 is not an element type; .*opsmith\.bridge\.to_torch\("):
        app.zeros([1], of_torch)


def test_values_like_another():
    x = app.full([2, 3], 5.0, "float64")
    assert app.zeros_like(x).tolist() == [[0.0] * 3] * 2
    assert (app.ones_like(x, "int32").dtype, app.ones_like(x).dtype) == ("int32", "float64")
    assert app.full_like(x, 2.5).tolist() == [[2.5] * 3] * 2


@pytest.mark.parametrize("name", [n for n in app.__all__ if n in vars(app.creation)])
def test_public_names_are_the_functions_for_both_modes(name: str):
    assert getattr(app, name) is getattr(app.creation, name)


def test_assign_converts_arrays_and_copies_tensors():
    assert app.assign([1.5, 2]).dtype == "float32"
    assert app.assign(np.ones(2, "int8")).dtype == "int8"
    x = app.to_tensor([1.0, 2.0], stop_gradient=False)
    copied = app.assign(x)
    copied.sum().backward()
    assert copied is not x
    assert x.grad.tolist() == [1.0, 1.0]
    target = app.zeros([2])
    assert app.assign(np.array([3.0, 4.0], "float32"), target) is target
    assert target.tolist() == [3.0, 4.0]


@pytest.mark.parametrize("mode", [app.graph.static_mode, nullcontext])
def test_assign_in_a_program_can_give_a_variable_its_value(mode: Any):
    with app.static.program_guard(app.static.Program()), mode():
        target = app.static.default_main_program().current_block().create_var("target", [2], "int32")
        app.assign(np.array([1, 2], "int32"), output=target)
        assert app.static.Executor().run(fetch_list=["target"])[0].tolist() == [1, 2]


def test_assign_in_a_traced_function_takes_lists():
    def function(x):
        y = app.zeros([2])
        app.assign([1.0, 2.0], output=y)
        return x + y + app.assign([10.0, 10.0])

    assert app.jit.to_static(function)(app.ones([2])).tolist() == [12.0, 13.0]


def test_uniform_numbers_are_below_their_upper_end_in_every_precision():
    assert app.uniform([100_000], "float16", 0.0, 1.0).numpy().max() < 1  # of 4096 numbers, one rounds to 1
    assert app.uniform([100_000], "float16", -1.0, 0.5).numpy().max() < 0.5
    assert app.uniform([3], "float32", 2.0, 2.0).tolist() == [2, 2, 2]
