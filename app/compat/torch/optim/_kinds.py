"""PyTorch's optimisers: the settings of each, and what they are called below."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

from app import optimizer
from app.compat.torch.optim._optimizer import Optimizer, OptimizerError

_WAYS = {"maximize": False, "foreach": None, "capturable": False, "differentiable": False, "fused": None}
"""Settings of all kinds. The last ones say how a step is computed, not what; there is one way here."""


class SGD(Optimizer):
    """Steps against the gradient; with momentum, along a velocity that remembers earlier ones."""

    names: ClassVar[dict[str, str]] = {"velocity": "momentum_buffer"}

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        **ways: Any,
    ):
        if nesterov and (momentum <= 0 or dampening != 0):
            raise OptimizerError("Nesterov momentum requires a momentum and zero dampening")
        moving = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        super().__init__(params, {**moving, "nesterov": nesterov, **_ways(ways, "capturable")})

    def engine(self, group: Mapping[str, Any]) -> Any:
        return optimizer.Momentum if group["momentum"] else optimizer.SGD

    def settings(self, group: Mapping[str, Any]) -> dict[str, Any]:
        if not group["momentum"]:
            return {}
        return {"mu": float(group["momentum"]), "use_nesterov": bool(group["nesterov"])}

    def gradient(self, parameter: Any, group: Mapping[str, Any]) -> Any:
        """The first gradient starts the velocity as it is; later ones are dampened."""
        gradient = super().gradient(parameter, group)
        dampened = group["momentum"] and group["dampening"] and self.state[parameter]
        return gradient * (1 - group["dampening"]) if dampened else gradient


def _ways(given: Mapping[str, Any], *without: str) -> dict[str, Any]:
    known = {key: value for key, value in _WAYS.items() if key not in without}
    for key in given:
        if key not in known:
            raise OptimizerError(f"the optimiser has no setting {key!r}")
    return {**known, **given}


class Kind(NamedTuple):
    """What is to be said of an optimiser that the framework knows under another name, with other settings."""

    engine: Callable[[Mapping[str, Any]], Any]
    """The framework's optimiser for a group."""
    defaults: dict[str, Any]
    attributes: dict[str, Any]
    """For an attribute of the operator which setting it is, which part of one, what it makes of them, or its value."""
    names: dict[str, str]
    """PyTorch's names for what is remembered."""
    decoupled: Callable[[Mapping[str, Any]], bool] = lambda group: False
    """Whether `weight_decay` is the operator's affair in a group, and no part of the gradient."""
    only: dict[str, Any] = {}  # noqa: RUF012 - a default of a NamedTuple, which nobody changes
    """Settings for which there is one value."""
    without: tuple[str, ...] = ("fused",)
    """Which of the settings of all kinds it has not."""
    powers: dict[str, int] = {}  # noqa: RUF012 - as above
    """See `Optimizer.powers`."""

    def make(self, name: str) -> type[Optimizer]:
        """The class of such an optimiser."""
        return type(
            name, (_OfKind,), {"kind": self, "names": self.names, "powers": self.powers, "__module__": __name__}
        )


class _OfKind(Optimizer):
    """An optimiser that a Kind describes."""

    kind: ClassVar[Kind]

    def __init__(self, params: Any, *args: Any, **kwargs: Any):
        defaults = {**self.kind.defaults, **self.kind.only}
        given = dict(zip(defaults, args, strict=False))
        given.update({key: kwargs.pop(key) for key in defaults if key in kwargs})
        for key, value in self.kind.only.items():
            if given.get(key, value) != value:
                raise OptimizerError(f"{type(self).__name__}: {key} is {value} in this façade, found {given[key]}")
        super().__init__(params, {**defaults, **given, **_ways(kwargs, *self.kind.without)})

    def engine(self, group: Mapping[str, Any]) -> Any:
        return self.kind.engine(group)

    def settings(self, group: Mapping[str, Any]) -> dict[str, Any]:
        return {attribute: _setting(group, where) for attribute, where in self.kind.attributes.items()}

    def gradient(self, parameter: Any, group: Mapping[str, Any]) -> Any:
        """The gradient, to which a decay that the operator does not know of is added."""
        return super().gradient(parameter, {**group, "weight_decay": 0} if self.kind.decoupled(group) else group)


def _setting(group: Mapping[str, Any], where: Any) -> Any:
    if isinstance(where, tuple):
        key, index = where
        return float(group[key][index])
    if callable(where):
        return where(group)
    return group[where] if isinstance(where, str) else where


_BETAS = {"betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0}
_OF_BETAS = {"beta1": ("betas", 0), "beta2": ("betas", 1), "epsilon": "eps"}
_POWERS = {"beta1_pow_acc": 0, "beta2_pow_acc": 1}
_MOMENTS = {"moment1": "exp_avg", "moment2": "exp_avg_sq", "moment2_max": "max_exp_avg_sq"}
_RMS = {"momentum": "momentum_buffer", "mean_square": "square_avg", "mean_grad": "grad_avg"}
_DECAY_APART = {**_OF_BETAS, "coeff": lambda group: group["weight_decay"] if group["decoupled_weight_decay"] else 0.0}


def _apart(group: Mapping[str, Any]) -> bool:
    return bool(group.get("decoupled_weight_decay", True))


_TABLE = {
    "Adadelta": Kind(
        lambda group: optimizer.Adadelta,
        {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0},
        {"rho": "rho", "epsilon": "eps"},
        {"_avg_squared_grad": "square_avg", "_avg_squared_update": "acc_delta"},
    ),
    "Adagrad": Kind(
        lambda group: optimizer.Adagrad(initial_accumulator_value=group["initial_accumulator_value"]),
        {"lr": 1e-2, "lr_decay": 0, "weight_decay": 0, "initial_accumulator_value": 0, "eps": 1e-10},
        {"epsilon": "eps"},
        {"moment": "sum"},
        only={"lr_decay": 0},
        without=("capturable",),
    ),
    "Adam": Kind(
        lambda group: optimizer.Adam(amsgrad=group["amsgrad"]),
        {"lr": 1e-3, **_BETAS, "amsgrad": False, "decoupled_weight_decay": False},
        _DECAY_APART,
        _MOMENTS,
        decoupled=_apart,
        without=(),
        powers=_POWERS,
    ),
    "AdamW": Kind(
        lambda group: optimizer.AdamW(amsgrad=group["amsgrad"]),
        {"lr": 1e-3, **_BETAS, "weight_decay": 1e-2, "amsgrad": False},
        {**_OF_BETAS, "coeff": "weight_decay"},
        _MOMENTS,
        decoupled=_apart,
        only={"decoupled_weight_decay": True},
        without=(),
        powers=_POWERS,
    ),
    "RMSprop": Kind(
        lambda group: optimizer.RMSProp,
        {"lr": 1e-2, "alpha": 0.99, "eps": 1e-8, "weight_decay": 0, "momentum": 0, "centered": False},
        {"rho": "alpha", "epsilon": "eps", "momentum": "momentum", "centered": "centered", "outside": True},
        _RMS,
    ),
}

KINDS = {"SGD": SGD, **{name: kind.make(name) for name, kind in _TABLE.items()}}
"""Every optimiser by name."""
