"""The functions that converted source calls as `_jit.…`, and the conversion of the functions that it calls."""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Callable
from types import BuiltinMethodType, CellType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, cast

import numpy as np

from app.errors import ProgramError
from app.jit.convert.branch import choose, if_
from app.jit.convert.logic import and_, assert_, not_, or_
from app.jit.convert.loop import for_, while_
from app.jit.convert.names import WRITES
from app.jit.convert.python_functions import OF_PYTHON
from app.jit.convert.source import with_meaning
from app.jit.convert.state import NOTHING, State
from app.jit.convert.watch import note_write, unwatched
from app.jit.variable import TracedVariable
from app.reading import LIBRARIES
from app.tensor.modes import modes

_STREAMS = (random.Random, np.random.RandomState, np.random.Generator)
"""The kinds of streams of random numbers."""

_left: set[Any] = {"logging"}
"""Functions, and names of modules, that are not converted (`not_to_static`, `ignore_module`), and whose changes are
accepted wherever they happen.
"""


def leave(function: Any) -> Any:
    """Never convert this function, or those of this module."""
    _left.add(function.__name__ if isinstance(function, ModuleType) else getattr(function, "__func__", function))
    return function


def converted(function: Any) -> Callable[..., Any]:
    """Return the converted function for calls while tracing."""
    eager = getattr(function, "eager", None)
    if eager is not None and hasattr(function, "concrete_program_for"):  # to_static inside a traced function
        return converted(eager)
    if isinstance(function, MethodType):
        inner = converted(function.__func__)
        return function if inner is function.__func__ else MethodType(inner, function.__self__)
    if isinstance(function, functools.partial):
        return functools.partial(converted(function.func), *function.args, **function.keywords)
    if not isinstance(function, FunctionType):
        return _callable_object(function)
    if not function.__code__.co_filename.startswith(LIBRARIES) and modes().tracer is not None:
        modes().tracer.functions[function] = function.__code__
    if function in _left or function.__module__ in _left:
        return unwatched(function)
    if not function.__code__.co_filename.startswith(LIBRARIES):
        return with_meaning(function, _JIT)
    wrapped = getattr(function, "__wrapped__", None)
    return function if wrapped is None else _around(function, wrapped)


def _callable_object(thing: Any) -> Callable[..., Any]:
    """An object of a user's class as its converted `__call__`; other things unchanged."""
    method = inspect.getattr_static(type(thing), "__call__", None)
    if not isinstance(method, FunctionType) or method.__code__.co_filename.startswith(LIBRARIES):
        return cast("Callable[..., Any]", thing)
    return MethodType(converted(method), thing)


def _around(wrapper: FunctionType, wrapped: Any) -> Callable[..., Any]:
    """A library's wrapper, such as that of `no_grad`, around the converted function."""
    inner = converted(wrapped)
    if inner is wrapped:
        return wrapper
    cells = tuple(CellType(inner) if cell.cell_contents is wrapped else cell for cell in wrapper.__closure__ or ())
    made = FunctionType(wrapper.__code__, wrapper.__globals__, wrapper.__name__, wrapper.__defaults__, cells)
    made.__kwdefaults__ = wrapper.__kwdefaults__
    return made


def call(function: Any) -> Callable[..., Any]:
    """Return the function to call instead of a function."""
    owner = getattr(function, "__self__", None)
    if function is np.random.default_rng or any(function is kind for kind in _STREAMS):
        return _stream_of_its_own(function)
    known = modes().tracer is None or any(owner is stream for stream in modes().tracer.streams)
    if isinstance(owner, _STREAMS) and not known and "state" not in function.__name__:
        raise ProgramError(
            f"{function.__name__}() would draw a random number only when the function is traced, and every call would "
            "have the same one; use opsmith.rand, opsmith.randn or opsmith.randint, or draw it outside and pass it as "
            "a Tensor. If once is meant, draw it in a function with @opsmith.jit.not_to_static"
        )
    if isinstance(function, BuiltinMethodType):
        about_to_change(function.__self__, kept=function.__name__ not in WRITES)
    try:
        of_python = OF_PYTHON.get(function)
    except TypeError:  # it is not hashable, so it is not one of Python's functions
        of_python = None
    return converted(function) if of_python is None else of_python


def _stream_of_its_own(make: Callable[..., Any]) -> Callable[..., Any]:
    """What makes a stream of random numbers, from which the function may draw if it is given a seed."""

    def made(*args: Any, **kwargs: Any) -> Any:
        stream = make(*args, **kwargs)
        if modes().tracer is not None and (args or kwargs):  # without a seed it begins differently at each call
            modes().tracer.streams.append(stream)
        return stream

    return made


def about_to_change(owner: Any, attribute: str | None = None, kept: bool = False) -> Any:
    """The owner of an item or an attribute that is set or deleted; its old value is recorded, to be restored if what
    is traced now is traced again. `kept` says that a value may be added as in a cache.
    """
    tracer = modes().tracer
    if tracer is None:
        return owner
    if not kept:
        note_write(owner)
    if attribute is None:
        tracer.note_contents(owner)
    else:
        tracer.note_attribute_of(owner, attribute)
    return owner


def about_to_rebind(state: State) -> None:
    """Record names of other scopes that the function which begins here may assign, with `global` or `nonlocal`."""
    if modes().tracer is not None:
        modes().tracer.note_names(state)


def shape(value: Any) -> Any:
    """`value.shape`. An open size of a traced value cannot be computed with."""
    return value.asked_shape if isinstance(value, TracedVariable) else value.shape


_JIT = SimpleNamespace(
    NOTHING=NOTHING,
    State=State,
    about_to_change=about_to_change,
    about_to_rebind=about_to_rebind,
    and_=and_,
    assert_=assert_,
    call=call,
    choose=choose,
    for_=for_,
    if_=if_,
    not_=not_,
    or_=or_,
    shape=shape,
    while_=while_,
)
