"""Clipped gradients: the functions, and what optimizers take, eagerly and in Programs."""

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
    made = [to_tensor(np.zeros_like(g), stop_gradient=False) for g in GRADIENTS]
    for parameter, gradient in zip(made, GRADIENTS, strict=True):
        (parameter * to_tensor(gradient)).sum().backward()
    return made


def gradients_of(made: list[Any]) -> list[Any]:
    return [p.grad.tolist() for p in made]


@pytest.mark.parametrize(("p", "size"), [(2.0, 5.0), (1.0, 7.0), (np.inf, 4.0)])
def test_gradients_are_scaled_down_together(p: float, size: float):
    made = parameters()
    assert nn.utils.clip_grad_norm_(made, 2.5, p).item() == pytest.approx(size)
    for parameter, gradient in zip(made, GRADIENTS, strict=True):
        np.testing.assert_allclose(parameter.grad.numpy(), gradient * min(2.5 / size, 1), rtol=1e-6)


def test_only_gradients_above_the_largest_norm_change():
    made = parameters()
    nn.utils.clip_grad_norm_(made, 100.0)
    assert gradients_of(made) == [g.tolist() for g in GRADIENTS]
    assert nn.utils.clip_grad_norm_([app.ones([1])], 1.0).item() == 0.0
    weight = to_tensor([1.0], stop_gradient=False)
    (weight * 1e-3).sum().backward()
    nn.utils.clip_grad_norm_([weight], 1e-3)  # divides by the norm and a millionth
    assert weight.grad.item() == pytest.approx(1e-3 / 1.001, rel=1e-6)


def test_norms_of_half_precision_do_not_overflow():
    numbers = np.array([300.0, 400.0], "float16")
    assert app.norm(to_tensor(numbers)).item() == 500.0
    for p, size in ((2.0, 500.0), (1.0, 700.0), (3.0, (2.7e7 + 6.4e7) ** (1 / 3))):
        made = [app.zeros([2], "float16"), app.zeros([1])]
        made[0].grad, made[1].grad = to_tensor(numbers), app.zeros([1])
        assert nn.utils.clip_grad_norm_(made, 1.0, p).item() == pytest.approx(size, rel=1e-3)
        assert [p.grad.dtype for p in made] == ["float16", "float32"]
        np.testing.assert_allclose(made[0].grad.numpy(), numbers.astype("float64") / size, rtol=2e-3)
    for clip in (nn.ClipGradByNorm(1.0), nn.ClipGradByGlobalNorm(1.0)):
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


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: nn.ClipGradByNorm(-1.0), "ClipGradByNorm: clip_norm must be above 0, found -1.0"),
        (lambda: nn.ClipGradByGlobalNorm(0.0), "ClipGradByGlobalNorm: clip_norm must be above 0, found 0.0"),
        (lambda: nn.ClipGradByValue(1.0, 2.0), "min cannot be above max, found 2.0 and 1.0"),
        (lambda: nn.ClipGradByValue(-1.0), "min cannot be above max, found 1.0 and -1.0"),
    ],
)
def test_bounds_that_no_gradient_has_are_errors(make: Any, told: str):
    with pytest.raises(AppError, match=told):
        make()


def test_norms_that_are_not_finite_are_an_error_on_demand():
    (made, _) = parameters()
    made.grad = to_tensor([np.inf, 0.0])
    with pytest.raises(AppError, match="the norm of the gradients is inf"):
        nn.utils.clip_grad_norm_(made, 1.0, error_if_nonfinite=True)


def test_each_element_is_kept_within_bounds():
    made = parameters()
    nn.utils.clip_grad_value_(made, 3.5)
    assert gradients_of(made) == [[3.0, 0.0], [[0.0], [3.5]]]


CLIPS: list[tuple[Any, list[Any]]] = [
    (nn.ClipGradByGlobalNorm(2.5), [[1.5, 0.0], [[0.0], [2.0]]]),
    (nn.ClipGradByGlobalNorm(50.0), [[3.0, 0.0], [[0.0], [4.0]]]),
    (nn.ClipGradByNorm(3.5), [[3.0, 0.0], [[0.0], [3.5]]]),
    (nn.ClipGradByValue(2.0), [[2.0, 0.0], [[0.0], [2.0]]]),
    (nn.ClipGradByValue(max=4.0, min=3.5), [[3.5, 3.5], [[3.5], [4.0]]]),
]


@pytest.mark.parametrize(("clip", "expected"), CLIPS)
def test_optimizers_take_clipped_gradients_in_both_modes(clip: Any, expected: list[Any]):
    made = parameters()
    optimizer.SGD(1.0, made, grad_clip=clip).step()
    main, startup = static.Program(), static.Program()
    with static_mode(), static.program_guard(main, startup):
        variables = [nn.create_parameter(g.shape, "float64", attr=Constant(0.0)) for g in GRADIENTS]
        loss = app.add_n([(p * g).sum() for p, g in zip(variables, GRADIENTS, strict=True)])
        optimizer.SGD(1.0, grad_clip=clip).minimize(loss)
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    executor.run(main, scope=scope)
    for parameter, variable, gradient in zip(made, variables, expected, strict=True):
        for found in (parameter.numpy(), scope.values[variable.name]):
            np.testing.assert_allclose(found, -np.asarray(gradient), rtol=1e-6)


def test_a_parameter_can_be_left_out_of_clipping():
    attr = nn.ParamAttr(initializer=Constant(0.0), need_clip=False)
    made = [nn.create_parameter([2], "float64", attr=attr), nn.create_parameter([2], "float64", attr=Constant(0.0))]
    app.add_n([(p * to_tensor(GRADIENTS[0])).sum() for p in made]).backward()
    optimizer.SGD(1.0, made, grad_clip=nn.ClipGradByGlobalNorm(1.5)).step()
    assert [p.tolist() for p in made] == [[-3.0, 0.0], [-1.5, 0.0]]
