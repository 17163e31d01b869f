"""Operators as functions of JAX: values, derivatives, transforms, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

import app
from app.bridge import to_jax
from app.bridge.out.jax import MODULES
from app.bridge.out.writing import loaded
from app.custom.shelf.ema import ema
from app.custom.shelf.leaky_relu import leaky_relu
from app.custom.shelf.prelu import sloped
from app.custom.shelf.softmax import softmax
from app.custom.shelf.softplus import softplus
from app.custom.shelf.swish import swish
from app.errors import ExportError
from tests.bridge.out.operators import halvings, parts, picked, root, squashed, stepped
from tests.bridge.out.test_description import total
from tests.bridge.out.written_files import assert_formatted, assert_passes_without

jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.fixture(autouse=True)
def _with_float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def matrix(seed: int = 0, shape: tuple[int, ...] = (4, 6)) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-2, 2, shape)


def assert_near(actual: Any, expected: Any, rtol: float = 1e-12) -> None:
    for one, other in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol, 1e-12)


def total_of(function: Any) -> Any:
    return lambda *x: sum((r * r).sum() for r in jax.tree.leaves(function(*x)))


@pytest.mark.parametrize(
    ("operator", "inputs"),
    [
        (leaky_relu, 1), (sloped, 2), pytest.param(halvings, 1, marks=pytest.mark.slow),
        *(pytest.param(one, 1, marks=pytest.mark.soak) for one in [swish, squashed, softplus, root, ema]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)  # fmt: skip
def test_values_and_gradients_are_those_here_also_under_jit_and_vmap(operator: Any, inputs: int) -> None:
    x = [matrix(seed) for seed in range(inputs)]
    tensors = [app.to_tensor(a, stop_gradient=False) for a in x]
    results = operator(*tensors)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    slopes = app.grad([(r * r).sum() for r in results], tensors)
    function = to_jax(operator, *x)
    gradient = jax.grad(total_of(function), tuple(range(inputs)))
    assert_near(function(*x), [r.numpy() for r in results])
    assert_near(jax.jit(gradient)(*x), [s.numpy() for s in slopes])
    stacked = [jnp.stack([a, a[::-1]]) for a in x]
    assert_near([g[0] for g in jax.vmap(gradient)(*stacked)], [s.numpy() for s in slopes])


@pytest.mark.parametrize("operator", [swish, root, squashed, parts], ids=lambda operator: operator.name)
def test_expressions_pass_check_grads_to_second_order_in_both_modes(operator: Any) -> None:
    from jax.test_util import check_grads

    x = [matrix(seed, (3,)) for seed in range(len(operator.inputs))]
    check_grads(to_jax(operator), x, 2, ("fwd", "rev"))


def test_the_second_derivative_of_a_branch_that_is_not_taken_is_zero_where_jax_alone_gives_nan() -> None:
    function = to_jax(root)
    plain = lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0)  # noqa: E731
    assert (jax.grad(function)(-4.0), jax.grad(jax.grad(function))(-4.0)) == (0, 0)
    assert np.isnan(jax.grad(plain)(-4.0))


def test_a_slope_that_is_not_needed_does_not_disturb_the_others() -> None:
    @app.custom_op(elementwise=True)
    def powers(x: Any, y: Any) -> Any:
        return x**y

    tangent = jax.jvp(lambda x: to_jax(powers)(x, 2.0), (0.0,), (1.0,))[1]
    assert tangent == 0  # along y it is 0 * log(0)


def test_inputs_are_broadcast_and_settings_are_arguments() -> None:
    x, slope = matrix(), matrix(1, (6,))
    assert jax.grad(total_of(to_jax(sloped)), 1)(x, slope).shape == (6,)
    assert to_jax(leaky_relu)(-2.0, slope=0.5) == -1
    with pytest.raises(TypeError, match="slope is a setting"):
        jax.grad(to_jax(leaky_relu), 1)(-2.0, 0.5)


def test_the_gradient_on_purpose_is_that_of_a_surrogate() -> None:
    assert jax.grad(to_jax(stepped))(0.5) == 1
    assert jax.grad(to_jax(stepped))(1.5) == 0


@pytest.mark.slow
def test_xla_calls_kernels_for_indices_several_types_and_no_rows() -> None:
    x, index = matrix(), np.array([3, 0, 3])
    function = to_jax(picked, x, index)
    assert_near(jax.jit(function)(x, index), 2 * x[index])
    assert_near(jax.grad(lambda x: function(x, index).sum())(x)[:, 0], np.array([2, 0, 0, 4]))
    assert function(x.astype("float32"), index).dtype == "float32"
    assert function(x[:, :0], index).shape == (3, 0)
    with pytest.raises(TypeError, match=r"x is float16 with 2 axes; expected float32 or float64 with 2"):
        function(x.astype("float16"), index)
    with pytest.raises(TypeError, match="with 3 axes"):
        function(x[None], index)


@pytest.mark.slow
def test_what_a_kernel_raises_is_an_error_of_jax() -> None:
    @app.custom_op
    @njit
    def checked(x: Any) -> Any:
        if x[0] < 0:
            raise ValueError("negative")
        return x * 2

    function = to_jax(checked, np.ones(3))
    assert_near(function(np.ones(3)), np.full(3, 2.0))
    with pytest.raises(Exception, match=r"_forward raised an exception"):
        jax.block_until_ready(function(-np.ones(3)))


@pytest.mark.slow
def test_forward_mode_and_missing_second_derivatives_of_kernels_are_errors_and_not_zero() -> None:
    x = matrix()
    function = to_jax(total, x)
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(function, (x,), (x,))
    gradient = jax.grad(total_of(function))
    assert gradient(x).shape == x.shape
    with pytest.raises(TypeError, match="total has no second derivative"):
        jax.grad(lambda x: gradient(x).sum())(x)


@pytest.mark.parametrize("version", ["(1, 0)", pytest.param("(0, 99)", marks=pytest.mark.soak)])
def test_xla_refuses_a_kernel_for_another_version_of_its_interface(version: str) -> None:
    text = MODULES.module(MODULES.leaving(softmax, [matrix()]), "").replace(
        "_VERSION, _FRAME_BYTES = (0, 3)", f"_VERSION, _FRAME_BYTES = {version}"
    )
    jax.block_until_ready(jnp.ones(1))  # else the first computation at all would fail
    with pytest.raises(Exception, match=r"API version .* is incompatible"):
        loaded(text, "softmax_of_another_version").softmax(matrix())


def test_files_are_as_a_formatter_leaves_them(tmp_path: Path) -> None:
    for operator, inputs in [(swish, 1), (parts, 2), (stepped, 1), (halvings, 1), (softmax, 1), (total, 1)]:
        for name, text in MODULES.write(operator, [matrix()] * inputs, (-2, 2), "1 passed").files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
    assert_formatted(tmp_path)


LOSS = app.custom_op(elementwise=True, name="loss")(lambda x: x * x)  # a name that the written test has, too
VECTOR = matrix(0, (6,))  # without rows it stays as it is, and is broadcast along them


@pytest.mark.slow
@pytest.mark.parametrize(
    "cases",
    [
        [(parts, [VECTOR, matrix()]), (ema, [matrix()]), (LOSS, [matrix()])],
        pytest.param([(one, [matrix()]) for one in (swish, stepped, softmax, halvings, total)], marks=pytest.mark.soak),
    ],
    ids=["few", "more"],
)
def test_the_written_tests_pass_without_opsmith(cases: Any, tmp_path: Path) -> None:
    for operator, examples in cases:
        for name, text in MODULES.write(operator, examples, (-2, 2), "").files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
    assert_passes_without(tmp_path, "opsmith", "app")


@pytest.mark.parametrize(
    ("name", "message"),
    [("jax", "import something else as jax"), ("partial", "else as partial"), ("test_loss", "pytest would take it")],
)
def test_a_name_that_means_something_else_in_the_file_is_refused(name: str, message: str) -> None:
    operator = app.custom_op(elementwise=True, name=name)(lambda x: x * x)
    with pytest.raises(ExportError, match=rf"operator {name} .*{message}.*: give custom_op another name="):
        to_jax(operator)
