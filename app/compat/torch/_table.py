"""How a PyTorch function is made of a framework function: by a row that names both and orders their parameters.

A row reads `torch_name other_name = framework_name(input, dim:axis, keepdim)`: the parameters are PyTorch's, in
PyTorch's order, each with the framework's name after a colon where that is another one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import app
from app.errors import DtypeError, OperatorError, ShapeError
from app.tensor import Tensor
from app.tensor.modes import modes

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""The functions of the module `torch` that take a Tensor first."""
METHODS: dict[str, Callable[..., Any]] = {}
"""The methods of Tensors."""


def register(
    *names: str, function: bool = True, method: bool = True, in_place: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Offer a function under its own name and others: in the module, as a method, and as a method `name_`."""

    def decorate(decorated: Callable[..., Any]) -> Callable[..., Any]:
        for name in (decorated.__name__, *names):
            if function:
                FUNCTIONS[name] = decorated
            if method:
                METHODS[name] = decorated
            if in_place:
                METHODS[name + "_"] = _changing(decorated, name + "_")
        return decorated

    return decorate


def _changing(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.become(function(self, *args, **kwargs))

    method.__name__, method.__doc__ = name, f"`{name[:-1]}`, kept in the Tensor itself."
    return method


def rows(table: str, **places: bool) -> None:
    """Register a function for each row of a table."""
    for row in table.strip().splitlines():
        left, _, right = row.partition("=")
        names, target = left.split(), right.strip()
        function = renamed(names[0], target)
        register(*names[1:], **places)(function)


def renamed(name: str, target: str, source: Any = app) -> Callable[..., Any]:
    """A framework function under PyTorch's name, its parameters renamed as `target` says: `sum(input, dim:axis)`."""
    called, _, listed = target.rstrip(")").partition("(")
    operator = getattr(source, called)
    parameters = [p.strip().partition(":") for p in listed.split(",")]
    theirs = [p[0] for p in parameters]
    ours = {p[0]: p[2] or p[0] for p in parameters}
    inputs = _leading(parameters, len(getattr(operator, "inputs", ("x",))))

    def function(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and len(args) == inputs:
            return operator(*args)
        out = kwargs.pop("out", None)
        if len(args) > len(theirs):
            raise TypeError(f"{name}() takes {len(theirs)} arguments ({', '.join(theirs)}), found {len(args)}")
        given = dict(zip(theirs, args, strict=False))
        for key, value in kwargs.items():
            if key not in ours or key in given:
                what = "has no parameter" if key not in ours else "got twice its parameter"
                raise TypeError(f"{name}() {what} {key!r}; it takes ({', '.join(theirs)})")
            given[key] = value
        first = [given.pop(key) for key in theirs[:inputs] if key in given]
        result = operator(*first, **{ours[key]: value for key, value in given.items()})
        return result if out is None else put_into(name, out, result)

    function.__name__, function.__doc__ = name, operator.__doc__
    return function


def put_into(name: str, out: Any, result: Any) -> Any:
    """The Tensor given as `out=`, with the numbers of a result."""
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


def _leading(parameters: list[tuple[str, str, str]], most: int) -> int:
    """How many parameters are passed by place: the first ones, as far as they are inputs that need no renaming."""
    renamed = [bool(colon) for _, colon, _ in parameters]
    return min(most, renamed.index(True) if any(renamed) else most)
