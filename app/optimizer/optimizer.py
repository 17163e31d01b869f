"""Optimisers: each names the operator of its step and what it remembers; the rest is here, for both modes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from app.errors import AppError
from app.graph import names
from app.graph.backward import append_backward
from app.graph.defaults import default_startup_program
from app.graph.program import OPTIMIZE, Program, Variable
from app.nn.parameter import initialise
from app.ops import update
from app.ops.creation import fill_constant
from app.ops.definition import OpDef, apply
from app.optimizer.lr import LRScheduler
from app.tensor import Tensor, no_grad


class Optimizer:
    """The base: in a Program, `minimize` appends the backward pass and the steps; eagerly, `step` makes them."""

    definition: OpDef
    states: Mapping[str, tuple[bool, float]] = MappingProxyType({})
    """What is remembered of a parameter: whether in the parameter's shape (or as one number), and the first value."""

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        parameters: Iterable[Any] | None = None,
        weight_decay: float | None = None,
        name: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ):
        self._learning_rate = learning_rate
        self._parameters = None if parameters is None else list(parameters)
        self._weight_decay = float(weight_decay or 0.0)
        self._settings = {**self.definition.attributes, **(settings or {})}
        self._memory: dict[int, list[Any]] = {}

    # The learning rate

    def get_lr(self) -> float:
        """The learning rate now."""
        rate = self._learning_rate
        return rate.get_lr() if isinstance(rate, LRScheduler) else float(rate)

    def set_lr(self, value: float) -> None:
        """Set the learning rate; it holds from the next step, or the next run of the Program."""
        if isinstance(self._learning_rate, LRScheduler):
            raise AppError("the learning rate follows a schedule; set it by the schedule's step()")
        self._learning_rate = value

    # One step, for Tensors and Variables alike

    def _step_one(self, parameter: Any, gradient: Any, learning_rate: Any, states: list[Any]) -> None:
        if self._weight_decay:
            gradient = gradient + parameter * self._weight_decay
        inputs = [parameter, gradient, learning_rate, *states]
        apply(self.definition, inputs, self._settings, into=[parameter, *states])

    # Eagerly

    @no_grad()
    def step(self) -> None:
        """Change every parameter that has a gradient."""
        if self._parameters is None:
            raise AppError(f"{type(self).__name__} was made without parameters=; it has nothing to change")
        for parameter in self._parameters:
            if parameter.grad is not None and not parameter.stop_gradient:
                rate = np.asarray(self.get_lr(), parameter.dtype)
                self._step_one(parameter, parameter.grad, rate, self._eager_states(parameter))

    def _eager_states(self, parameter: Tensor) -> list[Tensor]:
        if id(parameter) not in self._memory:
            self._memory[id(parameter)] = [
                Tensor(np.full(parameter.shape if shaped else (), value, parameter.dtype))
                for shaped, value in self.states.values()
            ]
        return self._memory[id(parameter)]

    def clear_grad(self) -> None:
        """Forget the gradients of every parameter."""
        for parameter in self._parameters or []:
            parameter.clear_grad()

    clear_gradients = clear_grad

    # In a Program

    def minimize(
        self,
        loss: Any,
        startup_program: Program | None = None,
        parameters: Sequence[Any] | None = None,
        no_grad_set: Any = None,
    ) -> tuple[list[Any], list[tuple[Any, Any]]]:
        """Make a loss smaller: append what does so, or, for a Tensor whose backward() has run, take a step."""
        if isinstance(loss, Tensor):
            self.step()
            return [], [(p, p.grad) for p in self._parameters or []]
        pairs = append_backward(loss, parameters or self._parameters, no_grad_set)
        return self.apply_gradients(pairs, startup_program), pairs

    def apply_gradients(
        self, params_grads: Sequence[tuple[Any, Any]], startup_program: Program | None = None
    ) -> list[Any]:
        """Append the steps of parameters whose gradients are in a Program; gives the operators."""
        if not params_grads:
            raise AppError("there is no trainable parameter that the loss depends on")
        startup = startup_program or default_startup_program()
        program: Program = params_grads[0][0].program
        before = len(program.global_block().ops)
        with program.appending(OPTIMIZE):
            rate = self._rate_variable(program, startup, params_grads[0][0].dtype)
            for parameter, gradient in params_grads:
                self._step_one(parameter, gradient, rate, self._program_states(parameter, startup))
        return program.global_block().ops[before:]

    def _rate_variable(self, program: Program, startup: Program, dtype: str) -> Variable:
        variable = _persistable(program, startup, names.generate("learning_rate"), (), dtype, self.get_lr())
        program.schedulers[variable.name] = self
        return variable

    def _program_states(self, parameter: Variable, startup: Program) -> list[Variable]:
        return [
            _persistable(
                parameter.program,
                startup,
                names.generate(f"{parameter.name}_{state}"),
                parameter.shape if shaped else (),
                parameter.dtype,
                value,
            )
            for state, (shaped, value) in self.states.items()
        ]


def _persistable(
    program: Program, startup: Program, name: str, shape: tuple[int, ...], dtype: str, value: float
) -> Variable:
    initialise(startup, fill_constant, {"shape": shape, "value": value, "dtype": dtype}, name)
    return program.global_block().create_var(name, shape, dtype, persistable=True, stop_gradient=True)


class SGD(Optimizer):
    """Steps against the gradient; with `momentum`, those of `Momentum`."""

    definition = update.sgd

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        parameters: Iterable[Any] | None = None,
        weight_decay: float | None = None,
        name: str | None = None,
        momentum: float = 0.0,
    ):
        if momentum:
            self.definition, self.states = Momentum.definition, Momentum.states
        super().__init__(learning_rate, parameters, weight_decay, name, {"mu": float(momentum)} if momentum else {})


class Momentum(Optimizer):
    """Steps along a velocity that remembers earlier gradients."""

    definition = update.momentum
    states = MappingProxyType({"velocity": (True, 0.0)})

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        momentum: float = 0.9,
        parameters: Iterable[Any] | None = None,
        use_nesterov: bool = False,
        weight_decay: float | None = None,
        name: str | None = None,
    ):
        settings = {"mu": float(momentum), "use_nesterov": use_nesterov}
        super().__init__(learning_rate, parameters, weight_decay, name, settings)


class Adam(Optimizer):
    """Steps of a size that adapts to each element of a parameter."""

    definition = update.adam
    states = MappingProxyType(
        {
            "moment1": (True, 0.0),
            "moment2": (True, 0.0),
            "beta1_pow": (False, 1.0),
            "beta2_pow": (False, 1.0),
        }
    )

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameters: Iterable[Any] | None = None,
        weight_decay: float | None = None,
        name: str | None = None,
    ):
        settings = {"beta1": float(beta1), "beta2": float(beta2), "epsilon": float(epsilon)}
        super().__init__(learning_rate, parameters, weight_decay, name, settings)
