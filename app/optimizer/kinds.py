"""The optimisers: the operator of each, what it remembers of a parameter, and its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from app.graph.variable import Variable
from app.ops import update
from app.optimizer.groups import Group
from app.optimizer.lr import LRScheduler
from app.optimizer.optimizer import Optimizer

Rate = float | LRScheduler | Variable
Parameters = Iterable[Any] | None
SHAPED, NUMBER = True, False


def _states(**states: tuple[bool, float]) -> Mapping[str, tuple[bool, float]]:
    return MappingProxyType(states)


class SGD(Optimizer):
    """Steps against the gradient; with `momentum`, those of `Momentum`."""

    definition = update.sgd

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
            self.definition, self.states = Momentum.definition, Momentum.states
        settings = {"mu": float(momentum)} if momentum else {}
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, settings)


class Momentum(Optimizer):
    """Steps along a velocity, in which earlier gradients fade."""

    definition = update.momentum
    states = _states(velocity=(SHAPED, 0.0))

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
        settings = {"mu": float(momentum), "use_nesterov": use_nesterov}
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, settings)


_MOMENTS = {"moment1": (SHAPED, 0.0), "moment2": (SHAPED, 0.0)}
_POWERS = {"beta1_pow_acc": (NUMBER, 1.0), "beta2_pow_acc": (NUMBER, 1.0)}
_AMSGRAD = _states(**_MOMENTS, moment2_max=(SHAPED, 0.0), **_POWERS)


class Adam(Optimizer):
    """Steps of the mean gradient over the root of the mean square; with `amsgrad`, of the largest one so far."""

    definition = update.adam
    states = _states(**_MOMENTS, **_POWERS)
    powers = MappingProxyType({"beta1_pow_acc": "beta1", "beta2_pow_acc": "beta2"})

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
            self.definition, self.states = update.amsgrad, _AMSGRAD
        settings = {"beta1": float(beta1), "beta2": float(beta2), "epsilon": float(epsilon)}
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, settings)


class AdamW(Adam):
    """Adam with decoupled weight decay: each step takes a share of the parameter away, apart from the gradient."""

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
        return gradient

    def _settings_of(self, group: Group, parameter: Any) -> dict[str, Any]:
        decays = self._decays is None or self._decays(parameter.name)
        return {**group.settings, "coeff": float(group.weight_decay or 0.0) if decays else 0.0}

    def _factor(self, group: Group, parameter: Any) -> float:
        ratio = 1.0 if self._lr_ratio is None else float(self._lr_ratio(parameter))
        return super()._factor(group, parameter) * ratio


class Adagrad(Optimizer):
    """Steps over the root of the sum of all squared gradients."""

    definition = update.adagrad

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
        self.states = _states(moment=(SHAPED, float(initial_accumulator_value)))
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, {"epsilon": float(epsilon)})


class Adadelta(Optimizer):
    """Steps in proportion to the root mean square of recent steps, over that of recent gradients."""

    definition = update.adadelta
    states = _states(_avg_squared_grad=(SHAPED, 0.0), _avg_squared_update=(SHAPED, 0.0))

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
    """Steps over the root mean square of recent gradients; with `centered`, over their standard deviation."""

    definition = update.rmsprop
    states = _states(momentum=(SHAPED, 0.0), mean_square=(SHAPED, 0.0), mean_grad=(SHAPED, 0.0))

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
