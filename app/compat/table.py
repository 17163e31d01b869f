"""Tables of names: each row gives a function or class of the framework the names and parameters of a dialect.

A row is one of

    abs cos reverse=flip               names taken over as they are, or from another name of the framework
    argmax = argmax(input, dim:axis)   names with the dialect's parameters, in its order: with the framework's name
                                       after a colon where it differs, and with a default where that differs

A parameter is keyword-only after `*`. One that ends in `!` is refused unless it has its default, one that ends in `?`
has no effect, and `:name=value` is no parameter, but an argument of every call.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from inspect import Parameter, Signature
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from app.errors import DtypeError, OperatorError, ShapeError
from app.ops.definition import OpDef
from app.tensor import Tensor
from app.tensor.modes import modes


def table(below: Any, rows: str, out: bool = False) -> dict[str, Any]:
    """Return the object for each name in the rows, from a module of the framework; `out` is whether `out=` is taken."""
    found: dict[str, Any] = {}
    for row in rows.strip().splitlines():
        names, equals, target = (part.strip() for part in row.partition(" = "))
        if equals:
            first, *others = names.split()
            found[first] = renamed(first, target, below, out)
            found.update(dict.fromkeys(others, found[first]))
        else:
            pairs = [word.partition("=") for word in names.split()]
            found.update({name: getattr(below, old or name) for name, _, old in pairs})
    return found


def everything(below: Any) -> dict[str, Any]:
    """Return all public names of a module of the framework, except submodules."""
    return {name: value for name in below.__all__ if not isinstance(value := getattr(below, name), ModuleType)}


class _Slot(NamedTuple):
    """A parameter of a row."""

    own: Parameter
    below: str
    """Its name in the framework."""
    use: str = ""
    """`!` if only the default is supported, `?` if it has no effect."""


def renamed(name: str, target: str, below: Any, out: bool = False) -> Callable[..., Any]:
    """A function, or class, of a module below with the parameters that a row lists: `argmax(input, dim:axis)`.

    If `inplace` is one of the parameters, the result can replace the first argument.
    """
    called, _, listed = target.rstrip(")").partition("(")
    operator = getattr(below, called)
    slots, always = _slots(listed, operator)
    accepted = Signature([*_without_gaps([slot.own for slot in slots]), *([_OUT] if out else [])])
    theirs = {slot.own.name: slot.below for slot in slots}
    positional = [slot.own.name for slot in slots if slot.own.kind is Parameter.POSITIONAL_OR_KEYWORD]
    required = {p.name for p in accepted.parameters.values() if p.default is Parameter.empty}
    special = {slot.own.name: slot for slot in slots if slot.use}
    inputs = _leading(slots, len(getattr(operator, "inputs", ())) or 1)

    def function(*args: Any, **kwargs: Any) -> Any:
        if not (kwargs or always) and len(args) == inputs:
            return operator(*args)
        placed = dict(zip(positional, args, strict=False))
        given = placed | kwargs
        twice = len(args) > len(placed) or not placed.keys().isdisjoint(kwargs)
        if twice or not kwargs.keys() <= accepted.parameters.keys() or not required <= given.keys():
            bound(name, accepted, args, kwargs)
        for key in special.keys() & given.keys():
            _check_default(name, special[key], given.pop(key))
        into, inplace = given.pop("out", None), given.pop("inplace", False)
        first = [given.pop(key) for key in positional[:inputs] if key in given]
        if inplace and not isinstance(operator, OpDef):  # gradients of its steps may need the value
            first[0] = first[0].clone()
        result = operator(*first, **always | {theirs[key]: value for key, value in given.items()})
        if inplace:
            return args[0].become(result)
        return result if into is None else put_into(name, into, result)

    function.__name__, function.__doc__ = name, operator.__doc__
    function.__signature__ = accepted  # type: ignore[attr-defined]
    return function


_OUT = Parameter("out", Parameter.KEYWORD_ONLY, default=None)


_COMMA = re.compile(r"\s*,\s*(?![^(]*\))")
"""A comma between parameters, not inside a default in parentheses."""


def signature(listed: str) -> Signature:
    """The signature that a list of parameters with defaults describes."""
    return Signature([slot.own for slot in _slots(listed, None)[0]])


def _slots(listed: str, operator: Any) -> tuple[list[_Slot], dict[str, Any]]:
    """The parameters of a row, and the arguments of every call."""
    slots: list[_Slot] = []
    always: dict[str, Any] = {}
    kind: Any = Parameter.POSITIONAL_OR_KEYWORD
    for text in _COMMA.split(listed.strip()):
        words, equals, default = text.partition("=")
        use = words[-1] if words[-1] in "!?" else ""
        name, _, other = words.rstrip("!?").partition(":")
        if words == "*":
            kind = Parameter.KEYWORD_ONLY
            continue
        if not name:
            always[other] = ast.literal_eval(default)
            continue
        value = {"inplace": False, "name": None}.get(name, None if use else _default(operator, other or name))
        if equals:
            value = ast.literal_eval(default)
            always.update({} if use or name == "inplace" else {other or name: value})
        slots.append(_Slot(Parameter(name, kind, default=value), other or name, use))
    return slots, always


def _without_gaps(parameters: list[Parameter]) -> list[Parameter]:
    """Return the parameters; those before a required one become required."""
    required = [place for place, parameter in enumerate(parameters) if parameter.default is Parameter.empty]
    last = required[-1] if required else -1
    return [p.replace(default=Parameter.empty) if place <= last else p for place, p in enumerate(parameters)]


def _default(operator: Any, name: str) -> Any:
    if operator is None:
        return Parameter.empty
    if isinstance(operator, OpDef):
        return operator.attributes.get(name, Parameter.empty)
    known = inspect.signature(operator).parameters
    return known[name].default if name in known else Parameter.empty


def _leading(slots: list[_Slot], most: int) -> int:
    """Return the number of leading arguments that can be passed by position: inputs with the same name."""
    same = [slot.own.name == slot.below for slot in slots]
    return min(most, same.index(False) if False in same else len(slots))


def _check_default(name: str, slot: _Slot, value: Any) -> None:
    """Refuse a value that is not supported."""
    if slot.use == "!" and value is not slot.own.default and value != slot.own.default:
        instead = _INSTEAD.get(slot.own.name, f"leave {slot.own.name} out")
        raise OperatorError(f"{name}: {slot.own.name}={value!r} is not supported in this façade; {instead}")


_INSTEAD = dict.fromkeys(["size_average", "reduce"], "use reduction='mean', 'sum' or 'none'")
"""What to write instead of a parameter that is not supported."""


def bound(name: str, accepted: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return all arguments of a call by name, with defaults; raise an error if they do not fit."""
    try:
        found = accepted.bind(*args, **kwargs)
    except TypeError as error:
        taken = ", ".join(parameter for parameter in accepted.parameters if parameter != "out")
        raise TypeError(f"{name}(): {error}; it takes ({taken})") from None
    found.apply_defaults()
    return found.arguments


def put_into(name: str, out: Any, result: Any) -> Any:
    """Store a result in the Tensor given as `out=`."""
    if not isinstance(out, Tensor) or not isinstance(result, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if modes().on and not (out.stop_gradient and result.stop_gradient):
        raise OperatorError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad; omit out=, or call it inside torch.no_grad()"
        )
    found, wanted = result._array.dtype, out._array.dtype
    if not np.can_cast(found, wanted, "same_kind"):
        raise DtypeError(f"{name}(): result type {found} can't be cast to the desired output type {wanted} of out=")
    if out._array.shape != result._array.shape:
        if out._array.size:
            raise ShapeError(
                f"{name}(): out= has shape {list(out._array.shape)}, the result {list(result._array.shape)}; "
                "give a Tensor of that shape, or an empty one"
            )
        out._array = np.empty(result._array.shape, wanted)
    return out.copy_(result)
