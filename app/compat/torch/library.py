"""torch.library"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from typing import Any, NamedTuple

import app
from app.autograd import Function
from app.errors import CustomOperatorError


class CustomOpDef:
    """A function as an operator: nothing inside it is recorded, and its gradient is what is registered."""

    def __init__(self, name: str, function: Callable[..., Any], mutates_args: Sequence[str]):
        self._name, self._function, self._mutates = name, function, tuple(mutates_args)
        self._gradient: type[Function] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._gradient is None:
            with app.no_grad():
                return self._function(*args, **kwargs)
        return _grouped(*self._gradient.apply(*args, **kwargs))

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Say how the gradients of the inputs follow from those of the outputs.

        `setup_context(ctx, inputs, output)` keeps in `ctx` what `backward(ctx, *gradients)` needs. For an output that
        is a list of Tensors, backward gets one list of gradients.
        """
        if self._mutates:
            raise CustomOperatorError(f"{self._name} changes {', '.join(self._mutates)}, so it has no gradient")

        @wraps(self._function)
        def forward(*args: Any, **kwargs: Any) -> Any:
            result = self._function(*args, **kwargs)
            several = isinstance(result, tuple)
            parts = result if several else (result,)
            sizes = [len(part) if isinstance(part, list) else None for part in parts]
            tensors = [tensor for part in parts for tensor in (part if isinstance(part, list) else [part])]
            return _Layout(sizes, several), *tensors

        def keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx._layout = _Layout(output[0].sizes, True)
            if setup_context is not None:
                setup_context(ctx, inputs, _grouped(*output))

        members = {
            "forward": staticmethod(forward),
            "setup_context": staticmethod(keep),
            "backward": staticmethod(lambda ctx, _, *gradients: backward(ctx, *_grouped(ctx._layout, *gradients))),
        }
        self._gradient = type(self._name.rpartition("::")[2], (Function,), members)

    def register_fake(self, function: Callable[..., Any], /) -> Callable[..., Any]:
        """Nothing: shapes are known from the values here, as no operator runs without them."""
        return function

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._name})>"


class _Layout(NamedTuple):
    """How an operator returns its Tensors: for each result the length of its list, or None for a Tensor alone."""

    sizes: Sequence[int | None]
    several: bool
    """Whether it returns a tuple of results."""


def _grouped(layout: _Layout, *values: Any) -> Any:
    """Values, one for each Tensor that an operator returned, in lists as it returned them."""
    rest = iter(values)
    parts = tuple(next(rest) if size is None else [next(rest) for _ in range(size)] for size in layout.sizes)
    return parts if layout.several else parts[0]


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Sequence[str] = (),
    device_types: Any = None,
    schema: str | None = None,
) -> Any:
    """Make a function an operator, under a name like `my_operators::cube`."""
    if "::" not in name:
        raise CustomOperatorError(f"custom_op: a name is like my_operators::cube, found {name!r}")

    def make(function: Callable[..., Any]) -> CustomOpDef:
        parameters = list(signature(function).parameters)
        if schema is not None:
            return CustomOpDef(name, function, _changed(name, schema, parameters, mutates_args))
        changed = parameters if mutates_args == "unknown" else list(mutates_args)
        unknown = [parameter for parameter in changed if parameter not in parameters]
        if unknown:
            raise CustomOperatorError(
                f"{name}: mutates_args names {', '.join(unknown)}, but the function takes {', '.join(parameters)}; "
                'list parameters of the function, or give "unknown"'
            )
        return CustomOpDef(name, function, changed)

    return make if fn is None else make(fn)


def _changed(name: str, schema: str, parameters: Sequence[str], mutates_args: Sequence[str]) -> list[str]:
    """The parameters that a schema, such as `(Tensor(a!) x, float y) -> Tensor`, says are changed in place."""
    written = re.fullmatch(r"\s*\((.*)\)\s*->\s*[\w()\[\],!? ]+", schema)
    listed = [part.strip() for part in re.split(r",(?![^(\[]*[)\]])", written[1]) if part.strip()] if written else []
    taken = [part.partition("=")[0].split() for part in listed if part != "*"]
    if written is None or any(len(words) != 2 for words in taken):
        raise CustomOperatorError(f"{name}: a schema is like (Tensor(a!) x, float y) -> Tensor, found {schema!r}")
    if len(taken) != len(parameters):
        raise CustomOperatorError(
            f"{name}: the schema {schema} has {len(taken)} parameters, the function {len(parameters)}: "
            f"{', '.join(parameters)}"
        )
    changed = [parameter for kind, parameter in taken if "!" in kind]
    if set(changed) != set(mutates_args):
        found = ", ".join(changed) or "nothing"
        raise CustomOperatorError(
            f"{name}: the schema {schema} changes {found}, but mutates_args is {mutates_args!r}; write "
            "Tensor(a!) in the schema for each parameter that mutates_args names, and for no other"
        )
    return changed
