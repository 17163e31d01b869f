"""`Layer`: the base class of layers and networks."""

from __future__ import annotations

import re
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from app.device import set_device
from app.errors import AppError, ShapeError
from app.graph import names
from app.nn.hooks import HookRemoveHelper, inputs_after, output_after
from app.nn.parameter import create_parameter, new_name
from app.nn.tree import KINDS, Tree
from app.ops.dtype import canonical, fitting, is_float
from app.tensor.modes import modes

L = TypeVar("L", bound="Layer")


class Layer(Tree):
    """The base class of all layers and networks. Parameters and layers set as attributes are registered by name."""

    def __init__(self, name_scope: str | None = None, dtype: Any = None) -> None:
        self.training = True
        self._dtype = getattr(self, "_dtype", None) if dtype is None else canonical(dtype)
        self._forward_pre_hooks: dict[int, Callable[..., Any]] = {}
        self._forward_post_hooks: dict[int, Callable[..., Any]] = {}
        object.__setattr__(self, "_full_name", names.generate(name_scope or _snake_case(type(self).__name__)))

    def full_name(self) -> str:
        """The unique name of this layer, with which the names of its parameters begin."""
        return str(self._full_name)  # type: ignore[attr-defined]

    # Computing

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Compute the output; subclasses define this."""
        raise NotImplementedError(f"{type(self).__name__} needs a method forward")

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        tracer = modes().tracer
        forward = self.forward if tracer is None else tracer.forward_of(self)
        before, after = self._forward_pre_hooks, self._forward_post_hooks
        if not (before or after):
            return forward(*inputs, **kwargs)
        if tracer is not None:
            before, after = tracer.hooks_of(self)
        inputs = inputs_after(before, self, inputs)
        return output_after(after, self, inputs, forward(*inputs, **kwargs))

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> HookRemoveHelper:
        """Call `hook(layer, inputs)` before `forward`. A return value other than None replaces the inputs."""
        return HookRemoveHelper(self._forward_pre_hooks, hook)

    def register_forward_post_hook(self, hook: Callable[..., Any]) -> HookRemoveHelper:
        """Call `hook(layer, inputs, output)` after `forward`. A return value other than None replaces the output."""
        return HookRemoveHelper(self._forward_post_hooks, hook)

    def create_parameter(
        self, shape: Any, attr: Any = None, dtype: Any = None, is_bias: bool = False, default_initializer: Any = None
    ) -> Any:
        """Create a parameter named after this layer, to be set as an attribute; None if `attr` is False."""
        if attr is False:
            return None
        name = new_name(f"{self.full_name()}.{'b' if is_bias else 'w'}")
        return create_parameter(shape, dtype or self._dtype, name, attr, is_bias, default_initializer)

    def __copy__(self: L) -> L:
        """A shallow copy. Its `forward` is its own if `to_static` was applied to this layer."""
        copied = object.__new__(type(self))
        for name, value in vars(self).items():
            if name in KINDS:
                value = value.copy()  # else a part that is set in one layer would be listed in both, and used in one
            copied.__dict__[name] = value.of(copied) if getattr(value, "_instance", None) is self else value
        return copied

    # State

    def train(self: L, mode: bool = True) -> L:
        """Set training mode for this layer and its sublayers."""
        for layer in self.sublayers(include_self=True):
            layer.training = mode
        return self

    def eval(self: L) -> L:
        """Set evaluation mode for this layer and its sublayers."""
        return self.train(False)

    def clear_gradients(self, set_to_zero: bool = True) -> None:
        """Set the gradients of all parameters to zero, or to None."""
        for parameter in self.parameters():
            parameter.clear_grad(set_to_zero)

    def state_dict(
        self,
        destination: dict[str, Any] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
    ) -> dict[str, Any]:
        """All parameters and persistent buffers by path; they are put into `destination`, if it is given."""
        state: dict[str, Any] = OrderedDict()
        prefix = structured_name_prefix.rstrip(".")
        for key, parameter in self.named_parameters(prefix, include_sublayers):
            self._put(state, key, parameter)
        for path, layer in self.named_sublayers(prefix, include_self=True) if include_sublayers else [(prefix, self)]:
            passing = layer.__dict__.get("_non_persistable_buffer_names_set", ())
            for name, buffer in layer._held("_buffers").items():
                if buffer is not None and name not in passing:
                    self._put(state, f"{path}.{name}" if path else name, buffer)
        if destination is None:
            return state
        destination.update(state)
        return destination

    def _put(self, state: dict[str, Any], path: str, value: Any) -> None:
        if state.setdefault(path, value) is not value:
            raise AppError(
                f"{type(self).__name__}.state_dict: two values have the path {path!r}; names of layers with dots can "
                "lead to this, as of 'a.b' and of 'b' inside 'a': rename one"
            )

    def set_state_dict(
        self, state_dict: Mapping[str, Any], use_structured_name: bool = True
    ) -> tuple[list[str], list[str]]:
        """Load parameters and buffers by path, or by their own names. Returns the missing and the unexpected keys.

        Missing ones keep their values, with a warning. If a shape or an element type does not fit, nothing is changed.
        """
        own = self.state_dict()
        values = {path: state_dict.get(path if use_structured_name else value.name) for path, value in own.items()}
        missing = [path for path, value in values.items() if value is None]
        names = set(own) if use_structured_name else {value.name for value in own.values()}
        unexpected = [path for path in state_dict if path not in names]
        arrays: dict[str, np.ndarray] = {}
        for path in [path for path in own if path not in missing]:
            shape, label = list(np.asarray(values[path]).shape), f"{type(self).__name__}.set_state_dict: {path}"
            if shape != list(own[path].shape):
                raise ShapeError(
                    f"{label} has shape {list(own[path].shape)}, the state dict has {shape}; nothing was changed"
                )
            arrays[path] = fitting(label, values[path], own[path].dtype)
        for what, paths in (("missing, and stay as they are", missing), ("not in this layer", unexpected)):
            if paths:
                warnings.warn(f"{type(self).__name__}.set_state_dict: {', '.join(paths)}: {what}", stacklevel=2)
        for path, array in arrays.items():
            own[path].set_value(array)
        return missing, unexpected

    def to(self: L, device: Any = None, dtype: Any = None) -> L:
        """Convert parameters and buffers to another floating type; the only device is the CPU. Returns the layer."""
        if device is not None:
            set_device(device)
        if dtype is not None:
            self._change_type(canonical(dtype))
        return self

    def astype(self: L, dtype: Any = None) -> L:
        """Convert parameters and buffers to another floating type. Returns the layer."""
        return self.to(dtype=dtype)

    def float(self: L) -> L:
        """Convert parameters and buffers to float32. Returns the layer."""
        return self.to(dtype="float32")

    def double(self: L) -> L:
        """Convert parameters and buffers to float64. Returns the layer."""
        return self.to(dtype="float64")

    def _change_type(self, dtype: str) -> None:
        for layer in self.sublayers(include_self=True):
            layer._dtype = dtype
        for _, value in [*self.named_parameters(), *self.named_buffers()]:
            if is_float(value.dtype):
                value._array = value._array.astype(dtype)

    # Printing

    def __repr__(self) -> str:
        inside = [f"  ({name}): {layer!r}".replace("\n", "\n  ") for name, layer in self.named_children()]
        head = f"{type(self).__name__}({self.extra_repr()}"
        return "\n".join([head, *inside, ")"]) if inside else head + ")"

    def extra_repr(self) -> str:
        """The text that `print` shows inside the parentheses."""
        return ""


def _snake_case(name: str) -> str:
    """`BatchNorm1D` as `batch_norm1d`."""
    parted = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", parted).lower()
