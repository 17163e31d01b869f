"""`to_static` and its switches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from app.jit.convert.meaning import leave
from app.jit.function import StaticFunction, enabled
from app.nn.layer import Layer


def to_static(
    function: Any = None,
    input_spec: Sequence[Any] | None = None,
    backend: str | None = None,
) -> Any:
    """Run a function, or the `forward` of a Layer, as a Program; it is traced again for each new kind of arguments.

    `if`, `while` and `for` over Tensors become operators of control flow.

    Args:
        function: The function or the Layer; a Layer is returned itself.
        input_spec: InputSpecs of the arguments, to fix shapes and types.
        backend: "compiled" (the default), or "reference" for the engine that runs operators one by one.
    """

    def make(target: Any) -> Any:
        if isinstance(target, Layer):
            forward = target.forward
            function = (
                forward._function if isinstance(forward, StaticFunction) else getattr(forward, "__func__", forward)
            )
            object.__setattr__(target, "forward", StaticFunction(function, input_spec, backend, target))
            return target
        if isinstance(target, StaticFunction):
            return StaticFunction(target._function, input_spec, backend, target._instance)
        instance = getattr(target, "__self__", None)
        if instance is not None and not isinstance(instance, type) and hasattr(target, "__func__"):
            return StaticFunction(target.__func__, input_spec, backend, instance)
        return StaticFunction(target, input_spec, backend)

    return make if function is None else make(function)


def not_to_static(function: Callable[..., Any] | None = None) -> Any:
    """Exclude a function from conversion: in a traced function it runs with Python's own `if`s and loops."""
    return leave(function) if function is not None else leave


def enable_to_static(enable: bool = True) -> None:
    """Switch between running `to_static` functions as Programs and running them eagerly."""
    enabled["to_static"] = bool(enable)
