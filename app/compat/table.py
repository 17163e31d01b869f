"""Tables of names: each row gives a function or class of the framework the names and parameters of a dialect.

A row is one of

    abs cos reverse=flip               names taken over as they are, or from another name of the framework
    argmax = argmax(input, dim:axis)   names with the dialect's parameters, in its order: with the framework's name
                                       after a colon where it differs, and with a default where that differs
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from inspect import Parameter, Signature
from types import ModuleType
from typing import Any

import numpy as np

from app.errors import DtypeError, OperatorError, ShapeError
from app.ops.definition import OpDef
from app.tensor import Tensor
from app.tensor.modes import modes


def table(below: Any, rows: str) -> dict[str, Any]:
    """Return the object for each name in the rows, from a module of the framework."""
    found: dict[str, Any] = {}
    for row in rows.strip().splitlines():
        names, equals, target = (part.strip() for part in row.partition(" = "))
        if equals:
            first, *others = names.split()
            found[first] = renamed(first, target, below)
            found.update(dict.fromkeys(others, found[first]))
        else:
            pairs = [word.partition("=") for word in names.split()]
            found.update({name: getattr(below, old or name) for name, _, old in pairs})
    return found


def everything(below: Any) -> dict[str, Any]:
    """Return all public names of a module of the framework, except submodules."""
    return {name: value for name in below.__all__ if not isinstance(value := getattr(below, name), ModuleType)}


def renamed(name: str, target: str, below: Any) -> Callable[..., Any]:
    """A function, or class, of a module below with the parameters that a row lists: `argmax(input, dim:axis)`.

    A function takes `out=` as well. If `inplace` is one of the parameters, the result can replace the first argument.
    """
    called, _, listed = target.rstrip(")").partition("(")
    operator = getattr(below, called)
    texts = [text.strip() for text in listed.split(",")]
    pairs = [_parameter(text, operator) for text in texts]
    own = _without_gaps([parameter for parameter, _ in pairs])
    theirs = {parameter.name: other for parameter, other in pairs}
    always = {p.name: p.default for p, text in zip(own, texts, strict=True) if "=" in text}
    always.pop("inplace", None)
    out = [] if isinstance(operator, type) else [Parameter("out", Parameter.KEYWORD_ONLY, default=None)]
    signature = Signature([*own, *out])
    accepted = signature.parameters.keys()
    required = {parameter.name for parameter in own if parameter.default is Parameter.empty}
    inputs = _leading(pairs, len(getattr(operator, "inputs", ())) or 1)

    def function(*args: Any, **kwargs: Any) -> Any:
        if not (kwargs or always) and len(args) == inputs:
            return operator(*args)
        placed = dict(zip(theirs, args, strict=False))
        given = always | placed | kwargs
        twice = len(args) > len(placed) or not placed.keys().isdisjoint(kwargs)
        if twice or not kwargs.keys() <= accepted or not required <= given.keys():
            _refuse(name, signature, args, kwargs)
        out, inplace = given.pop("out", None), given.pop("inplace", False)
        first = [given.pop(key) for key in list(theirs)[:inputs] if key in given]
        result = operator(*first, **{theirs[key]: value for key, value in given.items()})
        if inplace:
            return args[0].become(result)
        return result if out is None else put_into(name, out, result)

    function.__name__, function.__doc__ = name, operator.__doc__
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _parameter(text: str, operator: Any) -> tuple[Parameter, str]:
    """The dialect's parameter that `name`, `name:other` or `name:other=default` describes, and its name below."""
    words, equals, default = text.partition("=")
    name, _, other = words.partition(":")
    value = {"inplace": False, "name": None}[name] if name in ("inplace", "name") else _default(operator, other or name)
    if equals:
        value = ast.literal_eval(default)
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=value), other or name


def _without_gaps(parameters: list[Parameter]) -> list[Parameter]:
    """Return the parameters; those before a required one become required."""
    required = [place for place, parameter in enumerate(parameters) if parameter.default is Parameter.empty]
    last = required[-1] if required else -1
    return [p.replace(default=Parameter.empty) if place <= last else p for place, p in enumerate(parameters)]


def _default(operator: Any, name: str) -> Any:
    if isinstance(operator, OpDef):
        return operator.attributes.get(name, Parameter.empty)
    known = inspect.signature(operator).parameters
    return known[name].default if name in known else Parameter.empty


def _leading(pairs: list[tuple[Parameter, str]], most: int) -> int:
    """Return the number of leading arguments that can be passed by position: inputs with the same name."""
    same = [parameter.name == other for parameter, other in pairs]
    return min(most, same.index(False) if False in same else len(pairs))


def _refuse(name: str, signature: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise an error about the arguments of a call."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        taken = ", ".join(parameter for parameter in signature.parameters if parameter != "out")
        raise TypeError(f"{name}(): {error}; it takes ({taken})") from None


def put_into(name: str, out: Any, result: Any) -> Any:
    """Store a result in the Tensor given as `out=`."""
    if not isinstance(out, Tensor) or not isinstance(result, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if modes().on and not (out.stop_gradient and result.stop_gradient):
        raise OperatorError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad; leave out= away, or call it inside torch.no_grad()"
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
