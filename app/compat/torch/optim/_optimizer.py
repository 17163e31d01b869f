"""`torch.optim.Optimizer`: groups of parameters with settings of their own, over the operators of steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

import app
from app.errors import AppError
from app.ops.definition import apply
from app.optimizer.optimizer import remembered_as
from app.tensor.memory import keep_freed_memory


class OptimizerError(AppError, ValueError):
    """An optimiser that cannot be made, or a state that does not fit it."""


class Optimizer:
    """The base: a kind names the framework's optimiser that knows its step, and what a group's settings are there."""

    names: ClassVar[Mapping[str, str]] = {}
    """PyTorch's names for what is remembered of a parameter, where they are others."""

    powers: ClassVar[Mapping[str, int]] = {}
    """For what the framework remembers as powers of one of `betas`, which one: here, the steps are counted."""

    def __init__(self, params: Any, defaults: dict[str, Any]):
        self.defaults = defaults
        self.state: dict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        given = [params] if hasattr(params, "dtype") else list(params)
        if not given:
            raise OptimizerError("optimizer got an empty parameter list")
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)
        keep_freed_memory()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Take more parameters, with settings that differ from those of the optimiser."""
        given = param_group["params"]
        params = [given] if hasattr(given, "dtype") else [p[1] if isinstance(p, tuple) else p for p in given]
        for parameter in params:
            if not hasattr(parameter, "dtype"):
                raise OptimizerError(f"{type(self).__name__} optimises Tensors, found {type(parameter).__name__}")
            if not parameter.is_leaf:
                raise OptimizerError(f"{type(self).__name__} optimises leaf Tensors; an operator made one of these")
        self.param_groups.append({**self.defaults, **param_group, "params": params})

    # Steps

    def engine(self, group: Mapping[str, Any]) -> Any:
        """The framework's optimiser for a group: it has the operator of a step, and what that remembers."""
        raise NotImplementedError(f"{type(self).__name__} needs to say which operator changes its parameters")

    def settings(self, group: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of that operator, out of those of the group."""
        return {}

    def gradient(self, parameter: Any, group: Mapping[str, Any]) -> Any:
        """The gradient that a step takes."""
        gradient = -parameter.grad if group.get("maximize") else parameter.grad
        return gradient + parameter * group["weight_decay"] if group.get("weight_decay") else gradient

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient; `closure` computes the loss and the gradients anew."""
        loss = None
        if closure is not None:
            with app.enable_grad():
                loss = closure()
        with app.no_grad():
            for group in self.param_groups:
                engine = self.engine(group)
                settings = {**engine.definition.attributes, **self.settings(group)}
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        gradient = self.gradient(parameter, group)
                        states = self._states(parameter, engine, group)
                        rate = np.asarray(float(group["lr"]), remembered_as(parameter))
                        inputs = [parameter, gradient, rate, *states]
                        changed = [parameter, *states][: len(engine.definition.outputs)]
                        apply(engine.definition, inputs, settings, into=changed)
        return loss

    def _states(self, parameter: Any, engine: Any, group: Mapping[str, Any]) -> list[Any]:
        """What is remembered of a parameter, as its operator takes it; one step more is counted."""
        if not engine.states:
            return []
        known, dtype = self.state[parameter], remembered_as(parameter)
        if not known:
            if self.powers:
                known["step"] = parameter.result_class(np.zeros((), np.float32))
            for name in (name for name in engine.states if name not in self.powers):
                shaped, value = engine.states[name]
                array = np.full(parameter.shape if shaped else (), value, dtype)
                known[self.names.get(name, name)] = parameter.result_class(array)
        steps = 0.0
        if self.powers:
            steps = float(known["step"]) + 1.0
            known["step"] = parameter.result_class(np.asarray(steps, np.float32))
        return [
            parameter.result_class(np.asarray(group["betas"][self.powers[name]] ** steps, dtype))
            if name in self.powers
            else known[self.names.get(name, name)]
            for name in engine.states
        ]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of every parameter, or set them to zero."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none or parameter.grad is None:
                    parameter.grad = None
                else:
                    parameter.grad.zero_()

    # State

    def _numbered(self) -> list[Any]:
        return [parameter for group in self.param_groups for parameter in group["params"]]

    def state_dict(self) -> dict[str, Any]:
        """What is remembered, and the settings of each group; parameters are named by number."""
        number = {id(parameter): i for i, parameter in enumerate(self._numbered())}
        groups = [
            {**{k: v for k, v in group.items() if k != "params"}, "params": [number[id(p)] for p in group["params"]]}
            for group in self.param_groups
        ]
        state = {number[id(p)]: dict(known) for p, known in self.state.items() if known and id(p) in number}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what another optimiser of the same kind and parameters remembered."""
        groups = state_dict["param_groups"]
        if [len(g["params"]) for g in groups] != [len(g["params"]) for g in self.param_groups]:
            raise OptimizerError(f"{type(self).__name__}: loaded state dict has other groups of parameters")
        for own, group in zip(self.param_groups, groups, strict=True):
            own.update({k: v for k, v in group.items() if k != "params"})
        parameters = self._numbered()
        self.state.clear()
        for index, known in state_dict["state"].items():
            self.state[parameters[int(index)]] = {k: v.clone() if hasattr(v, "clone") else v for k, v in known.items()}

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for index, group in enumerate(self.param_groups):
            lines.append(f"{chr(10) if index else ''}Parameter Group {index}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])
