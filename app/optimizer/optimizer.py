"""The base class of optimisers. An optimiser is a `Rule` and settings: see `kinds.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from app.errors import AppError, ShapeError
from app.graph.defaults import default_startup_program
from app.graph.gradients import append_backward
from app.graph.program import OPTIMIZE, Program
from app.graph.variable import Variable
from app.nn.parameter import initialise
from app.ops.arithmetic import multiply
from app.ops.creation import fill_constant
from app.ops.definition import OpDef, apply
from app.ops.dtype import canonical, fitting
from app.ops.shaping import reshape
from app.optimizer.lr import LRScheduler
from app.tensor import Tensor, no_grad
from app.tensor.modes import modes

SCHEDULER = "LR_Scheduler"


class Rule(NamedTuple):
    """An update operator, and the state that it keeps for each parameter."""

    definition: OpDef
    states: Mapping[str, tuple[bool, float]] = MappingProxyType({})
    """For each state value: whether it has the parameter's shape (otherwise it is a scalar), and its initial value."""
    powers: Mapping[str, str] = MappingProxyType({})
    """Scalars of the state that each step multiplies by a setting before the operator reads them, with that setting."""


class RepeatedError(AppError, ValueError):
    """A parameter that is given to an optimiser more than once."""


class Optimizer:
    """The base class. In a Program, `minimize` appends the backward pass and the updates; eagerly, `step` updates.

    Args:
        learning_rate: A number or a schedule.
        parameters: The parameters. In a Program, by default all.
        weight_decay: The factor of the parameter that is added to its gradient (L2); in AdamW it is decoupled.
        grad_clip: How gradients are clipped, such as `nn.ClipGradByGlobalNorm(1.0)`.
        settings: The hyperparameters of a subclass.
    """

    rule: Rule

    def __init__(
        self,
        learning_rate: float | LRScheduler | Variable = 0.001,
        parameters: Iterable[Any] | None = None,
        weight_decay: float | None = None,
        grad_clip: Any = None,
        settings: Mapping[str, Any] | None = None,
    ):
        self._learning_rate = learning_rate
        self._settings: dict[str, Any] = {**self.rule.definition.attributes, **(settings or {})}
        if not isinstance(weight_decay, (int, float, type(None))):
            raise AppError(f"weight_decay is a number, not {weight_decay!r}")
        self._weight_decay, self._clip = float(weight_decay or 0.0), grad_clip
        self._parameters = None if parameters is None else parameters_of(parameters)
        """The parameters; None where they are those of a Program, which `minimize` finds."""
        self._memory: dict[int, list[Tensor]] = {}

    # The learning rate

    def get_lr(self) -> float:
        """The current learning rate."""
        rate = self._learning_rate
        if isinstance(rate, Variable):
            raise AppError(
                f"the learning rate is the Variable {rate.name}, whose value is known only at run time; fetch it"
            )
        return rate() if isinstance(rate, LRScheduler) else float(rate)

    def set_lr(self, value: float) -> None:
        """Set the learning rate for the next step, or the next run of the Program."""
        if isinstance(self._learning_rate, LRScheduler):
            raise AppError("the learning rate follows a schedule; set it by the schedule's step()")
        if isinstance(self._learning_rate, Variable):
            raise AppError(f"the learning rate is the Variable {self._learning_rate.name}; set that in the scope")
        self._learning_rate = value

    def set_lr_scheduler(self, scheduler: LRScheduler) -> None:
        """Set a schedule for the learning rate."""
        if not isinstance(scheduler, LRScheduler):
            raise AppError(f"set_lr_scheduler takes an LRScheduler, not {scheduler!r}")
        self._learning_rate = scheduler

    # One step, for Tensors and Variables alike

    def _step_one(self, parameter: Any, gradient: Any, learning_rate: Any, states: list[Any]) -> None:
        if self._weight_decay:
            gradient = gradient + parameter * self._weight_decay
        settings, rule = self._settings_of(parameter), self.rule
        for name, state in zip(rule.states, states, strict=True):
            if name in rule.powers:
                apply(multiply, [state, settings[rule.powers[name]]], {}, into=[state])
        changed = [parameter, *states][: len(rule.definition.outputs)]
        apply(rule.definition, [parameter, gradient, learning_rate, *states], settings, into=changed)

    def _settings_of(self, parameter: Any) -> dict[str, Any]:
        """The attributes of the operator for one parameter."""
        return self._settings

    def _clipped(self, pairs: Sequence[tuple[Any, Any]]) -> Sequence[tuple[Any, Any]]:
        return pairs if self._clip is None else self._clip(pairs)

    # Eagerly

    def step(self) -> None:
        """Update every parameter that has a gradient."""
        self._update()

    @no_grad()
    def _update(self, only: Container[int] | None = None) -> None:
        """Update the parameters that have a gradient or, of them, only those with these ids."""
        if self._parameters is None:
            raise AppError(f"{type(self).__name__} was made without parameters=; it has nothing to update")
        tracer = modes().tracer
        if tracer is None:
            self._check_gradients()
        moving = [p for p in self._parameters if not p.stop_gradient]
        pairs = [(p, p.grad) for p in moving if p.grad is not None and (only is None or id(p) in only)]
        if tracer is not None:
            pairs = [(p, tracer.gradient_of(p)) for p, _ in pairs]
        rates: dict[str, Any] = {}
        for parameter, gradient in self._clipped(pairs):
            dtype = remembered_as(parameter)
            if dtype not in rates:
                rates[dtype] = np.asarray(self.get_lr(), dtype) if tracer is None else tracer.rate(self, dtype)
            self._step_one(parameter, gradient, rates[dtype], self._states_of(parameter))

    def _check_gradients(self) -> None:
        """Raise an error, before anything is changed, if a gradient that a program has set does not fit."""
        for parameter in self._parameters or []:
            gradient = parameter.grad
            if gradient is not None and gradient._array.shape != parameter._array.shape:
                raise ShapeError(
                    f"{type(self).__name__}: the .grad of {parameter.name} has shape {list(gradient.shape)}, and the "
                    f"parameter {list(parameter.shape)}; set .grad to a Tensor of that shape, or to None"
                )

    def _states_of(self, parameter: Tensor) -> list[Tensor]:
        if id(parameter) not in self._memory:
            self._memory[id(parameter)] = [first_state(parameter, *state) for state in self.rule.states.values()]
        return self._memory[id(parameter)]

    def states_of(self, parameter: Tensor) -> dict[str, Tensor]:
        """The state of a parameter, by name."""
        return dict(zip(self.rule.states, self._states_of(parameter), strict=True))

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Set the gradients of all parameters to zero, or to None."""
        for parameter in self._parameters or []:
            parameter.clear_grad(set_to_zero)

    clear_gradients = clear_grad

    # State, for a file

    def _names_of_states(self, parameter: Any) -> list[str]:
        return [f"{parameter.name}_{state}_0" for state in self.rule.states]

    def _check_names(self) -> None:
        """Raise an error if two parameters of the optimiser have the same name."""
        names = Counter(p.name for p in self._parameters or [] if self.rule.states)
        repeated = [name for name, count in names.items() if count > 1]
        if repeated:
            raise AppError(
                f"{type(self).__name__}: two parameters are named {repeated[0]}, and a state dict could have the state "
                "of only one; give each a name of its own, as in parameter.name = 'other'"
            )

    def state_dict(self) -> dict[str, Any]:
        """The state of every parameter that was updated, and of the schedule."""
        state: dict[str, Any] = {}
        self._check_names()
        for parameter in self._parameters or []:
            if id(parameter) in self._memory:
                state.update(zip(self._names_of_states(parameter), self._memory[id(parameter)], strict=True))
        if isinstance(self._learning_rate, LRScheduler):
            state[SCHEDULER] = self._learning_rate.state_dict()
        return state

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load the state that `state_dict` returned. Parameters that had none then begin anew.

        If something does not fit, nothing is changed.
        """
        self._check_names()
        kind, parameters = type(self).__name__, self._parameters or []
        states = {name for p in parameters for name in self._names_of_states(p)}
        unknown = [name for name in state_dict if name not in states and name != SCHEDULER]
        if unknown:
            raise AppError(
                f"{kind}.set_state_dict: {', '.join(unknown)} belong to none of its parameters, "
                f"whose names are {', '.join(p.name for p in parameters) or 'none'}"
            )
        loaded = [(p, self._loaded_states(p, state_dict)) for p in parameters]
        schedule = state_dict.get(SCHEDULER)
        if schedule is not None and isinstance(self._learning_rate, LRScheduler):
            self._learning_rate.set_state_dict(schedule)
        for parameter, values in loaded:
            if values or id(parameter) in self._memory:
                new = values or [first_state(parameter, *state) for state in self.rule.states.values()]
                for remembered, value in zip(self._states_of(parameter), new, strict=True):
                    remembered.set_value(value)

    def _loaded_states(self, parameter: Any, state_dict: Mapping[str, Any]) -> list[Any]:
        """The states of a parameter in a state dict, in order; none if it has none of them."""
        names, label = self._names_of_states(parameter), f"{type(self).__name__}.set_state_dict: "
        missing = [name for name in names if name not in state_dict]
        if missing == names:
            return []
        if missing:
            raise AppError(f"{label}{', '.join(missing)} missing, of {', '.join(names)}; nothing was changed")
        arrays = []
        for name, (shaped, _) in zip(names, self.rule.states.values(), strict=True):
            shape, array = tuple(parameter.shape) if shaped else (), np.asarray(state_dict[name])
            if array.shape != shape and (shape or array.size != 1):
                raise ShapeError(
                    f"{label}{name} has shape {list(shape)}, the state dict has {list(array.shape)}; "
                    "nothing was changed"
                )
            arrays.append(fitting(label + name, array, remembered_as(parameter)).reshape(shape))
        return arrays

    # In a Program

    def minimize(
        self,
        loss: Any,
        startup_program: Program | None = None,
        parameters: Sequence[Any] | None = None,
        no_grad_set: Any = None,
    ) -> tuple[list[Any], list[tuple[Any, Any]]]:
        """Minimise a loss: append the updates to its Program or, for a Tensor whose backward() has run, make a step.

        Only `parameters` are changed, by default those of the optimiser, and none of `no_grad_set`.
        """
        if isinstance(loss, Tensor) or modes().tracer is not None:
            chosen = self._chosen(parameters, no_grad_set)
            self._update({id(p) for p in chosen})
            return [], [(p, p.grad) for p in chosen]
        pairs = self.backward(loss, parameters, no_grad_set)
        return self.apply_gradients(pairs, startup_program), pairs

    def backward(
        self,
        loss: Any,
        parameters: Sequence[Any] | None = None,
        no_grad_set: Any = None,
    ) -> list[tuple[Any, Any]]:
        """Append, or run, the backward pass of a loss. Returns each parameter with its gradient."""
        if isinstance(loss, Tensor) or modes().tracer is not None:
            loss.backward()
            return [(p, p.grad) for p in self._chosen(parameters, no_grad_set) if p.grad is not None]
        return append_backward(loss, parameters or self._parameters, no_grad_set)

    def _chosen(self, parameters: Sequence[Any] | None, no_grad_set: Any) -> list[Any]:
        """The parameters of this optimiser among those given, without those of `no_grad_set`, Tensors or names."""
        own, chosen = self._parameters or [], [id(p) for p in parameters or ()]
        without = {p if isinstance(p, str) else p.name for p in no_grad_set or ()}
        strange = [] if self._parameters is None else [p for p in parameters or () if not any(p is o for o in own)]
        if strange:
            raise AppError(f"{type(self).__name__}: {strange[0].name} is none of the parameters that it was made with")
        return [p for p in own if (not chosen or id(p) in chosen) and not (without and p.name in without)]

    def apply_gradients(
        self, params_grads: Sequence[tuple[Any, Any]], startup_program: Program | None = None
    ) -> list[Any]:
        """Append the updates of parameters to the Program of their gradients. Returns the operators."""
        if not params_grads:
            raise AppError("there is no trainable parameter that the loss depends on")
        if isinstance(params_grads[0][0], Tensor):
            raise AppError("apply_gradients changes a Program; gradients of Tensors are in their .grad, call step()")
        startup = startup_program or default_startup_program()
        program: Program = params_grads[0][0].program
        before = len(program.global_block().ops)
        with program.appending(OPTIMIZE):
            rates = {
                dtype: self._rate_variable(program, startup, dtype)
                for dtype in dict.fromkeys(remembered_as(parameter) for parameter, _ in params_grads)
            }
            for parameter, gradient in self._clipped(params_grads):
                rate = rates[remembered_as(parameter)]
                self._step_one(parameter, gradient, rate, self._program_states(parameter, startup))
        return program.global_block().ops[before:]

    def _rate_variable(self, program: Program, startup: Program, dtype: str) -> Variable:
        rate = self._learning_rate
        if isinstance(rate, Variable):
            if rate.program is not program:
                raise AppError(f"the learning rate {rate.name} is a Variable of another Program than the loss")
            number: Variable = rate if not rate.shape else reshape(rate, [])
            return number if number.dtype == dtype else number.astype(dtype)
        name = program.global_block().new_name("learning_rate")
        variable = _persistable(program, startup, name, (), dtype, self.get_lr())
        program.schedulers[variable.name] = self
        return variable

    def _program_states(self, parameter: Variable, startup: Program) -> list[Variable]:
        return [
            _persistable(
                parameter.program,
                startup,
                parameter.block.new_name(f"{parameter.name}_{state}"),
                parameter.shape if shaped else (),
                remembered_as(parameter),
                value,
            )
            for state, (shaped, value) in self.rule.states.items()
        ]


def parameters_of(parameters: Iterable[Any]) -> list[Any]:
    """The parameters as a list, each once, as a step would change a repeated one twice."""
    if not isinstance(parameters, Iterable) or hasattr(parameters, "dtype"):
        raise AppError("parameters= takes a list of parameters, such as network.parameters(), not a single one")
    listed = list(parameters)
    for parameter in listed:
        if isinstance(parameter, Mapping):
            raise AppError(
                f"parameters= takes a list of parameters, found a dictionary with {', '.join(map(repr, parameter))}; "
                "where some have other settings, make an optimizer for them"
            )
    for number, parameter in enumerate(listed):
        if any(parameter is other for other in listed[:number]):
            raise RepeatedError(
                f"the parameter {parameter.name} of shape {list(parameter.shape)} appears more than once in the "
                "parameters of an optimizer, and each step would change it as often; give it once"
            )
    return listed


def first_state(parameter: Tensor, shaped: bool, value: float) -> Tensor:
    """The initial state of a parameter: a Tensor of its shape, or a scalar."""
    array = np.full(tuple(parameter.shape) if shaped else (), value, remembered_as(parameter))
    return Tensor(array)


def remembered_as(parameter: Any) -> str:
    """The element type of a parameter's state. Half precision would lose small numbers."""
    dtype = canonical(parameter.dtype)
    return "float32" if dtype == "float16" else dtype


def _persistable(
    program: Program, startup: Program, name: str, shape: tuple[int, ...], dtype: str, value: float
) -> Variable:
    initialise(startup, fill_constant, {"shape": shape, "value": value, "dtype": dtype}, name)
    return program.global_block().create_var(name, shape, dtype, persistable=True, stop_gradient=True)
