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
