"""Update operators of the optimisers: new values of a parameter and of its optimiser state."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps

import numpy as np

from app.ops.definition import OpDef, operator
from app.ops.lowering import Accumulates, Elementwise
from app.ops.public import public
from app.ops.rounding import check_whole
from app.ops.spec import Spec

Array = np.ndarray
Formula = Callable[..., Array | tuple[Array, ...]]


def update(*remembered: str) -> Callable[[Formula], OpDef]:
    """Declare the step of an optimiser by an elementwise formula.

    The formula takes the parameter, its gradient, the learning rate, the state of the optimiser (`remembered`) and
    possibly further numbers; parameters with defaults are attributes. It returns the new parameter and the new state.
    It is both the kernel and the body of the compiled loop, so it must work for arrays and for scalars.

    What is updated keeps its type. A parameter of half precision is updated in single precision, because steps are too
    small for half.
    """

    def define(formula: Formula) -> OpDef:
        parameters = inspect.signature(formula).parameters.values()

        @wraps(formula)
        def kernel(*values: Array, **settings: float) -> Array | tuple[Array, ...]:
            half = values[0].dtype == np.float16
            new = formula(*(value.astype(np.float32) for value in values) if half else values, **settings)
            if not isinstance(new, tuple):
                return new.astype(values[0].dtype, copy=False)
            old = (values[0], *values[3:])
            return tuple(array.astype(before.dtype, copy=False) for array, before in zip(new, old, strict=False))

        declare = operator(
            _infer,
            inputs=[p.name for p in parameters if p.default is p.empty],
            attributes={p.name: p.default for p in parameters if p.default is not p.empty},
            outputs=("param", *remembered) if remembered else ("out",),
            lowering=Elementwise(formula),
        )
        return declare(kernel)

    def _infer(param: Spec, grad: Spec, learning_rate: Spec, *states: Spec, **settings: float) -> tuple[Spec, ...]:
        return (param, *states[: len(remembered)])

    return define


@update()
def sgd(param: Array, grad: Array, learning_rate: Array) -> Array:
    """Gradient descent: param - learning_rate * grad."""
    result: Array = param - learning_rate * grad
    return result


sgd.accumulates = Accumulates(base="param", scale="learning_rate", term="grad")


@update("velocity")
def momentum(
    param: Array, grad: Array, learning_rate: Array, velocity: Array, mu: float = 0.9, use_nesterov: bool = False
) -> tuple[Array, ...]:
    """Gradient descent with momentum, optionally Nesterov's."""
    new_velocity = mu * velocity + grad
    step = grad + mu * new_velocity if use_nesterov else new_velocity
    return param - learning_rate * step, new_velocity


@update("moment1", "moment2")
def adam(
    param: Array, grad: Array, learning_rate: Array,
    moment1: Array, moment2: Array, beta1_pow: Array, beta2_pow: Array,
    beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, coeff: float = 0.0,
) -> tuple[Array, ...]:  # fmt: skip
    """One step of Adam, with bias correction.

    `beta1_pow` and `beta2_pow` are beta1 and beta2 to the power of the number of steps, including this one. `coeff` is
    the decoupled weight decay of AdamW.
    """
    mean = beta1 * moment1 + (1 - beta1) * grad
    square = beta2 * moment2 + (1 - beta2) * grad * grad
    step = mean / (1 - beta1_pow) / (np.sqrt(square / (1 - beta2_pow)) + epsilon)
    decayed = param * (1 - learning_rate * coeff) if coeff else param
    return decayed - learning_rate * step, mean, square


@update("velocity", "squares", "mean")
def rmsprop(
    param: Array, grad: Array, learning_rate: Array, velocity: Array, squares: Array, mean: Array,
    rho: float = 0.95, epsilon: float = 1e-6, momentum: float = 0.0, centered: bool = False,
) -> tuple[Array, ...]:  # fmt: skip
    """One step of RMSProp: the gradient is divided by its recent root mean square or, if `centered`, its deviation."""
    new_squares = rho * squares + (1 - rho) * grad * grad
    new_mean = rho * mean + (1 - rho) * grad if centered else mean
    spread = new_squares - new_mean * new_mean if centered else new_squares
    new_velocity = momentum * velocity + learning_rate * grad / np.sqrt(spread + epsilon)
    return param - new_velocity, new_velocity, new_squares, new_mean


def _infer_increment(x: Spec, *, value: float = 1.0) -> Spec:
    check_whole("increments", x.dtype, value)
    return x


@public(in_place=True)
@operator(
    _infer_increment,
    lowering=Elementwise(lambda x, value: x + value, integers=lambda x, value: x + np.int64(value)),
    onnx=lambda onnx, x, value: x + value,
)
def increment(x: Array, *, value: float = 1.0) -> Array:
    """x + value."""
    check_whole("increments", x.dtype.name, value)  # eager calls infer once for each type, whatever the value
    result: Array = x + x.dtype.type(value)
    return result
