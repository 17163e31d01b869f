"""Clipped gradients, which optimizers take, eagerly and in Programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import nn, optimizer, static, to_tensor
from app.errors import AppError
from app.graph.defaults import static_mode
from app.nn.initializer import Constant

GRADIENTS = [np.array([3.0, 0.0]), np.array([[0.0], [4.0]])]


def parameters() -> list[Any]:
    leaves = [to_tensor(np.zeros_like(g), stop_gradient=False) for g in GRADIENTS]
    for parameter, gradient in zip(leaves, GRADIENTS, strict=True):
        (parameter * to_tensor(gradient)).sum().backward()
    return leaves


def test_norms_of_half_precision_do_not_overflow():
    numbers = np.array([300.0, 400.0], "float16")
    assert app.norm(to_tensor(numbers)).item() == 500.0
    clip = nn.ClipGradByGlobalNorm(1.0)
    parameter = nn.create_parameter([2], "float16", attr=Constant(0.0))
    (parameter * to_tensor(numbers)).sum().backward()
    optimizer.SGD(1.0, [parameter], grad_clip=clip).step()
    np.testing.assert_allclose(parameter.numpy(), [-0.6, -0.8], rtol=2e-3)
    main, startup, scope = static.Program(), static.Program(), static.Scope()
    with static_mode(), static.program_guard(main, startup):
        variable = nn.create_parameter([2], "float16", attr=Constant(0.0))
        optimizer.SGD(1.0, grad_clip=clip).minimize((variable * numbers).sum())
    for program in (startup, main):
        static.Executor(engine="compiled").run(program, scope=scope)
    np.testing.assert_array_equal(scope.values[variable.name], parameter.numpy())


def test_a_norm_that_no_gradient_has_is_an_error():
    with pytest.raises(AppError, match=r"ClipGradByGlobalNorm: clip_norm must be above 0, found 0\.0"):
        nn.ClipGradByGlobalNorm(0.0)


CLIPS: list[tuple[Any, list[Any]]] = [
    (nn.ClipGradByGlobalNorm(2.5), [[1.5, 0.0], [[0.0], [2.0]]]),
    (nn.ClipGradByGlobalNorm(50.0), [[3.0, 0.0], [[0.0], [4.0]]]),
]


@pytest.mark.parametrize(("clip", "expected"), CLIPS)
def test_optimizers_take_clipped_gradients_in_both_modes(clip: Any, expected: list[Any]):
    leaves = parameters()
    optimizer.SGD(1.0, leaves, grad_clip=clip).step()
    main, startup = static.Program(), static.Program()
    with static_mode(), static.program_guard(main, startup):
        variables = [nn.create_parameter(g.shape, "float64", attr=Constant(0.0)) for g in GRADIENTS]
        loss = app.add_n([(p * g).sum() for p, g in zip(variables, GRADIENTS, strict=True)])
        optimizer.SGD(1.0, grad_clip=clip).minimize(loss)
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    executor.run(main, scope=scope)
    for parameter, variable, gradient in zip(leaves, variables, expected, strict=True):
        for value in (parameter.numpy(), scope.values[variable.name]):
            np.testing.assert_allclose(value, -np.asarray(gradient), rtol=1e-6)
