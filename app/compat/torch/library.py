"""torch.library"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import app
from app.autograd import Function
from app.compat.missing import missing
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
        return self._gradient.apply(*args, **kwargs)

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Say how the gradients of the inputs follow from those of the outputs.

        `setup_context(ctx, inputs, output)` keeps in `ctx` what `backward(ctx, *gradients)` needs.
        """
        if self._mutates:
            raise CustomOperatorError(f"{self._name} changes {', '.join(self._mutates)}, so it has no gradient")
        members = {
            "forward": staticmethod(self._function),
            "setup_context": staticmethod(setup_context or (lambda ctx, inputs, output: None)),
            "backward": staticmethod(backward),
        }
        self._gradient = type(self._name.rpartition("::")[2], (Function,), members)

    def register_fake(self, function: Callable[..., Any], /) -> Callable[..., Any]:
        """Nothing: shapes are known from the values here, as no operator runs without them."""
        return function

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._name})>"


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Sequence[str] = (),
    device_types: Any = None,
    schema: str | None = None,
) -> Any:
    """Make a function an operator, under a name like `my_operators::cube`."""
    if "::" not in name:
        raise CustomOperatorError(f"custom_op: a name is like my_operators::cube, found {name!r}")

    def make(function: Callable[..., Any]) -> CustomOpDef:
        return CustomOpDef(name, function, mutates_args)

    return make if fn is None else make(fn)


__all__ = ["CustomOpDef", "custom_op"]

__getattr__ = missing(__name__)
