"""What the adapters share: which parameters a function has, which framework it uses, where it was written."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from app.bridge.function import Foreign, ForeignFunction, class_of
from app.reading import PACKAGE, codes_in

_KNOWN = {"torch": "torch", "jax": "jax", "jaxlib": "jax", "paddle": "paddle", PACKAGE: PACKAGE}
"""The frameworks, by the names of packages."""
_classes: dict[int, tuple[Any, type[ForeignFunction]]] = {}
"""The classes that were made, by the ids of what they are of, which is kept so that no other gets its id."""


def remembered(thing: Any, describe: Callable[[Any], Foreign | None]) -> type[ForeignFunction] | None:
    """The class of Function for what the user wrote, made at the first call."""
    cached = _classes.get(id(thing))
    if cached is None:
        foreign = describe(thing)
        if foreign is None:
            return None
        cached = _classes[id(thing)] = thing, class_of(foreign)
    return cached[1]


def parameters(function: Any, skip: int = 0) -> tuple[inspect.Parameter, ...]:
    """The parameters of a function after the first `skip`, without `**options`."""
    try:
        signature = [*inspect.signature(function).parameters.values()][skip:]
    except ValueError:  # of a function in native code
        return (inspect.Parameter("x", inspect.Parameter.VAR_POSITIONAL),)
    return tuple(p for p in signature if p.kind is not p.VAR_KEYWORD)


def uses(function: Any, framework: str) -> bool:
    """Whether a plain function is one of a framework, or is written for it: it, or one that it calls, names something
    of the framework, and none of them something of ours. One that names nothing of any is written for the framework
    that its file imports, if there is only one."""
    if isinstance(function, BuiltinFunctionType):
        return _home(function) == framework or _home(function.__self__) == framework
    homes = {_home(value) for value in _named_in(function, set())}
    if isinstance(function, FunctionType) and _KNOWN.keys().isdisjoint(homes):
        modules = [_home(value) for value in function.__globals__.values() if isinstance(value, ModuleType)]
        return {home for home in modules if home in _KNOWN} == {framework}
    return isinstance(function, FunctionType) and framework in homes and PACKAGE not in homes


def _named_in(function: Any, seen: set[int]) -> Iterator[Any]:
    """The values that a function names: globals, what its closure holds, annotations; those of functions among them."""
    if not isinstance(function, FunctionType) or id(function) in seen:
        return
    seen.add(id(function))
    steps = [step for code in codes_in(function.__code__) for step in dis.get_instructions(code)]
    names = {step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "IMPORT_NAME")}
    named = [function.__globals__.get(name) for name in names]  # not of attributes: torch.nn names no variable nn
    for cell in function.__closure__ or ():
        try:
            named.append(cell.cell_contents)
        except ValueError:  # an empty cell
            continue
    for value in [*named, *function.__annotations__.values()]:
        yield value
        if getattr(value, "__module__", None) == function.__module__:
            yield from _named_in(value, seen)


def _home(value: Any) -> str:
    """The package that a value, or one of the classes that it is of, belongs to."""
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0]
    if isinstance(value, str):  # an annotation
        return value.partition(".")[0]
    kinds = value.__mro__ if isinstance(value, type) else type(value).__mro__
    homes = [getattr(value, "__module__", None), *(kind.__module__ for kind in kinds)]
    tops = [str(home).partition(".")[0] for home in homes if home]
    return next((_KNOWN[top] for top in tops if top in _KNOWN), "")
