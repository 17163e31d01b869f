"""`torch.nn.Module`: the framework's Layer with PyTorch's names and PyTorch's way to print."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from app.compat.torch._device import check_device
from app.compat.torch._dtype import dtype as types
from app.compat.torch.nn.parameter import Parameter
from app.errors import AppError
from app.nn import Layer
from app.nn.hooks import BackwardHook, BothHandles
from app.ops.dtype import canonical, fitting


class StateDictError(AppError, RuntimeError):
    """A state dict that does not fit a Module."""


class Keys(NamedTuple):
    """The missing and the unexpected keys of a state dict."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not any(self):
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class Module(Layer):
    """The base of every layer and network. Parameters and modules that are set as attributes are found by name."""

    def __init__(self) -> None:
        super().__init__()

    def _place(self, device: Any, dtype: Any) -> None:
        """Set the type of parameters, before the constructor of a layer makes them."""
        check_device(device)
        self._dtype = None if dtype is None else canonical(dtype)

    def create_parameter(self, shape: Any, attr: Any = None, *args: Any, **kwargs: Any) -> Any:
        """A new Parameter, or None where `attr` is False."""
        made = super().create_parameter(shape, attr, *args, **kwargs)
        return None if made is None else Parameter(made, not made.stop_gradient)

    # Finding

    def modules(self) -> Iterator[Module]:
        """This module and every one inside."""
        return (module for _, module in self.named_modules())

    def named_modules(self, memo: Any = None, prefix: str = "", remove_duplicate: bool = True) -> Iterator[Any]:
        """This module and every one inside, with the path of names that leads to it; a shared one is given once."""
        return self.named_sublayers(prefix, True, memo, remove_duplicate)

    @property
    def _modules(self) -> dict[str, Any]:
        found: dict[str, Any] = self.__dict__.setdefault("_sub_layers", OrderedDict())
        return found

    def parameters(self, recurse: bool = True) -> Any:
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Any:
        """Every parameter with its path; one that is shared is given once."""
        return super().named_parameters(prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Any:
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Any:
        """Every buffer with its path."""
        return super().named_buffers(prefix, recurse, remove_duplicate)

    def get_submodule(self, target: str) -> Any:
        """The module at a path of names."""
        found: Any = self
        for name in target.split(".") if target else ():
            if name not in found._modules:
                raise ModuleError(f"{type(found).__name__} has no module {name!r}; it has {', '.join(found._modules)}")
            found = found._modules[name]
        return found

    def get_parameter(self, target: str) -> Any:
        """The parameter at a path of names."""
        path, _, name = target.rpartition(".")
        return getattr(self.get_submodule(path), name)

    # Making

    def register_parameter(self, name: str, param: Any) -> None:
        """Set a parameter by name; None leaves it empty."""
        setattr(self, name, param)

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Set a Tensor that is part of the module's state, but not a parameter."""
        super().register_buffer(name, tensor, persistent)

    def add_module(self, name: str, module: Any) -> None:
        """Set a module by name."""
        setattr(self, name, module)

    register_module = add_module

    def register_forward_hook(self, hook: Callable[..., Any]) -> Any:
        """Call `hook(module, inputs, output)` after `forward`. If it returns something, that replaces the output."""
        return self.register_forward_post_hook(hook)

    def register_full_backward_hook(self, hook: Callable[..., Any]) -> Any:
        """Call `hook(module, grad_input, grad_output)` in a backward pass; what it returns replaces `grad_input`."""
        both = BackwardHook(hook)
        handles = self.register_forward_pre_hook(both.before), self.register_forward_post_hook(both.after)
        return BothHandles(handles)

    # State

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of every parameter to None, or to zero."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad = parameter.grad.detach().zero_()

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Choose whether gradients of every parameter are computed."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def to(
        self,
        *args: Any,
        device: Any = None,
        dtype: Any = None,
        non_blocking: bool = False,
        memory_format: Any = None,
    ) -> Any:
        """Convert floating parameters and buffers to another element type; the only device is the CPU."""
        for argument in (*args, device, dtype):
            if hasattr(argument, "dtype"):
                dtype = argument.dtype
            elif isinstance(argument, types) or argument is dtype:
                dtype = argument
            elif not isinstance(argument, bool):
                check_device(argument)
        if dtype is not None:
            self._change_type(canonical(dtype))
        return self

    def half(self) -> Any:
        """Convert floating parameters and buffers to half precision."""
        return self.to(dtype="float16")

    def cpu(self) -> Any:
        return self

    def state_dict(  # type: ignore[override]
        self, *, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Every parameter and buffer that is to be saved, by its path, module after module."""
        own: dict[str, Any] = OrderedDict()
        for path, module in self.named_modules(prefix=prefix.rstrip(".")):
            part = Layer.state_dict(module, include_sublayers=False, structured_name_prefix=path)
            for key, value in part.items():
                self._put(own, key, value)
        return OrderedDict((path, value if keep_vars else value.detach()) for path, value in own.items())

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Keys:
        """Load parameters and buffers by path."""
        own = self.state_dict()
        keys = Keys([k for k in own if k not in state_dict], [k for k in state_dict if k not in own])
        problems = [
            f"size mismatch for {k}: found {tuple(state_dict[k].shape)}, expected {tuple(value.shape)}"
            for k, value in own.items()
            if k in state_dict and tuple(state_dict[k].shape) != tuple(value.shape)
        ]
        if strict:
            named = {"Missing": keys.missing_keys, "Unexpected": keys.unexpected_keys}
            problems += [f"{word} key(s) in state_dict: {', '.join(map(repr, k))}" for word, k in named.items() if k]
        if problems:
            raise StateDictError(f"Error(s) in loading state_dict for {type(self).__name__}: " + "; ".join(problems))
        label = f"{type(self).__name__}.load_state_dict: "
        arrays = {k: fitting(label + k, state_dict[k], canonical(own[k].dtype)) for k in own if k in state_dict}
        for path, array in arrays.items():
            own[path].set_value(array)
        return keys

    # Printing

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        inside = [f"({name}): {indented(repr(module))}" for name, module in self._modules.items()]
        if not inside and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + inside) + "\n)"


class ModuleError(AppError, AttributeError):
    """A module was asked for a submodule that it does not have."""


def indented(text: str) -> str:
    return text.replace("\n", "\n  ")
