"""Users' functions as Python functions, as Numba's, and with their parameters by name or in another order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from types import FunctionType
from typing import Any

from app.reading import parameters_of


def function_name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def is_compiled(function: Any) -> bool:
    """Whether a function is Numba's, so that compiled code can call it."""
    return hasattr(function, "py_func") and hasattr(function, "signatures")


def python_function(function: Any) -> Any:
    """The Python function inside a Numba one, or the function itself."""
    return getattr(function, "py_func", function)


def dispatcher_of(function: Any) -> Any:
    """A function as one of Numba's. It knows no parameters by keyword only, so they become ordinary ones."""
    if is_compiled(function):
        return function
    from numba import njit  # imported late: half a second that a run without such a function need not wait

    code = function.__code__
    code = code.replace(co_argcount=code.co_argcount + code.co_kwonlyargcount, co_kwonlyargcount=0)
    ordinary = FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)
    return njit(ordinary, error_model="numpy")


def by_name(function: Any, names: Sequence[str]) -> Callable[..., Any]:
    """A function that is given its values under these names, wherever it has the parameters."""

    @wraps(function)
    def call(*values: Any, **settings: Any) -> Any:
        return function(**dict(zip(names, values, strict=True)), **settings)

    return call


def by_position(function: Any, order: Sequence[str]) -> Any:
    """A function that compiled code can give the parameters in this order; itself where it has them so already."""
    parameters = parameters_of(python_function(function))
    if list(parameters) == list(order) and all(p.kind is not p.KEYWORD_ONLY for p in parameters.values()):
        return function
    call = ", ".join(f"{name}={name}" for name in order)
    reordered = eval(f"lambda {', '.join(order)}: inner({call})", {"inner": dispatcher_of(function)})
    reordered.__name__ = function_name(function)
    return dispatcher_of(reordered) if is_compiled(function) else reordered
