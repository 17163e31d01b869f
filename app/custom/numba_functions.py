"""Users' functions as Python's and as Numba's, with their parameters by name or in another order.

A check runs Numba functions as the Python that they were written in, which refuses an index outside of an array.
Compiled code does not look: it reads whatever lies there, or writes over it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from types import FunctionType, ModuleType
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


_OTHERS = frozenset({"app", "numba", "numpy"})
"""Packages whose own functions stay compiled, but for the shelf's, which are as a user would write them."""


class _Interpreted:
    """The switch: one object, so that a call reads a single attribute."""

    __slots__ = ("calls", "on")

    def __init__(self) -> None:
        self.on = False
        self.calls = 0


interpreted = _Interpreted()


@contextmanager
def without_numba() -> Iterator[None]:
    """Inside the block, operators' Numba functions, and those that they call, run as Python."""
    with ExitStack() as restored:
        restored.callback(setattr, interpreted, "on", interpreted.on)
        interpreted.on, interpreted.calls = True, 0
        for name, module in list(sys.modules.items()):
            own = name.partition(".")[0] not in _OTHERS or name.startswith("app.custom.shelf.")
            if own and "numba" in sys.modules:
                _open_module(module, restored)
        yield


def as_python(function: FunctionType, values: Sequence[Any]) -> Any:
    """Call the Python function inside a Numba one, for which those that it has around it are Python, too."""
    interpreted.calls += 1
    with ExitStack() as restored:
        _open_closure(function, restored)
        return function(*values)


def _open_module(module: ModuleType, restored: ExitStack) -> None:
    """Put Python functions in the place of a module's Numba functions, until they are restored."""
    from numba.core.dispatcher import Dispatcher

    names = getattr(module, "__dict__", None)
    if type(names) is not dict:  # something else that stands among the modules
        return
    # by its type: asked by `isinstance`, an object that stands for another may run code of its own, or raise
    for name, value in [item for item in list(names.items()) if issubclass(type(item[1]), Dispatcher)]:
        restored.callback(names.__setitem__, name, value)
        names[name] = _counted(value.py_func)
        _open_closure(value.py_func, restored)


def _counted(function: FunctionType) -> Callable[..., Any]:
    @wraps(function)
    def call(*values: Any, **settings: Any) -> Any:
        interpreted.calls += 1
        return function(*values, **settings)

    return call


def _open_closure(function: FunctionType, restored: ExitStack) -> None:
    """The same for the Numba functions that another function has around it."""
    for cell in function.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:  # nothing has been put into it
            continue
        if _is_compiled(value):
            restored.callback(setattr, cell, "cell_contents", value)
            cell.cell_contents = value.py_func
            _open_closure(value.py_func, restored)


def _is_compiled(value: Any) -> bool:
    from numba.core.dispatcher import Dispatcher  # imported late: whoever has such a function has loaded Numba

    return issubclass(type(value), Dispatcher)
