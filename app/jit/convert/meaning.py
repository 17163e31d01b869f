"""The functions that converted source calls as `_jit.…`, and the conversion of the functions that it calls."""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Callable
from types import (
    BuiltinFunctionType,
    BuiltinMethodType,
    CellType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    SimpleNamespace,
)
from typing import Any, cast

import numpy as np

from app.jit.convert.branch import choose, if_
from app.jit.convert.logic import and_, assert_, not_, or_
from app.jit.convert.loop import for_, while_
from app.jit.convert.names import MUTATORS
from app.jit.convert.python_functions import OF_PYTHON
from app.jit.convert.source import with_meaning
from app.jit.convert.state import NOTHING, State, is_value
from app.jit.variable import RefusedError, StopGradient, TracedVariable
from app.reading import LIBRARIES
from app.tensor import Tensor
from app.tensor.modes import modes

_STREAMS = (random.Random, np.random.RandomState, np.random.Generator)
"""The kinds of streams of random numbers."""

_left: set[Any] = set()
"""Functions that are not converted (`not_to_static`)."""


def leave(function: Any) -> Any:
    """Never convert this function."""
    _left.add(getattr(function, "__func__", function))
    return function


def converted(function: Any) -> Callable[..., Any]:
    """Return the converted function for calls while tracing."""
    if modes().tracer is not None:
        modes().tracer.called[id(function)] = function
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
    if function in _left:
        return function
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
    result = FunctionType(wrapper.__code__, wrapper.__globals__, wrapper.__name__, wrapper.__defaults__, cells)
    result.__kwdefaults__ = wrapper.__kwdefaults__
    return result


def call(function: Any) -> Callable[..., Any]:
    """Return the function to call instead of a function."""
    owner = getattr(function, "__self__", None)
    if modes().tracer is not None:
        modes().tracer.called.update((id(thing), thing) for thing in (function, owner) if not is_value(thing))
    if isinstance(owner, _STREAMS) and "state" not in function.__name__:
        raise RefusedError(
            f"{function.__name__}() would draw a random number only when the function is traced, and every call would "
            "have the same one; use opsmith.rand, opsmith.randn or opsmith.randint, or draw it outside and pass it as "
            "a Tensor. If once is meant, draw it in a function with @opsmith.jit.not_to_static"
        )
    if isinstance(function, BuiltinMethodType) and function.__name__ in MUTATORS:
        about_to_change(owner)
    if isinstance(function, MethodDescriptorType) and function.__name__ in MUTATORS:
        return lambda changed, *args, **kwargs: function(about_to_change(changed), *args, **kwargs)
    if isinstance(function, type) or function is sorted or getattr(function, "__name__", "") == "copy":
        return _making(function)
    try:
        of_python = OF_PYTHON.get(function)
    except TypeError:  # it is not hashable, so it is not one of Python's functions
        of_python = None
    return converted(function) if of_python is None else of_python


def _making(function: Any) -> Callable[..., Any]:
    """What makes a new object, which a branch or a loop that it is made in may change."""
    of_python = OF_PYTHON.get(function)
    if of_python is not None or modes().tracer is None or not modes().tracer.regions:
        return of_python or function
    if not isinstance(function, type):
        return lambda *args, **kwargs: own(converted(function)(*args, **kwargs))
    if not isinstance(function.__new__, BuiltinFunctionType):  # it may give an old one
        return function
    begin: Any = function.__init__  # type: ignore[misc] # of this very class
    if not isinstance(begin, FunctionType):
        return lambda *args, **kwargs: own(function(*args, **kwargs))

    def construct(*args: Any, **kwargs: Any) -> Any:
        thing = own(function.__new__(function, *args, **kwargs))
        converted(begin)(thing, *args, **kwargs)
        return thing

    return construct


def own(thing: Any) -> Any:
    """An object that the function has just made."""
    return thing if modes().tracer is None else modes().tracer.own(thing)


def about_to_change(owner: Any, attribute: str = "") -> Any:
    """The owner of an item or an attribute that is set or deleted."""
    tracer = modes().tracer
    if tracer is None:
        return owner
    if tracer.regions and not (isinstance(owner, Tensor) and not attribute):
        _check_change(tracer, owner, attribute)
    return StopGradient(owner) if attribute == "stop_gradient" and isinstance(owner, TracedVariable) else owner


def _check_change(tracer: Any, owner: Any, attribute: str) -> None:
    if not isinstance(owner, TracedVariable):
        tracer.check_change(owner, f"{type(owner).__name__}.{attribute}" if attribute else f"a {type(owner).__name__}")
    elif attribute and (owner.copied or owner.home != tracer.program.current_block().idx):
        tracer.check_change(owner, f"{owner.name}.{attribute}")


def about_to_assign(*names: str) -> None:
    """The function that begins here assigns these names of an outer scope."""
    if modes().tracer is not None:
        modes().tracer.check_change(names, f"{', '.join(names)}, of an outer scope,")


def is_(a: Any, b: Any) -> bool:
    """Python's `is`. Two Tensors may be one in other calls, or if a branch is taken."""
    tracer = modes().tracer
    if a is b or tracer is None or not (is_value(a) and is_value(b)):
        return a is b
    first, second = tracer.value(a), tracer.value(b)
    depends = first.carried or second.carried or (first.outside and second.outside)
    if depends or not set(first.memories).isdisjoint(second.memories):
        raise RefusedError(
            "whether two Tensors are one is not known while a function is traced; compare what tells them apart, "
            "such as a name or a number, or do this outside of the function"
        )
    return False


def shape(value: Any) -> Any:
    """`value.shape`. An open size of a traced value cannot be computed with."""
    return value.asked_shape if isinstance(value, TracedVariable) else value.shape


_JIT = SimpleNamespace(
    NOTHING=NOTHING,
    State=State,
    about_to_change=about_to_change,
    about_to_assign=about_to_assign,
    and_=and_,
    assert_=assert_,
    call=call,
    choose=choose,
    for_=for_,
    if_=if_,
    is_=is_,
    not_=not_,
    own=own,
    or_=or_,
    shape=shape,
    while_=while_,
)
