"""The operators that stand for Python's own functions on Tensors, such as `range` and `print`, in converted code."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from app.custom.py_func import py_func
from app.jit.convert.loop import TensorRange
from app.jit.convert.state import CONTAINERS, is_tuple, is_value, items_of, one_element, rebuilt, tracer
from app.jit.variable import RefusedError, StopGradient, TracedParameter, TracedVariable
from app.ops.dtype import get_default_dtype, is_float
from app.tensor import Parameter, Tensor


def _range(*bounds: Any) -> Any:
    return TensorRange(*bounds) if any(map(is_value, bounds)) else range(*bounds)


def _isinstance(value: Any, kinds: Any) -> bool:
    return issubclass(_type(value), kinds) if isinstance(value, TracedVariable) else isinstance(value, kinds)


def _type(*args: Any) -> Any:
    if len(args) != 1 or not isinstance(args[0], TracedVariable):
        return type(*args)
    return Parameter if isinstance(args[0], TracedParameter) else Tensor


def _float(*args: Any) -> Any:
    if len(args) != 1 or not is_value(args[0]):
        return float(*args)
    number = one_element(args[0], "float()").detach()
    if is_float(number.dtype):
        return number
    kind = get_default_dtype()
    if not np.can_cast(number.dtype, kind):
        raise RefusedError(
            f"float() of an {number.dtype} value would lose digits of large numbers in a traced function; "
            f"write .astype('float64'), or .astype('{kind}') if the numbers are small"
        )
    return number.astype(kind)


def _to_type(kind: type, dtype: str) -> Callable[..., Any]:
    """`int` or `bool`: of a Tensor, its one element. No gradient flows through it, as through Python's number."""

    def make(*args: Any) -> Any:
        if len(args) == 1 and is_value(args[0]):
            return one_element(args[0], f"{kind.__name__}()").astype(dtype).detach()
        return kind(*args)

    return make


def _print(*args: Any, **kwargs: Any) -> None:
    """`print`. With Tensors among its arguments, or in lists there, it prints whenever the function runs."""
    values = [tracer().value(leaf) for leaf in _leaves(args) if is_value(leaf)]
    if not values:
        print(*args, **kwargs)
        return
    kept = _filled(args, iter(values))  # the lists may change before it runs
    stops = [value.stop_gradient for value in values]

    def show(*arrays: Any) -> None:
        print(*_filled(kept, map(Tensor, arrays, stops)), **kwargs)

    py_func(show, values, None)


def _leaves(value: Any) -> Iterator[Any]:
    if not _is_nest(value):
        yield value
        return
    for _, item in items_of(value):
        yield from _leaves(item)


def _filled(value: Any, tensors: Iterator[Any]) -> Any:
    """A nest with other Tensors."""
    if not _is_nest(value):
        return next(tensors) if is_value(value) else value
    return rebuilt(value, lambda _, item: _filled(item, tensors))


def _is_nest(value: Any) -> bool:
    return type(value) in CONTAINERS or is_tuple(value)


def _next(*args: Any) -> Any:
    tracer().check_change(args, "an iterator")
    return next(*args)


def _setting(function: Callable[..., Any]) -> Callable[..., Any]:
    """`setattr` or `delattr`."""

    def change(owner: Any, name: str, *value: Any) -> Any:
        tracer().check_change(owner, f"{type(owner).__name__}.{name}")
        if name == "stop_gradient" and isinstance(owner, TracedVariable):
            return function(StopGradient(owner), name, *value)
        return function(owner, name, *value)

    return change


OF_PYTHON: dict[Any, Callable[..., Any]] = {
    builtins.range: _range,
    builtins.isinstance: _isinstance,
    builtins.type: _type,
    builtins.int: _to_type(int, "int64"),
    builtins.float: _float,
    builtins.bool: _to_type(bool, "bool"),
    builtins.print: _print,
    builtins.next: _next,
    builtins.setattr: _setting(setattr),
    builtins.delattr: _setting(delattr),
}
"""Converted code calls these in place of Python's functions."""
