"""The optimisers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any

from app.errors import AppError
from app.graph.variable import Variable
from app.ops import update
from app.optimizer.groups import Group, Rule
from app.optimizer.lr import LRScheduler
from app.optimizer.optimizer import Optimizer, own_regularizer

Rate = float | LRScheduler | Variable
Parameters = Iterable[Any] | None
ZEROS, ONE = (True, 0.0), (False, 1.0)

PLAIN = Rule(update.sgd)
VELOCITY = Rule(update.momentum, MappingProxyType({"velocity": ZEROS}))
_POWERS = MappingProxyType({"beta1_pow_acc": "beta1", "beta2_pow_acc": "beta2"})
MOMENTS = Rule(
    update.adam,
    MappingProxyType({"moment1": ZEROS, "moment2": ZEROS, "beta1_pow_acc": ONE, "beta2_pow_acc": ONE}),
    _POWERS,
)
LARGEST_MOMENT = Rule(
    update.amsgrad,
    MappingProxyType(
        {"moment1": ZEROS, "moment2": ZEROS, "moment2_max": ZEROS, "beta1_pow_acc": ONE, "beta2_pow_acc": ONE}
    ),
    _POWERS,
)
MEAN_SQUARES = Rule(update.adadelta, MappingProxyType({"_avg_squared_grad": ZEROS, "_avg_squared_update": ZEROS}))
MEAN_SQUARE = Rule(update.rmsprop, MappingProxyType({"momentum": ZEROS, "mean_square": ZEROS, "mean_grad": ZEROS}))


def sum_of_squares(first: float) -> Rule:
    """The rule of Adagrad, with the first value of the sum."""
    return Rule(update.adagrad, MappingProxyType({"moment": (True, float(first))}))


class SGD(Optimizer):
    """Stochastic gradient descent; with `momentum`, as `Momentum`."""

    rule = PLAIN

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        name: str | None = None,
        momentum: float = 0.0,
    ):
        if momentum:
            self.rule = VELOCITY
        settings = {"mu": float(momentum)} if momentum else {}
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, settings)


class Momentum(Optimizer):
    """SGD with momentum: velocity = momentum * velocity + gradient, and the parameter moves along the velocity."""

    rule = VELOCITY

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        momentum: float = 0.9,
        parameters: Parameters = None,
        use_nesterov: bool = False,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        rescale_grad: float = 1.0,
        use_multi_tensor: bool = False,
        name: str | None = None,
    ):
        if rescale_grad != 1.0:
            raise AppError(f"Momentum: rescale_grad is 1.0, found {rescale_grad}; multiply the loss by it instead")
        settings = {"mu": float(momentum), "use_nesterov": use_nesterov}
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, settings)


class Adam(Optimizer):
    """Adam: the running mean of gradients, divided by the root of the running mean of their squares.

    With `amsgrad`, it is divided by the root of the largest mean so far.
    """

    rule = MOMENTS

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        use_multi_tensor: bool = False,
        amsgrad: bool = False,
        name: str | None = None,
    ):
        if amsgrad:
            self.rule = LARGEST_MOMENT
        settings = {"beta1": float(beta1), "beta2": float(beta2), "epsilon": float(epsilon)}
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, settings)


class AdamW(Adam):
    """Adam with decoupled weight decay, which shrinks the parameter itself and does not enter the gradient."""

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameters: Parameters = None,
        weight_decay: float = 0.01,
        lr_ratio: Callable[[Any], float] | None = None,
        apply_decay_param_fun: Callable[[str], bool] | None = None,
        grad_clip: Any = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        amsgrad: bool = False,
        name: str | None = None,
    ):
        self._lr_ratio, self._decays = lr_ratio, apply_decay_param_fun
        super().__init__(
            learning_rate, beta1, beta2, epsilon, parameters, float(weight_decay), grad_clip, amsgrad=amsgrad, name=name
        )

    def _regularized(self, group: Group, parameter: Any, gradient: Any) -> Any:
        own = own_regularizer(parameter)
        return gradient if own is None else gradient + own.penalty_gradient(parameter)

    def _settings_of(self, group: Group, parameter: Any) -> dict[str, Any]:
        decays = self._decays is None or self._decays(parameter.name)
        return {**group.settings, "coeff": float(group.weight_decay or 0.0) if decays else 0.0}

    def _factor(self, group: Group, parameter: Any) -> float:
        ratio = 1.0 if self._lr_ratio is None else float(self._lr_ratio(parameter))
        return super()._factor(group, parameter) * ratio


class Adagrad(Optimizer):
    """Adagrad: the gradient, divided by the root of the sum of all squared gradients."""

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        epsilon: float = 1e-6,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
        initial_accumulator_value: float = 0.0,
    ):
        self.rule = sum_of_squares(initial_accumulator_value)
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, {"epsilon": float(epsilon)})


class Adadelta(Optimizer):
    """Adadelta: the gradient, times the root mean square of recent steps, divided by that of recent gradients."""

    rule = MEAN_SQUARES

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        epsilon: float = 1e-6,
        rho: float = 0.95,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ):
        settings = {"rho": float(rho), "epsilon": float(epsilon)}
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, settings)


class RMSProp(Optimizer):
    """RMSProp: the gradient, divided by the root mean square of recent gradients.

    With `centered`, it is divided by their standard deviation.
    """

    rule = MEAN_SQUARE

    def __init__(
        self,
        learning_rate: Rate,
        rho: float = 0.95,
        epsilon: float = 1e-6,
        momentum: float = 0.0,
        centered: bool = False,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ):
        settings = {
            "rho": float(rho),
            "epsilon": float(epsilon),
            "momentum": float(momentum),
            "centered": bool(centered),
        }
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, settings)
