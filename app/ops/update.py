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
    beta1: float, beta2: float, epsilon: float,
) -> bool:  # fmt: skip
    rate, p1, p2 = learning_rate.flat[0], beta1_pow.flat[0] * beta1, beta2_pow.flat[0] * beta2
    for i in range(param.size):
        m = beta1 * moment1.flat[i] + (1 - beta1) * grad.flat[i]
        v = beta2 * moment2.flat[i] + (1 - beta2) * grad.flat[i] * grad.flat[i]
        new_param.flat[i] = param.flat[i] - rate * (m / (1 - p1) / (np.sqrt(v / (1 - p2)) + epsilon))
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
) -> Any:
    """One step of Adam: the mean gradient over the root of the mean square, both corrected for their start at 0."""
    m = beta1 * moment1 + (1 - beta1) * grad
    v = beta2 * moment2 + (1 - beta2) * grad * grad
    p1, p2 = beta1_pow * beta1, beta2_pow * beta2
    step = m / (1 - p1) / (np.sqrt(v / (1 - p2)) + epsilon)
    return param - learning_rate * step, m, v, p1, p2


@operator(lambda x, *, value=1.0: x, form=Elementwise(lambda x, value: x + value))
def increment(x: Any, *, value: float = 1.0) -> Any:
    """The value and a number more."""
    return x + x.dtype.type(value)
