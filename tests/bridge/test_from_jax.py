"""Operators of JAX are checked and trained as they are."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import app
from app.__main__ import main
from app.checking.before_training import check_gradient
from app.run.activation import Activation
from app.run.descriptions import curve_of, source_texts
from app.testing import check_operator

jax = pytest.importorskip("jax", reason="JAX is not installed (the extra `bridge`)")

import jax_functions as operators  # noqa: E402

pytestmark = pytest.mark.slow

FILE = str(Path(__file__).parent / "jax_functions.py")


@pytest.mark.parametrize(
    ("operator", "only"),
    [
        pytest.param(operators.swish, (), id="vjp"),
        pytest.param(operators.cube, ("gradient", "second", "forward", "jit", "vmap"), id="jvp"),
        pytest.param(operators.cube, (), id="jvp, all", marks=pytest.mark.soak),
        pytest.param(operators.plain, (), id="function", marks=pytest.mark.soak),
    ],
)
def test_a_right_operator_passes_every_check(operator: Any, only: tuple[str, ...]):
    assert check_operator(operator, only=only).ok


@pytest.mark.parametrize(
    ("operator", "check", "message"),
    [
        ("lost_second", "second", "finite differences give"),
        ("depends_on_tracing", "jit", "under jax.jit, output 0 is wrong"),
        ("absolute_tangent", "forward", "finite differences give"),
    ],
)
def test_a_mistake_is_found(operator: str, check: str, message: str):
    report = "\n".join(f"{v.state} {v.words}" for v in app.check(getattr(operators, operator), only=[check]))
    assert report.startswith("FAILED")
    assert message in report


def test_what_is_refused_with_an_error_is_a_note():
    (verdict,) = app.check(operators.swish, only=["forward"])
    assert (verdict.state, verdict.words[:26]) == ("note", "no forward mode (jax.jvp):")


def test_forward_mode_is_compared_with_differences_where_there_is_no_reverse_mode():
    gradient, forward = app.check(operators.forward_only, only=["gradient", "forward"])
    assert (gradient.state, forward.state) == ("note", "ok")
    assert forward.words == "forward mode agrees with finite differences"


def test_a_setting_and_an_example_call(capsys: pytest.CaptureFixture[str]):
    assert main(["check", f"{FILE}:leaky", "--set", "slope=0.1", "--only", "gradient,settings,jit"]) == 0
    assert "ok      settings" in capsys.readouterr().out
    assert check_operator(jax.numpy.take, jax.numpy.arange(6.0), np.array([0, 2, 2]), only=["gradient", "vmap"]).ok


def test_it_runs_on_tensors_and_in_programs():
    cube = app.custom_op(operators.cube)
    array = np.linspace(-2, 2, 6, dtype="float32")
    x = app.to_tensor(array, stop_gradient=False)
    cube(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * array**2, rtol=1e-6)
    data = app.static.data("x", [None], "float32")
    data.stop_gradient = False
    out = cube(data)
    (gradient,) = app.static.gradients([out], [data])
    results = app.static.Executor().run(feed={"x": array}, fetch_list=[out, gradient])
    np.testing.assert_allclose(results[1], 3 * array**2, rtol=1e-6)


def ramp(x: Any) -> Any:
    return x + jax.random.normal(jax.random.key(0), x.shape) * jax.numpy.arange(3.0)


def test_what_it_makes_itself_has_the_types_and_numbers_that_it_has_in_jax():
    array = np.ones((2, 3), "float32")
    x = app.to_tensor(array, stop_gradient=False)
    result = app.custom_op(ramp)(x)
    result.sum().backward()
    expected = np.asarray(ramp(jax.numpy.asarray(array)))
    assert (result.dtype, x.grad.dtype) == ("float32", "float32")
    np.testing.assert_array_equal(result.numpy(), expected)
    assert app.custom_op(ramp)(app.to_tensor(array.astype("float64"))).dtype == "float64"


def summed(x: jax.Array, *others: jax.Array) -> jax.Array:
    return x + sum(others)


def scaled(x: jax.Array, factor: float = 1.0, *, power: float = 1.0) -> jax.Array:
    return factor * x**power


@pytest.mark.parametrize(
    ("operator", "arguments", "message"),
    [
        (operators.swish, lambda x: ([x, x], {}), "swish: 2 Tensors are given, and it takes 1 by position"),
        (operators.plain, lambda x: ([x], {"y": x}), "plain: y is a Tensor that is given by name or in a list"),
        (operators.plain, lambda x: ([x, [x]], {}), "plain: y is a Tensor that is given by name or in a list"),
        (operators.plain, lambda x: ([x, x], {"x": 2.0}), "plain: x is given by position and by name"),
        (scaled, lambda x: ([x], {"factr": 2.0}), "it has no parameter factr; those that it has are x, factor, power"),
        (scaled, lambda x: ([x, 2.0], {"factor": 3.0}), "scaled: factor is given by position and by name"),
        (scaled, lambda x: ([x, 2.0, 3.0], {}), "scaled: argument 2 is 3.0, expected a Tensor"),
        (summed, lambda x: ([x, 2.0, x], {}), "summed: argument 1 is 2.0, expected a Tensor"),
    ],
)
@pytest.mark.parametrize("is_static", [False, True])
def test_an_argument_that_it_would_not_get_is_refused(operator: Any, arguments: Any, message: str, is_static: bool):
    x = app.static.data("x", [3], "float64") if is_static else app.to_tensor(np.ones(3))
    given, settings = arguments(x)
    with pytest.raises(app.errors.OperatorError) as raised:
        app.custom_op(operator)(*given, **settings)
    assert message in str(raised.value)


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """JAX has computed something; a process that is forked now, in which it would wait forever, is counted."""
    jax.numpy.zeros(1).block_until_ready()
    forks: list[int] = []

    def fork() -> int:
        forks.append(1)
        raise OSError("JAX has threads")

    monkeypatch.setattr("app.checking.processes.forked", fork)
    return forks


def test_no_process_is_forked_where_jax_has_threads(forks: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPSMITH_CACHE", str(tmp_path))
    swish = app.custom_op(operators.swish)
    assert check_operator(operators.swish, only=["gradient"]).ok
    result = check_gradient(swish, "swish")
    assert result is not None
    assert result.state == "agrees"
    activation = Activation("swish", swish)
    curve = curve_of(activation, -1.0, 1.0)
    assert curve is not None
    assert "definition" in source_texts(activation)
    assert forks == []


def test_a_partial_is_refused_with_what_to_write():
    (verdict,) = app.check(partial(operators.jax.nn.leaky_relu, negative_slope=0.3))
    assert "is a partial: leaky_relu, which it calls, is written for jax" in verdict.words
    assert "give a function, def f(x: jax.Array): return ..." in verdict.words
