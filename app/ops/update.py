"""The steps of the optimisers, as operators: from a parameter, its gradient and what is remembered to new values."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.ops.definition import operator
from app.ops.form import Accumulates, Elementwise, Filling
from app.ops.spec import Spec


def _like_states(param: Spec, grad: Spec, learning_rate: Spec, *states: Spec, **attributes: Any) -> tuple[Spec, ...]:
    return (param, *states)


@operator(_like_states, form=Elementwise(lambda param, grad, learning_rate: param - learning_rate * grad))
def sgd(param: Any, grad: Any, learning_rate: Any) -> Any:
    """One step against the gradient."""
    return param - learning_rate * grad


sgd.accumulates = Accumulates(base="param", scale="learning_rate", term="grad")


def _momentum_one(param: Any, grad: Any, learning_rate: Any, velocity: Any, mu: float, use_nesterov: bool) -> Any:
    new_velocity = mu * velocity + grad
    step = grad + mu * new_velocity if use_nesterov else new_velocity
    return param - learning_rate * step, new_velocity


@operator(_like_states, outputs=("param", "velocity"), form=Elementwise(_momentum_one))
def momentum(
    param: Any, grad: Any, learning_rate: Any, velocity: Any, *, mu: float = 0.9, use_nesterov: bool = False
) -> Any:
    """One step along a velocity that remembers earlier gradients."""
    new_velocity = mu * velocity + grad
    step = grad + mu * new_velocity if use_nesterov else new_velocity
    return param - learning_rate * step, new_velocity


def _fill_adam(
    param: Any, grad: Any, learning_rate: Any, moment1: Any, moment2: Any, beta1_pow: Any, beta2_pow: Any,
    new_param: Any, new_moment1: Any, new_moment2: Any, new_beta1_pow: Any, new_beta2_pow: Any,
    beta1: float, beta2: float, epsilon: float, coeff: float,
) -> bool:  # fmt: skip
    rate, p1, p2 = learning_rate.flat[0], beta1_pow.flat[0] * beta1, beta2_pow.flat[0] * beta2
    kept = 1 - rate * coeff
    for i in range(param.size):
        m = beta1 * moment1.flat[i] + (1 - beta1) * grad.flat[i]
        v = beta2 * moment2.flat[i] + (1 - beta2) * grad.flat[i] * grad.flat[i]
        new_param.flat[i] = param.flat[i] * kept - rate * (m / (1 - p1) / (np.sqrt(v / (1 - p2)) + epsilon))
        new_moment1.flat[i], new_moment2.flat[i] = m, v
    new_beta1_pow.flat[0], new_beta2_pow.flat[0] = p1, p2
    return True


@operator(
    _like_states,
    outputs=("param", "moment1", "moment2", "beta1_pow", "beta2_pow"),
    form=Filling(_fill_adam, row_by_row=False),
)
def adam(
    param: Any,
    grad: Any,
    learning_rate: Any,
    moment1: Any,
    moment2: Any,
    beta1_pow: Any,
    beta2_pow: Any,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    coeff: float = 0.0,
) -> Any:
    """One step of Adam: the mean gradient over the root of the mean square, both corrected for their start at 0.

    `coeff` is the share of the parameter itself that each step takes away, apart from the gradient (AdamW).
    """
    m = beta1 * moment1 + (1 - beta1) * grad
    v = beta2 * moment2 + (1 - beta2) * grad * grad
    p1, p2 = beta1_pow * beta1, beta2_pow * beta2
    step = m / (1 - p1) / (np.sqrt(v / (1 - p2)) + epsilon)
    kept = param * (1 - learning_rate * coeff) if coeff else param
    return kept - learning_rate * step, m, v, p1, p2


@operator(_like_states, outputs=("param", "moment", "inf_norm", "beta1_pow"))
def adamax(
    param: Any,
    grad: Any,
    learning_rate: Any,
    moment: Any,
    inf_norm: Any,
    beta1_pow: Any,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
) -> Any:
    """One step of Adam in which the largest gradient of late stands for the root of the mean square."""
    m = beta1 * moment + (1 - beta1) * grad
    largest = np.maximum(np.abs(grad), beta2 * inf_norm + epsilon)
    p1 = beta1_pow * beta1
    return param - learning_rate / (1 - p1) * m / largest, m, largest, p1


def _adagrad_one(param: Any, grad: Any, learning_rate: Any, moment: Any, epsilon: float) -> Any:
    squares = moment + grad * grad
    return param - learning_rate * grad / (np.sqrt(squares) + epsilon), squares


@operator(_like_states, outputs=("param", "moment"), form=Elementwise(_adagrad_one))
def adagrad(param: Any, grad: Any, learning_rate: Any, moment: Any, *, epsilon: float = 1e-6) -> Any:
    """One step that is smaller where gradients have been large."""
    return _adagrad_one(param, grad, learning_rate, moment, epsilon)


def _adadelta_one(
    param: Any, grad: Any, learning_rate: Any, squares: Any, updates: Any, rho: float, epsilon: float
) -> Any:
    new_squares = rho * squares + (1 - rho) * grad * grad
    step = grad * np.sqrt((updates + epsilon) / (new_squares + epsilon))
    return param - learning_rate * step, new_squares, rho * updates + (1 - rho) * step * step


@operator(_like_states, outputs=("param", "squares", "updates"), form=Elementwise(_adadelta_one))
def adadelta(
    param: Any,
    grad: Any,
    learning_rate: Any,
    squares: Any,
    updates: Any,
    *,
    rho: float = 0.95,
    epsilon: float = 1e-6,
) -> Any:
    """One step in the proportion of the size of steps to that of gradients, both of late."""
    return _adadelta_one(param, grad, learning_rate, squares, updates, rho, epsilon)


def _rmsprop_one(
    param: Any, grad: Any, learning_rate: Any, velocity: Any, squares: Any, mean: Any,
    rho: float, epsilon: float, momentum: float, centered: bool, outside: bool,
) -> Any:  # fmt: skip
    new_squares = rho * squares + (1 - rho) * grad * grad
    new_mean = rho * mean + (1 - rho) * grad if centered else mean
    spread = new_squares - new_mean * new_mean if centered else new_squares
    root = np.sqrt(spread) + epsilon if outside else np.sqrt(spread + epsilon)
    new_velocity = momentum * velocity + learning_rate * grad / root
    return param - new_velocity, new_velocity, new_squares, new_mean


@operator(_like_states, outputs=("param", "velocity", "squares", "mean"), form=Elementwise(_rmsprop_one))
def rmsprop(
    param: Any,
    grad: Any,
    learning_rate: Any,
    velocity: Any,
    squares: Any,
    mean: Any,
    *,
    rho: float = 0.95,
    epsilon: float = 1e-6,
    momentum: float = 0.0,
    centered: bool = False,
    outside: bool = False,
) -> Any:
    """One step over the root of the mean square, or the variance, of gradients; `outside` adds epsilon to the root."""
    return _rmsprop_one(param, grad, learning_rate, velocity, squares, mean, rho, epsilon, momentum, centered, outside)


@operator(lambda x, *, value=1.0: x, form=Elementwise(lambda x, value: x + value))
def increment(x: Any, *, value: float = 1.0) -> Any:
    """The value and a number more."""
    return x + x.dtype.type(value)
