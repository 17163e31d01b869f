"""What Python's own functions do with Tensors in converted code: they append operators, where Python wants numbers."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

from app.custom.py_func import py_func
from app.jit.convert.loop import TensorRange
from app.jit.convert.state import is_value, one_element, tracer
from app.jit.variable import TracedVariable
from app.ops.definition import REGISTRY
from app.ops.dtype import get_default_dtype
from app.tensor import Tensor


def _range(*bounds: Any) -> Any:
    return TensorRange(*bounds) if any(map(is_value, bounds)) else range(*bounds)


def _isinstance(value: Any, kinds: Any) -> bool:
    return isinstance(value, kinds) or (isinstance(value, TracedVariable) and issubclass(value.stands_for, kinds))


def _cast(kind: type, dtype: str) -> Callable[..., Any]:
    """A number of a Tensor: its one element, through which no gradient flows, as none flows through Python's number."""

    def make(*args: Any) -> Any:
        if len(args) == 1 and is_value(args[0]):
            return one_element(args[0], f"{kind.__name__}()").astype(dtype or get_default_dtype()).detach()
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


OF_PYTHON: dict[Any, Callable[..., Any]] = {
    builtins.range: _range,
    builtins.isinstance: _isinstance,
    builtins.int: _cast(int, "int64"),
    builtins.float: _cast(float, ""),
    builtins.bool: _cast(bool, "bool"),
    builtins.max: _extreme(max, "maximum"),
    builtins.min: _extreme(min, "minimum"),
    builtins.print: _print,
}
"""What stands for each of them where it is called."""
