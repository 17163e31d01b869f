"""What a call means in converted code: functions of a user's are converted, those of libraries are not."""

from __future__ import annotations

import builtins
import functools
import os
import sysconfig
from collections.abc import Callable
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

from app.custom.py_func import py_func
from app.graph.variable import Variable
from app.jit.convert.loop import TensorRange
from app.jit.convert.source import with_meaning
from app.jit.convert.state import is_value, tracer
from app.ops.definition import REGISTRY
from app.ops.dtype import get_default_dtype
from app.tensor import Tensor

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_LIBRARIES = tuple(
    {sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")} | {_PACKAGE}
)
_left: set[Any] = set()
"""Functions, and names of modules, that `not_to_static` and `ignore_module` leave alone."""


def leave(function: Any) -> Any:
    """Never convert this function, or those of this module."""
    _left.add(function.__name__ if isinstance(function, ModuleType) else getattr(function, "__func__", function))
    return function


def converted(function: Any) -> Callable[..., Any]:
    """A function as it is called while tracing."""
    eager = getattr(function, "eager", None)
    if eager is not None and hasattr(function, "concrete_program_for"):  # to_static inside of what is traced
        return converted(eager)
    if isinstance(function, MethodType):
        inner = converted(function.__func__)
        return function if inner is function.__func__ else MethodType(inner, function.__self__)
    if isinstance(function, functools.partial):
        return functools.partial(converted(function.func), *function.args, **function.keywords)
    if not isinstance(function, FunctionType) or function in _left or function.__module__ in _left:
        return function
    if not function.__code__.co_filename.startswith(_LIBRARIES):
        return with_meaning(function)
    wrapped = getattr(function, "__wrapped__", None)
    return function if wrapped is None else _around(function, wrapped)


def _around(wrapper: FunctionType, wrapped: Any) -> Callable[..., Any]:
    """A library's wrapper, as that of `no_grad` is, around the converted function."""
    inner = converted(wrapped)
    if inner is wrapped:
        return wrapper
    cells = tuple(CellType(inner) if cell.cell_contents is wrapped else cell for cell in wrapper.__closure__ or ())
    made = FunctionType(wrapper.__code__, wrapper.__globals__, wrapper.__name__, wrapper.__defaults__, cells)
    made.__kwdefaults__ = wrapper.__kwdefaults__
    return made


def call(function: Any) -> Callable[..., Any]:
    """What stands for a function where it is called."""
    try:
        of_python = _OF_PYTHON.get(function)
    except TypeError:  # it cannot be looked up, so it is none of Python's
        of_python = None
    return converted(function) if of_python is None else of_python


# Python's own functions, of Tensors


def _range(*bounds: Any) -> Any:
    return TensorRange(*bounds) if any(map(is_value, bounds)) else range(*bounds)


def _isinstance(value: Any, kinds: Any) -> bool:
    if isinstance(value, Variable):
        listed = kinds if isinstance(kinds, tuple) else (kinds,)
        return isinstance(value, kinds) or Tensor in listed
    return isinstance(value, kinds)


def _cast(kind: Callable[..., Any], dtype: str) -> Callable[..., Any]:
    def make(*args: Any) -> Any:
        if len(args) == 1 and is_value(args[0]):
            value = tracer().value(args[0])
            return value.astype(dtype or get_default_dtype()).reshape([])
        return kind(*args)

    return make


def _extreme(kind: Callable[..., Any], operator: str) -> Callable[..., Any]:
    def choose(*args: Any, **kwargs: Any) -> Any:
        if len(args) > 1 and any(map(is_value, args)) and not kwargs:
            return functools.reduce(REGISTRY[operator], args)
        return kind(*args, **kwargs)

    return choose


def _print(*args: Any, **kwargs: Any) -> None:
    """`print` where there are Tensors: whenever the function runs."""
    values = [tracer().value(a) for a in args if is_value(a)]
    if not values:
        print(*args, **kwargs)
        return

    def show(*arrays: Any) -> None:
        given = iter(arrays)
        shown = [Tensor(next(given)) if is_value(a) else a for a in args]
        print(*shown, **kwargs)

    py_func(show, values, None)


_OF_PYTHON: dict[Any, Callable[..., Any]] = {
    builtins.range: _range,
    builtins.isinstance: _isinstance,
    builtins.int: _cast(int, "int64"),
    builtins.float: _cast(float, ""),
    builtins.bool: _cast(bool, "bool"),
    builtins.max: _extreme(max, "maximum"),
    builtins.min: _extreme(min, "minimum"),
    builtins.print: _print,
}
