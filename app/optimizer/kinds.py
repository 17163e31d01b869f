"""The optimisers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any

from app.graph.variable import Variable
from app.ops import update
from app.optimizer.lr import LRScheduler
from app.optimizer.optimizer import Optimizer, Rule

Rate = float | LRScheduler | Variable
Parameters = Iterable[Any] | None
ZEROS, ONE = (True, 0.0), (False, 1.0)

PLAIN = Rule(update.sgd)
VELOCITY = Rule(update.momentum, MappingProxyType({"velocity": ZEROS}))
MOMENTS = Rule(
    update.adam,
    MappingProxyType({"moment1": ZEROS, "moment2": ZEROS, "beta1_pow_acc": ONE, "beta2_pow_acc": ONE}),
    MappingProxyType({"beta1_pow_acc": "beta1", "beta2_pow_acc": "beta2"}),
)
MEAN_SQUARE = Rule(update.rmsprop, MappingProxyType({"momentum": ZEROS, "mean_square": ZEROS, "mean_grad": ZEROS}))


class SGD(Optimizer):
    """Stochastic gradient descent; with `momentum`, as `Momentum`."""

    rule = PLAIN

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        parameters: Parameters = None,
        weight_decay: float | None = None,
        grad_clip: Any = None,
        momentum: float = 0.0,
    ):
        if momentum:
            self.rule = VELOCITY
        settings = {"mu": float(momentum)} if momentum else {}
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, settings)


class Momentum(Optimizer):
    """SGD with momentum: velocity = momentum * velocity + gradient, and the parameter moves along the velocity."""

    rule = VELOCITY

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        momentum: float = 0.9,
        parameters: Parameters = None,
        use_nesterov: bool = False,
        weight_decay: float | None = None,
        grad_clip: Any = None,
    ):
        settings = {"mu": float(momentum), "use_nesterov": use_nesterov}
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, settings)


class Adam(Optimizer):
    """Adam: the running mean of gradients, divided by the root of the running mean of their squares."""

    rule = MOMENTS

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameters: Parameters = None,
        weight_decay: float | None = None,
        grad_clip: Any = None,
    ):
        settings = {"beta1": float(beta1), "beta2": float(beta2), "epsilon": float(epsilon)}
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, settings)


class AdamW(Adam):
    """Adam with decoupled weight decay, which shrinks the parameter itself and does not enter the gradient.

    With `apply_decay_param_fun`, only parameters for whose names it returns True decay.
    """

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameters: Parameters = None,
        weight_decay: float = 0.01,
        apply_decay_param_fun: Callable[[str], bool] | None = None,
        grad_clip: Any = None,
    ):
        super().__init__(learning_rate, beta1, beta2, epsilon, parameters, None, grad_clip)
        self._coefficient, self._decays = float(weight_decay), apply_decay_param_fun

    def _settings_of(self, parameter: Any) -> dict[str, Any]:
        decays = self._decays is None or self._decays(parameter.name)
        return {**self._settings, "coeff": self._coefficient if decays else 0.0}


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
        weight_decay: float | None = None,
        grad_clip: Any = None,
    ):
        settings = {
            "rho": float(rho),
            "epsilon": float(epsilon),
            "momentum": float(momentum),
            "centered": bool(centered),
        }
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, settings)
