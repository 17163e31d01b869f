"""The base class of optimisers. An optimiser is a `Rule` and settings: see `kinds.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from app.errors import AppError, ShapeError
from app.graph.defaults import default_startup_program
from app.graph.gradients import append_backward
from app.graph.program import OPTIMIZE, Program
from app.graph.variable import Variable
from app.nn.parameter import initialise
from app.ops.arithmetic import multiply
from app.ops.creation import fill_constant
from app.ops.definition import apply
from app.ops.dtype import canonical, fitting
from app.ops.shaping import reshape
from app.optimizer.groups import Group, Rule, as_regularizer, groups_of
from app.optimizer.lr import LRScheduler
from app.tensor import Tensor, no_grad
from app.tensor.modes import modes

SCHEDULER = "LR_Scheduler"


class Optimizer:
    """The base class. In a Program, `minimize` appends the backward pass and the updates; eagerly, `step` updates.

    Args:
        learning_rate: A number or a schedule.
        parameters: The parameters, or dictionaries of groups with their own settings. In a Program, by default all.
        weight_decay: A number (L2, or decoupled in AdamW) or a regularizer.
        grad_clip: How gradients are clipped, such as `nn.ClipGradByGlobalNorm(1.0)`.
        name: No effect.
        settings: The hyperparameters of a subclass.
    """

    rule: Rule

    def __init__(
        self,
        learning_rate: float | LRScheduler | Variable = 0.001,
        parameters: Iterable[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ):
        self._learning_rate = learning_rate
        attributes = {**self.rule.definition.attributes, **(settings or {})}
        self.default = Group([], self.rule, 1.0, weight_decay, grad_clip, attributes)
        """The settings of parameters without a group."""
        self.groups = groups_of(parameters, self.default)
        """The parameters; None where they are those of a Program, which `minimize` finds."""
        self._memory: dict[int, list[Tensor]] = {}

    @property
    def _parameter_list(self) -> list[Any] | None:
        return None if self.groups is None else [p for group in self.groups for p in group.params]

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

    def _step_one(self, group: Group, parameter: Any, gradient: Any, learning_rate: Any, states: list[Any]) -> None:
        gradient = self._regularized(group, parameter, gradient)
        settings = self._settings_of(group, parameter)
        rule = group.rule
        for name, state in zip(rule.states, states, strict=True):
            if name in rule.powers:
                apply(multiply, [state, settings[rule.powers[name]]], {}, into=[state])
        changed = [parameter, *states][: len(rule.definition.outputs)]
        apply(rule.definition, [parameter, gradient, learning_rate, *states], settings, into=changed)

    def _regularized(self, group: Group, parameter: Any, gradient: Any) -> Any:
        """The gradient plus that of the regularizer of the parameter or, without one, of its group."""
        own = None if group.replaces else own_regularizer(parameter)
        if own is None and group.weight_decay is None:
            return gradient
        regularizer = as_regularizer(group.weight_decay) if own is None else own
        return gradient if regularizer is None else gradient + regularizer.penalty_gradient(parameter)

    def _settings_of(self, group: Group, parameter: Any) -> dict[str, Any]:
        """The attributes of the operator for one parameter."""
        return group.settings

    def _factor(self, group: Group, parameter: Any) -> float:
        """A factor of the learning rate for one parameter."""
        attr = None if group.replaces else getattr(parameter, "attr", None)
        return group.learning_rate * (1.0 if attr is None else float(attr.learning_rate))

    def _rate(self, group: Group, parameter: Any) -> tuple[Any, float]:
        """The object whose `get_lr()` is the learning rate of a parameter, and a factor of it."""
        return self, self._factor(group, parameter)

    # Eagerly

    def step(self) -> None:
        """Update every parameter that has a gradient."""
        self._update()

    @no_grad()
    def _update(self, only: Container[int] | None = None) -> None:
        """Update the parameters that have a gradient or, of them, only those with these ids."""
        if self.groups is None:
            raise AppError(f"{type(self).__name__} was made without parameters=; it has nothing to update")
        tracer = modes().tracer
        if tracer is None:
            self._check_gradients()
        rates: dict[tuple[int, float, str], Any] = {}
        for group in self.groups:
            moving = [p for p in group.params if not p.stop_gradient]
            pairs = [(p, p.grad) for p in moving if p.grad is not None and (only is None or id(p) in only)]
            if tracer is not None:
                pairs = [(p, tracer.gradient_of(p)) for p, _ in pairs]
            for parameter, gradient in pairs if group.grad_clip is None else group.grad_clip(pairs):
                source, factor = self._rate(group, parameter)
                key = id(source), factor, parameter.dtype
                rate = rates.get(key)
                if rate is None:
                    dtype = remembered_as(parameter)
                    rate = (
                        np.asarray(source.get_lr() * factor, dtype)
                        if tracer is None
                        else tracer.rate(source, factor, dtype)
                    )
                    rates[key] = rate
                self._step_one(group, parameter, gradient, rate, self._states_of(parameter, group))

    def _check_gradients(self) -> None:
        """Raise an error, before anything is changed, if a gradient that a program has set does not fit."""
        for parameter in self._parameter_list or []:
            gradient = parameter.grad
            if gradient is not None and gradient._array.shape != parameter._array.shape:
                raise ShapeError(
                    f"{type(self).__name__}: the .grad of {parameter.name} has shape {list(gradient.shape)}, and the "
                    f"parameter {list(parameter.shape)}; set .grad to a Tensor of that shape, or to None"
                )

    def _states_of(self, parameter: Tensor, group: Group) -> list[Tensor]:
        if id(parameter) not in self._memory:
            self._memory[id(parameter)] = [first_state(parameter, *state) for state in group.rule.states.values()]
        return self._memory[id(parameter)]

    def states_of(self, parameter: Tensor) -> dict[str, Tensor]:
        """The state of a parameter, by name."""
        return dict(zip(self.rule.states, self._states_of(parameter, self.default), strict=True))

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Set the gradients of all parameters to zero, or to None."""
        for parameter in self._parameter_list or []:
            parameter.clear_grad(set_to_zero)

    clear_gradients = clear_grad

    # State, for a file

    def _names_of_states(self, parameter: Any) -> list[str]:
        return [f"{parameter.name}_{state}_0" for state in self.rule.states]

    def _check_names(self) -> None:
        """Raise an error if two parameters of the optimiser have the same name."""
        names = Counter(p.name for p in self._parameter_list or [] if self.rule.states)
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
        for parameter in self._parameter_list or []:
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
        kind, parameters = type(self).__name__, self._parameter_list or []
        known = {name for p in parameters for name in self._names_of_states(p)}
        unknown = [name for name in state_dict if name not in known and name != SCHEDULER]
        if unknown:
            raise AppError(
                f"{kind}.set_state_dict: {', '.join(unknown)} belong to none of its parameters, "
                f"whose names are {', '.join(p.name for p in parameters) or 'none'}"
            )
        loaded = [(p, self._found_states(p, state_dict)) for p in parameters]
        schedule = state_dict.get(SCHEDULER)
        if schedule is not None and isinstance(self._learning_rate, LRScheduler):
            self._learning_rate.set_state_dict(schedule)
        for parameter, values in loaded:
            if values or id(parameter) in self._memory:
                new = values or [first_state(parameter, *state) for state in self.rule.states.values()]
                for remembered, value in zip(self._states_of(parameter, self.default), new, strict=True):
                    remembered.set_value(value)

    def _found_states(self, parameter: Any, state_dict: Mapping[str, Any]) -> list[Any]:
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
        if isinstance(loss, Tensor):
            chosen = self._chosen(parameters, no_grad_set)
            self._update({id(p) for p in chosen})
            return [], [(p, p.grad) for p in chosen]
        pairs = self.backward(loss, startup_program, parameters, no_grad_set)
        return self.apply_gradients(pairs, startup_program), pairs

    def backward(
        self,
        loss: Any,
        startup_program: Program | None = None,
        parameters: Sequence[Any] | None = None,
        no_grad_set: Any = None,
        callbacks: Any = None,
    ) -> list[tuple[Any, Any]]:
        """Append, or run, the backward pass of a loss. Returns each parameter with its gradient."""
        if isinstance(loss, Tensor):
            loss.backward()
            return [(p, p.grad) for p in self._chosen(parameters, no_grad_set) if p.grad is not None]
        return append_backward(loss, parameters or self._parameter_list, no_grad_set)

    def _chosen(self, parameters: Sequence[Any] | None, no_grad_set: Any) -> list[Any]:
        """The parameters of this optimiser among those given, without those of `no_grad_set`, Tensors or names."""
        own, wanted = self._parameter_list or [], [id(p) for p in parameters or ()]
        without = {p if isinstance(p, str) else p.name for p in no_grad_set or ()}
        strange = [] if self.groups is None else [p for p in parameters or () if not any(p is o for o in own)]
        if strange:
            raise AppError(f"{type(self).__name__}: {strange[0].name} is none of the parameters that it was made with")
        return [p for p in own if (not wanted or id(p) in wanted) and not (without and p.name in without)]

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
            rate = self._rate_variable(program, startup, remembered_as(params_grads[0][0]))
            for group, pairs in self._grouped(params_grads):
                for parameter, gradient in pairs if group.grad_clip is None else group.grad_clip(pairs):
                    factor = self._factor(group, parameter)
                    here = rate if factor == 1.0 else rate * factor
                    self._step_one(group, parameter, gradient, here, self._program_states(parameter, startup))
        return program.global_block().ops[before:]

    def _grouped(self, params_grads: Sequence[tuple[Any, Any]]) -> list[tuple[Group, list[tuple[Any, Any]]]]:
        """The pairs of each group. Parameters of no group have the default settings."""
        groups = self.groups or [self.default]
        group_of = {getattr(p, "name", p): group for group in groups for p in group.params}
        found: dict[int, tuple[Group, list[tuple[Any, Any]]]] = {}
        for parameter, gradient in params_grads:
            group = group_of.get(parameter.name, self.default)
            found.setdefault(id(group), (group, []))[1].append((parameter, gradient))
        return list(found.values())

    def _rate_variable(self, program: Program, startup: Program, dtype: str) -> Variable:
        given = self._learning_rate
        if isinstance(given, Variable):
            if given.program is not program:
                raise AppError(f"the learning rate {given.name} is a Variable of another Program than the loss")
            number: Variable = given if not given.shape else reshape(given, [])
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


def own_regularizer(parameter: Any) -> Any:
    """The regularizer of the parameter's ParamAttr, or None."""
    return getattr(getattr(parameter, "attr", None), "regularizer", None)


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
