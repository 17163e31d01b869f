"""What converted source calls by the name `_jit`.

Its `call` stands for every call: functions of a user's are converted, too; those of libraries are not.
"""

from __future__ import annotations

import functools
import os
import sysconfig
from collections.abc import Callable
from types import BuiltinMethodType, CellType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

from app.jit.convert.branch import NOTHING, choose, if_
from app.jit.convert.items import about_to_change, about_to_rebind, shape
from app.jit.convert.logic import and_, assert_, chain, not_, numbers, or_
from app.jit.convert.loop import for_, while_
from app.jit.convert.python_functions import OF_PYTHON
from app.jit.convert.source import with_meaning
from app.jit.convert.state import State

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
        return with_meaning(function, _JIT)
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
    if isinstance(function, BuiltinMethodType):
        about_to_change(function.__self__)  # a method of a container, as `append` is
    try:
        of_python = OF_PYTHON.get(function)
    except TypeError:  # it cannot be looked up, so it is none of Python's
        of_python = None
    return converted(function) if of_python is None else of_python


_JIT = SimpleNamespace(
    NOTHING=NOTHING,
    State=State,
    about_to_change=about_to_change,
    about_to_rebind=about_to_rebind,
    and_=and_,
    assert_=assert_,
    call=call,
    chain=chain,
    choose=choose,
    for_=for_,
    if_=if_,
    not_=not_,
    numbers=numbers,
    or_=or_,
    shape=shape,
    while_=while_,
)
