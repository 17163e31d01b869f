"""Kernels of losses and of learned numbers, which have no axes, in PyTorch and JAX; test_to_c.py has them in C."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import app
from app.bridge import to_jax, to_torch

X, N, A = np.random.default_rng(0).uniform(0.4, 1.1, 5), np.array(3), np.array(0.8)


@app.custom_op
@njit
def decayed_powers(x, n, a):
    n = n.item()
    a = a.item()
    total = 0.0
    for i in range(x.shape[0]):
        total = total * a + x[i] ** n
        if total > 1:
            total *= a
    return total


def test_first_and_second_derivatives_agree_in_pytorch() -> None:
    torch = pytest.importorskip("torch")
    x, n, a = (torch.from_numpy(value) for value in (X, N, A))
    function = to_torch(decayed_powers, x, n, a)
    inputs = x.requires_grad_(), n, a.requires_grad_()
    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs)


def test_first_and_second_derivatives_agree_in_jax() -> None:
    jax = pytest.importorskip("jax")
    from jax.test_util import check_grads

    with jax.enable_x64(True):
        function = to_jax(decayed_powers, X, N, A)
        for call in (function, jax.jit(function)):
            check_grads(lambda x, a, call=call: call(x, N, a), (X, A), 2, modes=["rev"])
