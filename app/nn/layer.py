"""`Layer`: parameters and other layers under one name, and the function that they compute."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from app.errors import AppError, ShapeError
from app.graph import names
from app.graph.program import Parameter as ProgramParameter
from app.nn.parameter import create_parameter
from app.tensor import Parameter, Tensor


class Layer:
    """The base of every layer and network. Parameters and layers that are set as attributes are found by name."""

    def __init__(self, name_scope: str | None = None) -> None:
        self._parameters: dict[str, Any]
        self.training = True
        object.__setattr__(self, "_full_name", names.generate(name_scope or type(self).__name__.lower()))

    def __setattr__(self, name: str, value: Any) -> None:
        parameters = self.__dict__.setdefault("_parameters", OrderedDict())
        layers = self.__dict__.setdefault("_sub_layers", OrderedDict())
        parameters.pop(name, None)
        layers.pop(name, None)
        if isinstance(value, (Parameter, ProgramParameter)):
            parameters[name] = value
        elif isinstance(value, Layer):
            layers[name] = value
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        self.__dict__["_parameters"].pop(name, None)
        self.__dict__["_sub_layers"].pop(name, None)

    def full_name(self) -> str:
        """The name that this layer's parameters begin with."""
        return str(self._full_name)  # type: ignore[attr-defined]

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Compute the layer's result; subclasses say how."""
        raise NotImplementedError(f"{type(self).__name__} needs a method forward")

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.forward(*inputs, **kwargs)

    def create_parameter(
        self, shape: Any, attr: Any = None, dtype: Any = None, is_bias: bool = False, default_initializer: Any = None
    ) -> Any:
        """A new parameter named after this layer; set it as an attribute."""
        name = names.generate(f"{self.full_name()}.{'b' if is_bias else 'w'}")
        return create_parameter(shape, dtype, attr, is_bias, default_initializer, name)

    def add_sublayer(self, name: str, sublayer: Layer) -> Layer:
        if not isinstance(sublayer, Layer):
            raise AppError(f"{type(self).__name__}: sublayer {name!r} must be a Layer, found {sublayer!r}")
        setattr(self, name, sublayer)
        return sublayer

    def add_parameter(self, name: str, parameter: Any) -> Any:
        setattr(self, name, parameter)
        return parameter

    # Finding

    def named_sublayers(self, prefix: str = "", include_self: bool = False) -> Iterator[tuple[str, Layer]]:
        """Every layer inside, with the path of names that leads to it."""
        if include_self:
            yield prefix, self
        for name, layer in self.__dict__.get("_sub_layers", {}).items():
            yield from layer.named_sublayers(f"{prefix}.{name}" if prefix else name, include_self=True)

    def named_parameters(self, prefix: str = "", include_sublayers: bool = True) -> Iterator[tuple[str, Any]]:
        """Every parameter with its path; one that is shared is given once."""
        seen: set[int] = set()
        layers = self.named_sublayers(prefix, include_self=True) if include_sublayers else [(prefix, self)]
        for path, layer in layers:
            for name, parameter in layer.__dict__.get("_parameters", {}).items():
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield (f"{path}.{name}" if path else name), parameter

    def parameters(self, include_sublayers: bool = True) -> list[Any]:
        return [parameter for _, parameter in self.named_parameters("", include_sublayers)]

    def sublayers(self, include_self: bool = False) -> list[Layer]:
        return [layer for _, layer in self.named_sublayers("", include_self)]

    def children(self) -> Iterator[Layer]:
        yield from self.__dict__.get("_sub_layers", {}).values()

    # State

    def train(self) -> None:
        """Behave as in training."""
        self._set_training(True)

    def eval(self) -> None:
        """Behave as in use."""
        self._set_training(False)

    def _set_training(self, training: bool) -> None:
        for layer in self.sublayers(include_self=True):
            layer.training = training

    def clear_gradients(self) -> None:
        """Forget the gradients of every parameter."""
        for parameter in self.parameters():
            parameter.clear_grad()

    def state_dict(self) -> dict[str, Tensor]:
        """Every parameter by its path."""
        return OrderedDict(self.named_parameters())

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over parameters by path; every one must be there, in its shape."""
        own = dict(self.named_parameters())
        missing, unknown = own.keys() - state_dict.keys(), state_dict.keys() - own.keys()
        if missing or unknown:
            raise AppError(
                f"{type(self).__name__}.set_state_dict: missing are {', '.join(sorted(missing)) or 'none'}, "
                f"unknown are {', '.join(sorted(unknown)) or 'none'}"
            )
        for path, parameter in own.items():
            array = np.asarray(state_dict[path])
            if list(array.shape) != list(parameter.shape):
                raise ShapeError(f"{path} has shape {list(parameter.shape)}, the state dict has {list(array.shape)}")
        for path, parameter in own.items():
            parameter.set_value(np.asarray(state_dict[path]))

    load_dict = set_state_dict

    def __repr__(self) -> str:
        inside = [
            f"  ({name}): {layer!r}".replace("\n", "\n  ") for name, layer in self.__dict__["_sub_layers"].items()
        ]
        head = f"{type(self).__name__}({self.extra_repr()}"
        return "\n".join([head, *inside, ")"]) if inside else head + ")"

    def extra_repr(self) -> str:
        """What `print` shows inside the parentheses."""
        return ""
