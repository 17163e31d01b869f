"""Functions of whole arrays in plain NumPy, in PyTorch, JAX and C: compiled code is made of loops that they become."""

from __future__ import annotations

import numpy as np
import pytest

import app
from app.bridge import to_jax, to_torch
from app.bridge.out.c import write
from app.derivative.arrays import written_out
from app.errors import ExportError

X, SCALE = np.random.default_rng(0).uniform(-1, 1, (3, 4)), np.array([[0.5, 2.0, 1.0, 1.5]])


@app.custom_op
def squared_deviation(x, scale):
    deviation = x - x.mean(axis=1, keepdims=True)
    return deviation * deviation * scale


@app.custom_op
def checked(x):
    assert x.ndim == 2
    return x * 2


def test_first_and_second_derivatives_agree_in_pytorch() -> None:
    torch = pytest.importorskip("torch")
    x, scale = (torch.from_numpy(value).requires_grad_() for value in (X, SCALE))
    function = to_torch(squared_deviation, x, scale)
    assert torch.autograd.gradcheck(function, (x, scale))
    assert torch.autograd.gradgradcheck(function, (x, scale))


def test_first_and_second_derivatives_agree_in_jax() -> None:
    jax = pytest.importorskip("jax")
    from jax.test_util import check_grads

    with jax.enable_x64(True):
        function = to_jax(squared_deviation, X, SCALE)
        np.testing.assert_allclose(function(X, SCALE), squared_deviation(*map(app.to_tensor, (X, SCALE))).numpy())
        check_grads(jax.jit(function), (X, SCALE), 2, modes=["rev"])


def test_what_cannot_become_loops_does_not_leave_for_jax() -> None:
    pytest.importorskip("jax")
    with pytest.raises(ExportError, match=r"test_whole_arrays\.py:\d+: `assert .*put @njit above the function"):
        to_jax(checked, X)


@app.custom_op
def rounded(x):
    return x.astype(np.float32).astype(x.dtype) * 2


@app.custom_op
def fourth(x):
    return x[:, 3] * x[:, -4]


def test_what_rounds_to_a_smaller_type_does_not_leave_as_loops() -> None:
    with pytest.raises(ExportError, match=r"test_whole_arrays\.py:\d+: `x\.astype\(np\.float32\)` rounds to float32"):
        write(rounded, [X], (-1, 1), "")


def test_a_constant_index_is_compared_with_the_size() -> None:
    loops = written_out(fourth.function, X)
    np.testing.assert_array_equal(loops(X), X[:, 3] * X[:, 0])
    with pytest.raises(ValueError, match=r"test_whole_arrays\.py:\d+: an index lies outside of its array"):
        loops(X[:, :3])
    assert write(fourth, [X], (-1, 1), "").files["fourth.c"].count("if (!(4 <= x_1))") == 2
