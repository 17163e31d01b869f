"""The operators that a word names: `my_ops.py`, `my_ops.py:swish`, `package.ops:swish`, `custom.relu`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from app.bridge.function import Foreign, ForeignFunction
from app.checking.layer import LayerAsOperator
from app.checking.undisturbed import PythonProcess
from app.custom import Function, PyLayer
from app.custom.foreign import operator_of_framework
from app.custom.lookup import OF_FILES, make_operator, module_at, parted, resolve, split_settings
from app.custom.operator import CustomOperator, home_of
from app.custom.pylayer import sets_up_context
from app.errors import ConfigError
from app.functions import is_compiled
from app.nn import Layer, functional
from app.ops.definition import REGISTRY, OpDef
from app.reading import parameters_of, place_of


@dataclass(frozen=True)
class UserOperator:
    """An operator as its user calls it, and what it declares."""

    name: str
    kind: str
    """The name of the hook that made it, as it is printed."""
    call: Callable[..., Any]
    parameters: tuple[inspect.Parameter, ...]
    where: str = ""
    like: str = ""
    elementwise: bool = False
    row_by_row: bool = False
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """The fixed shapes of inputs: of the parameters of a Layer."""
    surrogate: bool = False
    foreign: Foreign | None = None
    """The operator of another framework that it runs."""

    @cached_property
    def python_process(self) -> PythonProcess:
        """Where its Numba functions run as Python."""
        return PythonProcess(self)

    @property
    def label(self) -> str:
        return f"{self.name}  {self.kind}" + (f", {self.where}" if self.where else "")


def find(word: str) -> list[UserOperator]:
    """The operators that a word names; a ConfigError if there are none."""
    home, name = parted(word)
    is_of_module = name is not None and all(step.isidentifier() for step in home.split("."))
    if word.startswith("custom.") or word in REGISTRY or is_of_module or (name is not None and home.endswith(".py")):
        return [user_operator(resolve(word), word if name is None else name)]
    if not home.endswith(".py"):
        meant = f"did you mean {word}.py? Give" if Path(f"{word}.py").is_file() else "give"
        raise ConfigError(
            f"{word!r} names no operator: {meant} file.py, file.py:name, module:name, custom.relu or a built-in one"
        )
    module = module_at(home, as_it_is_now=True)
    operators = all_of(module)
    if not operators:
        for name, value in vars(module).items():
            if isinstance(value, type) and value.__module__ == module.__name__:
                _refuse_without_base(value, name)
        raise ConfigError(
            f"{home} defines no custom operator: what @custom_op makes, a PyLayer or Function, or a function that "
            "calls py_func, nor one of PyTorch, JAX or Paddle; name one that looks different as file.py:name"
        )
    return operators


def _refuse_without_base(value: Any, name: str) -> None:
    """Refuse a class that has the methods of an operator and not the base class."""
    forward = getattr(value, "forward", None)
    if isinstance(value, type) and callable(forward) and hasattr(value, "backward"):
        raise ConfigError(
            f"{name} ({place_of(forward)}) has forward and backward, and is no operator, as its base class is "
            f"missing: write class {name}(torch.autograd.Function), or that of another framework"
        )


def all_of(module: ModuleType) -> list[UserOperator]:
    """Every custom operator that a module defines, in order."""
    operators: dict[int, UserOperator] = {}
    for name, value in vars(module).items():
        if not name.startswith("_") and id(value) not in operators and _is_operator(value, module):
            operators[id(value)] = user_operator(value, name)
    return list(operators.values())


def _is_operator(value: Any, module: ModuleType) -> bool:
    operator = operator_of_framework(value)
    if operator is not None:
        return operator.foreign.is_definite and operator.foreign.home == module.__name__
    home = home_of(value)
    if home != module.__name__:  # it is imported, or made here of a function from elsewhere or of a partial
        if not (isinstance(value, CustomOperator) and value.where.startswith(f"{Path(str(module.__file__)).name}:")):
            return False
        return all(value is not other for other in vars(sys.modules.get(home, module)).values())
    if isinstance(value, type):
        return issubclass(value, PyLayer)
    return isinstance(value, CustomOperator) or (
        isinstance(value, FunctionType) and "py_func" in value.__code__.co_names
    )


def user_operator(value: Any, name: str) -> UserOperator:
    """Describe one operator: made by any hook, or a function that applies one."""
    short = name.removeprefix(OF_FILES)
    value = operator_of_framework(value) or value
    if isinstance(value, CustomOperator):
        elementwise = value.elementwise
        kind = "custom_op, elementwise" if elementwise else "custom_op"
        parameters = _of_definition(value)
        return UserOperator(short, kind, value, parameters, value.where, value.like, elementwise, value.row_by_row)
    if isinstance(value, OpDef):
        return UserOperator(short, "built in", value, _of_definition(value))
    if isinstance(value, type) and issubclass(value, ForeignFunction):
        one = value.foreign
        return UserOperator(
            short, one.kind, value.apply, one.parameters, one.where, value.like, surrogate=value.surrogate, foreign=one
        )
    if isinstance(value, type) and issubclass(value, PyLayer):
        kind = "Function" if issubclass(value, Function) else "PyLayer"
        return UserOperator(short, kind, value.apply, _of_layer(value), value._where, value.like)
    if isinstance(value, Layer) or (isinstance(value, type) and issubclass(value, Layer)):
        layer = LayerAsOperator(value, short)
        return UserOperator(short, "Layer", layer, layer.parameters, place_of(layer.layer.forward), shapes=layer.shapes)
    if not callable(value):
        raise ConfigError(f"{name} is {type(value).__name__}, expected an operator or a function that applies one")
    _refuse_without_base(value, name)
    _refuse_around_another(value, short)
    if is_compiled(value) or isinstance(value, type):
        raise ConfigError(
            f"{name} works on arrays and is not an operator: make it one with @opsmith.custom_op or py_func"
        )
    return UserOperator(
        short, "py_func" if _uses_py_func(value) else "function", value, _of_function(value), place_of(value)
    )


def _refuse_around_another(value: Any, name: str) -> None:
    """Refuse a partial, a bound method, or an object with a `__call__`, around a function of another framework."""
    inner = value.func if isinstance(value, partial) else getattr(value, "__func__", type(value).__call__)
    operator = operator_of_framework(inner)
    if operator is not None:
        tensor = _TENSORS[operator.foreign.framework.name]
        raise ConfigError(
            f"{name} is a {type(value).__name__}: {operator.foreign.name}, which it calls, is written for "
            f"{operator.foreign.framework.name}; give a function, def f(x: {tensor}): return ..."
        )


_TENSORS = {"torch": "torch.Tensor", "jax": "jax.Array", "paddle": "paddle.Tensor"}
"""The annotation of a tensor, by framework."""


def _uses_py_func(function: Any) -> bool:
    return "py_func" in getattr(getattr(function, "__code__", None), "co_names", ())


def _of_definition(definition: OpDef) -> tuple[inspect.Parameter, ...]:
    inputs = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in definition.inputs]
    settings = definition.attributes.items()
    return (*inputs, *(inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=v) for n, v in settings))


def _of_layer(layer: type[PyLayer]) -> tuple[inspect.Parameter, ...]:
    parameters = _of_function(layer.forward)
    return parameters if sets_up_context(layer) else parameters[1:]


def _of_function(function: Any) -> tuple[inspect.Parameter, ...]:
    try:
        parameters = parameters_of(function).values()
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the parameters of {function!r} cannot be read: {error}") from error
    return tuple(p for p in parameters if p.kind is not p.VAR_KEYWORD)


def equivalent(text: str) -> Callable[..., Any]:
    """The operator that `relu`, `gelu(approximate=True)`, `custom.relu` or `file.py:name` names."""
    name, settings = split_settings(text)
    function: Any = REGISTRY.get(name) or getattr(functional, name, None)
    if function is None:
        function = make_operator(name)
    if not settings:
        return function
    return lambda *values: function(*values, **settings)
