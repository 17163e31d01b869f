"""Layers that are one function and its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from types import MappingProxyType
from typing import Any, ClassVar

from app.nn.layer import Layer

REQUIRED = Parameter.empty
"""The default of a setting that has none."""


class FunctionLayer(Layer):
    """A layer without parameters. It calls `function` with its inputs and its settings, which are its attributes."""

    function: ClassVar[Callable[..., Any]]
    settings: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """The settings and their defaults, in the order in which the layer takes them."""
    shown: ClassVar[Sequence[str] | None] = None
    """The settings that `print` shows; None for all."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        settings = [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD, default=d) for n, d in cls.settings.items()]
        named = Parameter("name", Parameter.POSITIONAL_OR_KEYWORD, default=None)
        cls.__signature__ = Signature([*settings, named])  # type: ignore[attr-defined]

    def __init__(self, *args: Any, **kwargs: Any):
        bound = type(self).__signature__.bind(*args, **kwargs)  # type: ignore[attr-defined]
        bound.apply_defaults()
        super().__init__(bound.arguments.pop("name"))
        for name, value in bound.arguments.items():
            setattr(self, name, value)

    def forward(self, *inputs: Any) -> Any:
        return type(self).function(*inputs, **{name: getattr(self, name) for name in self.settings})

    def extra_repr(self) -> str:
        shown = self.settings if self.shown is None else self.shown
        return ", ".join(f"{name}={getattr(self, name)}" for name in shown)


def layer_of(name: str, function: Callable[..., Any], shown: Sequence[str] | None = None, **settings: Any) -> Any:
    """The class of layers that are a function; `settings` are its other parameters with their defaults."""
    home = __name__.rpartition(".layers.")[0]
    described = {"__doc__": function.__doc__, "__module__": home, "function": function, "settings": settings}
    return type(name, (FunctionLayer,), described | {"shown": shown})
