"""The steps of the optimisers, as operators: from a parameter, its gradient and what is remembered to new values."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from app.ops.definition import OpDef, operator
from app.ops.form import Accumulates, Elementwise
from app.ops.public import public
from app.ops.spec import Spec


def update(*remembered: str, form: Any = None) -> Callable[[Callable[..., Any]], OpDef]:
    """Declare an optimiser's step: new values of the parameter, and of what is remembered of it.

    A parameter of half precision is changed in single precision: what a step adds up is too small for it.
    """

    def define(kernel: Callable[..., Any]) -> OpDef:
        @wraps(kernel)
        def step(param: Any, *others: Any, **settings: Any) -> Any:
            if param.dtype != np.float16:
                return kernel(param, *others, **settings)
            wide = kernel(*(v.astype(np.float32) for v in (param, *others)), **settings)
            if not remembered:
                return wide.astype(param.dtype)
            states = others[len(others) - len(remembered) :]
            return tuple(new.astype(old.dtype) for new, old in zip(wide, (param, *states), strict=True))

        return operator(_like_states, outputs=("param", *remembered) if remembered else ("out",), form=form)(step)

    return define


def _like_states(param: Spec, grad: Spec, learning_rate: Spec, *states: Spec, **attributes: Any) -> tuple[Spec, ...]:
    return (param, *states)


@update(form=Elementwise(lambda param, grad, learning_rate: param - learning_rate * grad))
def sgd(param: Any, grad: Any, learning_rate: Any) -> Any:
    """One step against the gradient."""
    return param - learning_rate * grad


sgd.accumulates = Accumulates(base="param", scale="learning_rate", term="grad")


def _momentum_one(param: Any, grad: Any, learning_rate: Any, velocity: Any, mu: float, use_nesterov: bool) -> Any:
    new_velocity = mu * velocity + grad
    step = grad + mu * new_velocity if use_nesterov else new_velocity
    return param - learning_rate * step, new_velocity


@update("velocity", form=Elementwise(_momentum_one))
def momentum(
    param: Any, grad: Any, learning_rate: Any, velocity: Any, *, mu: float = 0.9, use_nesterov: bool = False
) -> Any:
    """One step along a velocity that remembers earlier gradients."""
    return _momentum_one(param, grad, learning_rate, velocity, mu, use_nesterov)


def _adagrad_one(param: Any, grad: Any, learning_rate: Any, moment: Any, epsilon: float) -> Any:
    squares = moment + grad * grad
    return param - learning_rate * grad / (np.sqrt(squares) + epsilon), squares


@update("moment", form=Elementwise(_adagrad_one))
def adagrad(param: Any, grad: Any, learning_rate: Any, moment: Any, *, epsilon: float = 1e-6) -> Any:
    """One step that is smaller where gradients have been large."""
    return _adagrad_one(param, grad, learning_rate, moment, epsilon)


def _adadelta_one(
    param: Any, grad: Any, learning_rate: Any, squares: Any, updates: Any, rho: float, epsilon: float
) -> Any:
    new_squares = rho * squares + (1 - rho) * grad * grad
    step = grad * np.sqrt((updates + epsilon) / (new_squares + epsilon))
    return param - learning_rate * step, new_squares, rho * updates + (1 - rho) * step * step


@update("squares", "updates", form=Elementwise(_adadelta_one))
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


@update("velocity", "squares", "mean", form=Elementwise(_rmsprop_one))
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


def _rprop_one(
    param: Any, grad: Any, learning_rate: Any, previous: Any, size: Any,
    eta_minus: float, eta_plus: float, smallest: float, largest: float,
) -> Any:  # fmt: skip
    agreement = grad * previous
    if agreement > 0:
        size = size * eta_plus
    elif agreement < 0:
        size, grad = size * eta_minus, grad * 0
    size = np.minimum(np.maximum(size, smallest), largest)
    return param - np.sign(grad) * size, grad, size


@update("previous", "size", form=Elementwise(_rprop_one))
def rprop(
    param: Any,
    grad: Any,
    learning_rate: Any,
    previous: Any,
    size: Any,
    *,
    eta_minus: float = 0.5,
    eta_plus: float = 1.2,
    smallest: float = 1e-5,
    largest: float = 50.0,
) -> Any:
    """One step of a size of its own for each element, that grows while the gradient keeps its sign."""
    agreement = np.sign(grad * previous)
    size = np.where(agreement > 0, size * eta_plus, np.where(agreement < 0, size * eta_minus, size))
    size = np.clip(size, smallest, largest).astype(param.dtype, copy=False)
    kept = np.where(agreement < 0, grad * 0, grad)  # after a turn, an element waits for a step
    return param - np.sign(kept) * size, kept, size


@public(method=True, in_place=True)
@operator(
    lambda x, *, value=1.0: x,
    form=Elementwise(lambda x, value: x + value),
    onnx=lambda onnx, x, value: x + value,
)
def increment(x: Any, *, value: float = 1.0) -> Any:
    """The value and a number more."""
    return x + x.dtype.type(value)
