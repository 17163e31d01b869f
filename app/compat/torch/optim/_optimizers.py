"""PyTorch's optimisers: its names for settings and state, over the framework's optimisers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from inspect import Signature
from types import MappingProxyType
from typing import Any

import numpy as np

import app
from app.compat.table import bound, signature
from app.errors import AppError
from app.optimizer import kinds
from app.optimizer import optimizer as below
from app.optimizer.groups import Group, Rule, check_listed_once
from app.tensor.inplace import write
from app.tensor.memory import keep_freed_memory
from app.tensor.modes import modes


class OptimizerError(AppError, ValueError):
    """An optimiser that cannot be made, or a state that does not fit it."""


class Optimizer(below.Optimizer):
    """The base class. A step reads the settings in `param_groups`, which programs may change between steps."""

    attributes: Mapping[str, str] = MappingProxyType({})
    """The setting for each attribute of the rule's operator."""
    names: Mapping[str, str] = MappingProxyType({})
    """PyTorch's names for state, where they differ."""
    moves_frozen = True

    def __init__(self, params: Any, defaults: Mapping[str, Any]):
        self.defaults = dict(defaults)
        self.state: dict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._learning_rate = 1.0  # each group has its own
        self._rates: dict[int, _GroupRate] = {}
        given = [params] if hasattr(params, "dtype") else list(params)
        if not given:
            raise OptimizerError("optimizer got an empty parameter list")
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)
        keep_freed_memory()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with settings that may differ from those of the optimiser."""
        given = param_group["params"]
        params = [given] if hasattr(given, "dtype") else [p[1] if isinstance(p, tuple) else p for p in given]
        for parameter in params:
            if not hasattr(parameter, "dtype"):
                raise OptimizerError(f"{type(self).__name__} optimises Tensors, found {type(parameter).__name__}")
            if not parameter.is_leaf:
                raise OptimizerError(f"{type(self).__name__} optimises leaf Tensors; an operator made one of these")
        check_listed_once([*self._parameter_list, *params])
        self.param_groups.append({**self.defaults, **param_group, "params": params})

    # Steps

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient. A `closure` computes the loss and the gradients first."""
        loss = None
        if closure is not None:
            with app.enable_grad():
                loss = closure()
        super().step()
        return loss

    @property
    def groups(self) -> list[Group]:  # type: ignore[override]
        """The groups of parameters in the form of the framework's optimiser."""
        return [
            Group(
                group["params"],
                self.rule_of(group),
                float(group["lr"]),
                None if self.is_decoupled(group) else group["weight_decay"],
                settings={**self.rule_of(group).definition.attributes, **self.settings_of(group)},
                dialect=group,
            )
            for group in self.param_groups
        ]

    def rule_of(self, group: Mapping[str, Any]) -> Rule:
        """The rule that the settings of a group choose."""
        return self.rule

    def settings_of(self, group: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes of the rule's operator, out of the settings of a group."""
        return {name: group[key] for name, key in self.attributes.items()}

    def is_decoupled(self, group: Mapping[str, Any]) -> bool:
        """Whether weight decay shrinks the parameters themselves and does not enter their gradients."""
        return False

    def _rate(self, group: Group, parameter: Any) -> tuple[Any, float]:
        settings = group.dialect
        return self._rates.setdefault(id(settings), _GroupRate(settings)), 1.0

    def _regularized(self, group: Group, parameter: Any, gradient: Any) -> Any:
        return super()._regularized(group, parameter, -gradient if group.dialect["maximize"] else gradient)

    def _states_of(self, parameter: Any, group: Group) -> list[Any]:
        return [self._remembered(parameter, name, state) for name, state in group.rule.states.items()]

    def _remembered(self, parameter: Any, name: str, state: tuple[bool, float]) -> Any:
        known, key = self.state[parameter], self.names.get(name, name)
        if key not in known:
            known[key] = below.first_state(parameter, *state)
        return known[key]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of every parameter to None, or to zero."""
        self.clear_grad(not set_to_none)

    @property
    def _parameter_list(self) -> list[Any]:
        return [parameter for group in self.param_groups for parameter in group["params"]]

    # State

    def state_dict(self) -> dict[str, Any]:
        """Return the state and the settings of each group; parameters are named by number."""
        number = {id(parameter): i for i, parameter in enumerate(self._parameter_list)}
        groups = [
            {**{k: v for k, v in group.items() if k != "params"}, "params": [number[id(p)] for p in group["params"]]}
            for group in self.param_groups
        ]
        state = {number[id(p)]: dict(known) for p, known in self.state.items() if known and id(p) in number}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore what `state_dict` of an optimiser of the same class and parameters returned."""
        groups = state_dict["param_groups"]
        if [len(g["params"]) for g in groups] != [len(g["params"]) for g in self.param_groups]:
            raise OptimizerError(f"{type(self).__name__}: loaded state dict has other groups of parameters")
        parameters = self._parameter_list
        unknown = [index for index in state_dict["state"] if not 0 <= int(index) < len(parameters)]
        if unknown:
            raise OptimizerError(
                f"{type(self).__name__}: the loaded state dict has state of parameter {unknown[0]}, "
                f"but there are {len(parameters)}; nothing was changed"
            )
        loaded = {parameters[int(index)]: known for index, known in state_dict["state"].items()}
        self._check_loaded(loaded)
        for own, group in zip(self.param_groups, groups, strict=True):
            own.update({k: v for k, v in group.items() if k != "params"})
        for parameter in [p for p in self.state if p not in loaded]:
            del self.state[parameter]
        for parameter, known in loaded.items():
            own = self.state[parameter]
            self.state[parameter] = {key: _loaded(own.get(key), value) for key, value in known.items()}

    def _check_loaded(self, loaded: Mapping[Any, Mapping[str, Any]]) -> None:
        """Refuse states that do not fit their parameters; those of a user's optimiser may have any shape."""

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for index, group in enumerate(self.param_groups):
            lines.append(f"{chr(10) if index else ''}Parameter Group {index}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


def _loaded(own: Any, value: Any) -> Any:
    """Load a value of a state dict into the existing Tensor, which traced functions may refer to."""
    if not hasattr(value, "clone"):
        return value
    if own is None or own.shape != value.shape or own.dtype != value.dtype:
        return value.clone()
    own.set_value(value)
    return own


class _GroupRate:
    """The learning rate of a group, which programs change between steps; a traced function reads it at each call."""

    def __init__(self, settings: Mapping[str, Any]):
        self._settings = settings

    def get_lr(self) -> float:
        return float(self._settings["lr"])


_RANGES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(
        ["lr", "momentum", "weight_decay", "eps", "alpha", "lr_decay", "initial_accumulator_value"],
        ("0 or more", lambda x: not x < 0),
    ),
    "betas": ("from 0 to below 1", lambda x: 0 <= x < 1),
    "rho": ("from 0 to 1", lambda x: 0 <= x <= 1),
}
"""What PyTorch accepts for settings."""


class _Listed(Optimizer):
    """An optimiser whose settings are listed with their defaults."""

    takes: str
    _accepted: Signature
    __signature__: Signature | None

    def __init_subclass__(cls) -> None:
        listed = "takes" in vars(cls)
        if listed:
            cls._accepted = signature("params, " + cls.takes)
        cls.__signature__ = cls._accepted if listed else None  # a subclass of the user's has that of its constructor

    def __init__(self, *args: Any, **kwargs: Any):
        settings = bound(type(self).__name__, self._accepted, args, kwargs)
        super().__init__(settings.pop("params"), settings)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with settings that may differ from those of the optimiser."""
        for name, value in {**self.defaults, **param_group}.items():
            wanted, fits = _RANGES.get(name, ("", None))
            if fits is not None and not all(map(fits, value if isinstance(value, (tuple, list)) else [value])):
                raise OptimizerError(f"{type(self).__name__}: {name} must be {wanted}, found {value}")
        super().add_param_group(param_group)

    def _check_loaded(self, loaded: Mapping[Any, Mapping[str, Any]]) -> None:
        rules = [group.rule.states.items() for group in self.groups]
        shaped = {self.names.get(name, name) for states in rules for name, (is_shaped, _) in states if is_shaped}
        for parameter, known in loaded.items():
            for key in shaped.intersection(known):
                shape = list(getattr(known[key], "shape", ()))
                if shape != list(parameter.shape):
                    raise OptimizerError(
                        f"{type(self).__name__}: {key} of a parameter of shape {list(parameter.shape)} has shape "
                        f"{shape} in the loaded state dict; nothing was changed"
                    )


_NESTEROV = "Nesterov momentum requires a momentum and zero dampening"


class SGD(_Listed):
    """Steps against the gradient or, with momentum, along an exponentially weighted sum of the gradients."""

    names = MappingProxyType({"velocity": "momentum_buffer"})
    takes = """lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False, foreach=None,
        differentiable=False, fused=None"""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        for settings in (self.defaults, *self.param_groups):
            self.rule_of(settings)
        if self.defaults["nesterov"] and self.defaults["momentum"] <= 0:
            raise OptimizerError(_NESTEROV)

    def rule_of(self, group: Mapping[str, Any]) -> Rule:
        """With momentum, that of `Momentum`."""
        if group["nesterov"] and group["dampening"]:
            raise OptimizerError(_NESTEROV)
        return kinds.VELOCITY if group["momentum"] else kinds.PLAIN

    def settings_of(self, group: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of momentum."""
        if not group["momentum"]:
            return {}
        return {"mu": float(group["momentum"]), "use_nesterov": bool(group["nesterov"])}

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient. A `closure` computes the loss and the gradients first."""
        self._moving = {id(parameter) for parameter, known in self.state.items() if known}
        return super().step(closure)

    def _regularized(self, group: Group, parameter: Any, gradient: Any) -> Any:
        gradient = super()._regularized(group, parameter, gradient)
        dampening = group.dialect["momentum"] and group.dialect["dampening"]
        # the first gradient starts the velocity undamped
        if dampening and id(parameter) not in self._moving and modes().tracer is not None:
            raise OptimizerError("SGD: the first step with dampening differs from the others; take it before tracing")
        return gradient * (1 - dampening) if dampening and id(parameter) in self._moving else gradient


class Adam(_Listed):
    """Steps along the mean gradient over the root of the mean square; with `amsgrad`, of the largest one so far."""

    names = MappingProxyType({"moment1": "exp_avg", "moment2": "exp_avg_sq", "moment2_max": "max_exp_avg_sq"})
    takes = """lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, foreach=None, maximize=False,
        capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False"""

    def rule_of(self, group: Mapping[str, Any]) -> Rule:
        """The rule without powers, which follow from the number of steps here."""
        return (kinds.LARGEST_MOMENT if group["amsgrad"] else kinds.MOMENTS)._replace(powers={})

    def settings_of(self, group: Mapping[str, Any]) -> dict[str, Any]:
        """The coefficients, and that of decoupled weight decay."""
        beta1, beta2 = (float(beta) for beta in group["betas"])
        coeff = float(group["weight_decay"]) if self.is_decoupled(group) else 0.0
        return {"beta1": beta1, "beta2": beta2, "epsilon": group["eps"], "coeff": coeff}

    def is_decoupled(self, group: Mapping[str, Any]) -> bool:
        """Whether the group says so."""
        return bool(group["decoupled_weight_decay"])

    def _states_of(self, parameter: Any, group: Group) -> list[Any]:
        known, dtype = self.state[parameter], below.remembered_as(parameter)
        if "step" not in known:
            known["step"] = parameter.result_class(np.zeros((), np.float32))
        steps = known["step"]
        if modes().tracer is None:
            write(steps, steps._array + 1)
            count: Any = steps.item()
        else:
            count = app.cast(steps.add_(1), "float64")
        powers = dict(zip(kinds.MOMENTS.powers, map(float, group.dialect["betas"]), strict=True))
        return [
            self._power(parameter, powers[name], count, dtype)
            if name in powers
            else self._remembered(parameter, name, state)
            for name, state in group.rule.states.items()
        ]

    def _power(self, parameter: Any, beta: float, count: Any, dtype: str) -> Any:
        """A coefficient to the power of the number of steps."""
        if isinstance(count, float):
            return parameter.result_class(np.asarray(beta**count, dtype))
        return app.cast(app.pow(np.asarray(beta, "float64"), count), dtype)


class AdamW(Adam):
    """Adam with decoupled weight decay, which shrinks the parameters themselves."""

    takes = """lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, maximize=False, foreach=None,
        capturable=False, differentiable=False, fused=None"""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        for settings in (self.defaults, *self.param_groups):
            settings["decoupled_weight_decay"] = True


class RMSprop(_Listed):
    """Steps over the root mean square of recent gradients; with `centered`, over their standard deviation."""

    rule = kinds.MEAN_SQUARE
    attributes = MappingProxyType({"rho": "alpha", "epsilon": "eps", "momentum": "momentum", "centered": "centered"})
    names = MappingProxyType({"momentum": "momentum_buffer", "mean_square": "square_avg", "mean_grad": "grad_avg"})
    takes = """lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, capturable=False,
        foreach=None, maximize=False, differentiable=False"""

    def settings_of(self, group: Mapping[str, Any]) -> dict[str, Any]:
        """PyTorch adds `eps` to the root, and multiplies the velocity by the learning rate."""
        return {**super().settings_of(group), "outside": True}


class Adagrad(_Listed):
    """Steps over the root of the sum of all squared gradients."""

    attributes = MappingProxyType({"epsilon": "eps"})
    names = MappingProxyType({"moment": "sum"})
    takes = """lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach=None, *,
        maximize=False, differentiable=False, fused=None"""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if self.defaults["lr_decay"]:
            raise OptimizerError(f"Adagrad: lr_decay is 0 in this façade, found {self.defaults['lr_decay']}")

    def rule_of(self, group: Mapping[str, Any]) -> Rule:
        """The rule with the first value of the sum, which is the same for all groups."""
        return kinds.sum_of_squares(self.defaults["initial_accumulator_value"])


class Adadelta(_Listed):
    """Steps in proportion to the root mean square of recent steps, over that of recent gradients."""

    rule = kinds.MEAN_SQUARES
    attributes = MappingProxyType({"rho": "rho", "epsilon": "eps"})
    names = MappingProxyType({"_avg_squared_grad": "square_avg", "_avg_squared_update": "acc_delta"})
    takes = """lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, capturable=False, maximize=False,
        differentiable=False"""
