"""The class of `Function` that runs an operator of another framework: on Tensors, and in Programs.

Forward runs the framework with gradients on and keeps its graph; backward pulls through that graph. Running forward
once more in backward would hide every mistake with what an operator saves.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, ClassVar

import numpy as np

from app.bridge.framework import Call, Framework, Run
from app.custom import Function
from app.custom.calling import ReturnedError, call_function, infer_by_running, summary_of
from app.custom.foreign import operator_of_framework
from app.custom.operator import CustomOperator, Origin, makes
from app.custom.pylayer.operator import values_among
from app.errors import OperatorError
from app.graph.variable import Variable
from app.ops.definition import OpDef, apply
from app.ops.dtype import NAMES
from app.ops.methods import ValueMethods
from app.ops.spec import Spec
from app.reading import place_of
from app.tensor import Tensor, is_grad_enabled
from app.tensor.tape import note_change

POSITIONAL, KEYWORD = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
IN_PLACE = "it changes an input in place: give a function that calls it with a copy, as of x in f(x.clone())"
_NUMBERS = (int, float, bool, str, "int", "float", "bool", "str", "SymInt", "number")


@dataclass(frozen=True)
class Foreign:
    """An operator of another framework: a function of its tensors, and its parameters."""

    name: str
    kind: str
    framework: Framework
    call: Call
    signature: tuple[inspect.Parameter, ...]
    """The parameters of `call`, in order."""
    thing: Any
    """What the user wrote, as it is called and has a name."""
    functions: tuple[Any, ...]
    """The functions and classes whose source decides what it computes, its own first; none if they are not known."""
    backward: str = ""
    """Its backward function, as in messages: `backward (theirs.py:9)`."""
    is_definite: bool = True
    """Whether it can be nothing else: a plain function that uses a framework may be a helper."""
    has_backward: bool = True
    filled: Callable[[Sequence[Any]], tuple[list[Any], dict[str, Any]]] | None = None
    """Gives the arguments of an example call, with other tensors."""
    state: Callable[[], list[np.ndarray]] | None = None
    """Gives the numbers that it keeps between calls, as the buffers of a module, sharing their memory."""
    is_gradient: bool = False
    """Whether it is the backward pass of another one, which has second derivatives if the framework has them."""

    @property
    def home(self) -> str:
        """The name of the module that defines it."""
        return str(self.functions[0].__module__) if self.functions else ""

    @property
    def where(self) -> str:
        """The line at which it is written."""
        return place_of(getattr(self.functions[0], "forward", self.functions[0])) if self.functions else ""

    @property
    def parameters(self) -> tuple[inspect.Parameter, ...]:
        """The parameters as checks see them: one that is annotated as a number is a setting, even without a default."""
        return tuple(p.replace(kind=KEYWORD) if _is_setting(p) else p for p in self.signature)

    def of_tensors(self, settings: dict[str, Any]) -> Call:
        """The operator as a function of its tensors alone."""

        def call(*tensors: Any) -> Any:
            args, kwargs = self.arguments(tensors, settings)
            return self.call(*args, **kwargs)

        return call

    def arguments(self, tensors: Sequence[Any], settings: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call, by position and by name; settings go to their parameters."""
        if self.filled is not None:
            return self.filled(tensors)
        rest, args, kwargs = list(tensors), [], {}
        for p in self.signature:
            if p.kind is KEYWORD:
                if p.name in settings:
                    kwargs[p.name] = settings[p.name]
            elif p.name in settings:
                args.append(settings[p.name])
            elif p.kind is p.VAR_POSITIONAL:
                args, rest = [*args, *rest], []
            elif rest and not _is_setting(p):
                args.append(rest.pop(0))
            elif p.default is not p.empty:
                args.append(p.default)
        return args, kwargs


def _is_setting(p: inspect.Parameter) -> bool:
    return p.default is p.empty and p.annotation in _NUMBERS and p.kind is POSITIONAL


def _tensors_skip(p: inspect.Parameter) -> bool:
    """Whether Tensors by position skip a parameter that is given by name, as `slope` in `f(x, slope: float, y)`."""
    return _is_setting(p) or p.default is not p.empty


def _check_arguments(foreign: Foreign, tensors: int, settings: Mapping[str, Any]) -> None:
    """Raise an error for arguments for which an operator has no parameter."""
    free = [p for p in foreign.signature if p.kind is not KEYWORD and p.name not in settings and not _is_setting(p)]
    if tensors > len(free) and not any(p.kind is p.VAR_POSITIONAL for p in free):
        raise OperatorError(f"{foreign.name}: {tensors} Tensors are given, and it takes {len(free)} by position")
    names = [p.name for p in foreign.signature]
    for name, setting in settings.items():
        if name not in names:
            raise OperatorError(f"{foreign.name}: it has no parameter {name}; those that it has are {', '.join(names)}")
        if values_among([setting]):
            raise OperatorError(
                f"{foreign.name}: {name} is a Tensor that is given by name or in a list, in which "
                f"{foreign.framework.name} cannot take it: give each Tensor by its position"
            )


class ForeignFunction(Function):
    """An operator of another framework. Call its `apply`."""

    foreign: ClassVar[Foreign]

    @classmethod
    def apply(cls, /, *args: Any, **settings: Any) -> Any:
        """Run the operator on Tensors, or append it to the Program of Variables."""
        values, settings = cls._parted(args, settings)
        if any(isinstance(v, Variable) for v in values):
            return _append(cls, values, settings)
        return super().apply(*values, **settings)

    @classmethod
    def _parted(cls, args: Sequence[Any], settings: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Values, and settings by the names of their parameters."""
        foreign = cls.foreign
        by_position = [p for p in foreign.signature if p.kind is not KEYWORD]
        values, named = [], dict(settings)
        for place, argument in enumerate(args):
            p = by_position[place] if place < len(by_position) else None
            is_tensor = isinstance(argument, (ValueMethods, np.ndarray))
            if p is not None and p.name in settings and not (is_tensor and _tensors_skip(p)):
                raise OperatorError(f"{foreign.name}: {p.name} is given by position and by name")
            if is_tensor:
                values.append(argument if isinstance(argument, ValueMethods) else Tensor(argument))
            elif p is None or p.kind is p.VAR_POSITIONAL:
                raise OperatorError(f"{foreign.name}: argument {place} is {argument!r}, expected a Tensor")
            else:
                named[p.name] = argument
        _check_arguments(foreign, len(values), named)
        return values, named

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor, **settings: Any) -> Any:
        raise NotImplementedError  # `class_of` defines it


def class_of(foreign: Foreign) -> type[ForeignFunction]:
    """The class of Function that runs an operator of another framework."""
    framework = foreign.framework

    def forward(ctx: Any, *tensors: Tensor, **settings: Any) -> Any:
        arrays = [t._array for t in tensors]
        ctx.call = foreign.of_tensors(settings)
        ctx.wants = wants_of(foreign, arrays, [not t.stop_gradient for t in tensors])
        ctx.run = run = framework.run(ctx.call, arrays, ctx.wants)
        for place in run.changed:
            note_change(arrays[place])
        if not run.outputs:
            raise ReturnedError(f"it returned no tensor of {framework.name}: does it end with `return`?")
        unknown = next((o.dtype.name for o in run.outputs if o.dtype.name not in NAMES), "")
        if unknown:
            raise OperatorError(f"{foreign.name} returned a tensor of {unknown}, which cannot be checked")
        ctx.save_for_backward(*tensors)
        outputs = [Tensor(o.copy()) for o in run.outputs]  # the framework may have saved its own, or return an input
        ctx.mark_non_differentiable(*(o for o, has in zip(outputs, run.differentiable, strict=True) if not has))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def backward(ctx: Any, *arriving: Tensor) -> Any:
        inputs = ctx.saved_tensor()  # which refuses inputs that were changed in place
        flowing = [d for d, has in zip(arriving, ctx.run.differentiable, strict=True) if has]
        if is_grad_enabled():  # the gradient will be differentiated: it is an operator, too
            results = _gradient_operator(foreign, ctx.call, ctx.wants).apply(*inputs, *flowing)
            gradients = iter(results if isinstance(results, tuple) else (results,))
        else:
            try:
                pulled = ctx.run.pull([d._array for d in flowing])
            except Exception as error:
                if not foreign.is_gradient:
                    raise
                raise OperatorError(f"{foreign.name}: {summary_of(error)}") from error  # no second derivative
            gradients = iter([None if g is None else Tensor(g) for g in pulled])
        return tuple(next(gradients) if needed else None for needed in ctx.wants)

    members = {
        "forward": staticmethod(forward),
        "backward": staticmethod(backward),
        "foreign": foreign,
        "like": getattr(foreign.thing, "like", ""),
        "surrogate": bool(getattr(foreign.thing, "surrogate", False)),
        "__module__": foreign.home or __name__,
    }
    cls: Any = type(foreign.name, (ForeignFunction,), members)
    cls._where = foreign.where
    return cls


def wants_of(foreign: Foreign, arrays: Sequence[np.ndarray], needs: Sequence[bool]) -> list[bool]:
    """For each input whether the framework is asked for its gradient."""
    return [foreign.has_backward and needed and a.dtype.kind == "f" for a, needed in zip(arrays, needs, strict=True)]


def _gradient_operator(foreign: Foreign, call: Call, wants: list[bool]) -> type[ForeignFunction]:
    """The backward pass as an operator, whose own backward gives second derivatives."""
    name = f"{foreign.name}_grad"

    def pull(*values: Any) -> Any:
        return _run_again(foreign, foreign.framework.pullback(call, len(wants), wants), *values)

    parameter = inspect.Parameter("values", inspect.Parameter.VAR_POSITIONAL)
    gradient = replace(foreign, name=name, call=pull, signature=(parameter,), filled=None, is_gradient=True)
    return class_of(gradient)


def _run_again(foreign: Foreign, function: Callable[..., Any], *values: Any) -> Any:
    """What a function gives that runs forward again. Random numbers would be others than in the first run."""
    before = foreign.framework.random_state()
    result = function(*values)
    if foreign.framework.random_state() != before:
        raise OperatorError(
            f"{foreign.name} draws random numbers, and would draw others where forward runs again for this gradient: "
            "draw them outside, and give them to it as an input"
        )
    return result


# In a Program


def _append(cls: type[ForeignFunction], values: Sequence[Any], settings: dict[str, Any]) -> Any:
    """Append the operator to the Program of its Variables; gives the Variables of its outputs."""
    if not all(isinstance(v, Variable) for v in values):
        raise OperatorError(
            f"{cls.foreign.name}: a Tensor and a Variable were mixed in one apply; a Tensor has a value now, a "
            "Variable only when its Program runs"
        )
    needs = [not v.stop_gradient for v in values]
    definition, differentiable = _definition(cls, needs, settings, [v.spec for v in values])
    *results, _ = apply(definition, values, {})
    for variable, has in zip(results, differentiable, strict=True):
        variable.stop_gradient = variable.stop_gradient or not has
    return results[0] if len(results) == 1 else tuple(results)


class _Last:
    """The last forward pass of an operator in a Program, with its number."""

    def __init__(self) -> None:
        self.current = 0, Run([], [], lambda arriving: [])  # one object, as threads may share a Program
        self.numbers = count(1)


def _definition(
    cls: type[ForeignFunction],
    needs: Sequence[bool],
    settings: dict[str, Any],
    inputs: Sequence[Spec],
    outs: Sequence[Spec] = (),
    repeatable: bool = True,
) -> tuple[OpDef, Sequence[bool]]:
    """The operator in a Program, and which of its outputs have a gradient. In one that was saved, `outs` and
    `repeatable` are known; else forward runs once.

    Forward gives the number of its pass as a last output, by which backward finds the framework's graph. If another
    pass came between, backward runs forward again.
    """
    foreign = cls.foreign
    call = foreign.of_tensors(settings)
    last = _Last()
    differentiable: list[bool] = []

    def run(arrays: Sequence[np.ndarray]) -> Run:
        wants = wants_of(foreign, arrays, needs)
        # copies, because an engine may reuse the memory of inputs and because the framework could write into it
        one = foreign.framework.run(call, [np.array(a) for a in arrays], wants)
        if one.changed:
            raise ReturnedError(IN_PLACE)
        return one

    def forward(*arrays: np.ndarray) -> Any:
        one = call_function(run, f"operator {foreign.name} ({foreign.where})", (arrays,), {})
        number = next(last.numbers)
        last.current = number, one
        differentiable[:] = one.differentiable
        return (*(o.copy() for o in one.outputs), np.array(number))

    def backward(*values: Any) -> Any:
        arrays, number, arriving = values[: len(needs)], values[len(needs)], values[len(needs) + 1 :]
        latest, one = last.current
        if number != latest:
            one = _run_again(foreign, run, arrays)
        pulled = iter(one.pull([np.array(d) for d, has in zip(arriving, one.differentiable, strict=True) if has]))
        gradients = [next(pulled) if needed else None for needed in wants_of(foreign, arrays, needs)]
        return gradients[0] if len(gradients) == 1 else tuple(gradients)

    before = foreign.framework.random_state()
    with _state_kept(foreign):
        specs = tuple(outs) or infer_by_running(lambda *arrays: forward(*arrays)[:-1], inputs)
    names = [p.name for p in foreign.signature if p.name not in settings][: len(needs)]
    definition = CustomOperator(
        foreign.name,
        foreign.thing,
        forward,
        lambda *_: (*specs, Spec((), "int64")),
        inputs=names if len(names) == len(needs) else [f"x{i}" for i in range(len(needs))],
        outputs=[*(f"out{i}" for i in range(len(specs))), "number"],
        like=cls.like,
        where=foreign.where,
    )
    definition.surrogate = cls.surrogate
    definition.repeatable = repeatable and foreign.framework.random_state() == before
    plain = {
        "settings": tuple(settings.items()),
        "needs": tuple(needs),
        "outs": specs,
        "repeatable": definition.repeatable,
    }
    definition.origin = Origin("bridge", {"operator": foreign.thing}, plain)
    if any(needs) and foreign.has_backward:
        takes = [("input", i) for i in range(len(needs))] + [("output", len(specs))]
        takes += [("dout", i) for i in range(len(specs))]
        definition.differentiate_by(backward, takes)
    return definition, differentiable


@contextmanager
def _state_kept(foreign: Foreign) -> Iterator[None]:
    """Inside, forward may run on examples: it is an error if that changes what the operator keeps between calls."""
    state = [] if foreign.state is None else foreign.state()
    before = [array.copy() for array in state]
    try:
        yield
    finally:
        is_changed = any(not np.array_equal(a, b, equal_nan=True) for a, b in zip(state, before, strict=True))
        for array, kept in zip(state, before, strict=True):
            array[...] = kept
    if is_changed:
        raise OperatorError(
            f"{foreign.name} changes its buffers in every forward pass, and a Program may run forward more often than "
            "the network is called: call eval() first, or use it on Tensors"
        )


@makes("bridge")
def _again(functions: Mapping[str, Any], settings: Mapping[str, Any], where: str) -> OpDef:
    """The operator in a Program that was saved."""
    operator = operator_of_framework(functions["operator"])
    if operator is None:
        raise OperatorError(f"{where}: {functions['operator']!r} was found, expected an operator of another framework")
    needs = [True] * len(settings["needs"])  # a loaded layer may be differentiated by what was data when it was saved
    of_call = dict(settings["settings"])
    return _definition(operator, needs, of_call, (), settings["outs"], settings["repeatable"])[0]
