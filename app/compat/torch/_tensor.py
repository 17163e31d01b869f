"""`torch.Tensor`: the framework's Tensor with PyTorch's names, and with its rules where these differ."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

import app as _package
from app.compat.modules import MissingNameError, no_name
from app.compat.torch._types import ALIASES, CPU, DTYPES, Size, check_device, device, get_default_dtype, named, sizes
from app.compat.torch._types import dtype as types
from app.errors import GradientError, InPlaceError, OperatorError
from app.ops.methods import ValueMethods
from app.ops.public import PUBLIC
from app.tensor import Tensor as FrameworkTensor
from app.tensor import backward as _backward
from app.tensor.inplace import assigning
from app.tensor.modes import modes
from app.tensor.tape import RETAINED, Hook, HookHandle, hooks_of, with_own_version

app: Any = _package  # operators are created on import, invisible to a type checker
_GRAD: Any = vars(FrameworkTensor)["grad"]  # the slot that the property below translates


class RequiresGradError(OperatorError, RuntimeError):
    """A Tensor that cannot require gradients, or cannot stop requiring them."""


def in_torch(value: Any) -> Any:
    """The value, whose Tensors get PyTorch's names: the framework's own Tensors in it become `torch.Tensor`."""
    if type(value) is FrameworkTensor:
        value.__class__ = Tensor  # of the same layout: a copy would not be the Tensor that the tape knows
    elif isinstance(value, (list, tuple)):
        for item in value:
            in_torch(item)
    return value


class Tensor(FrameworkTensor):
    """An array on which operators run at once. With `requires_grad=True` they are recorded for `backward`."""

    __slots__ = ()
    is_given_gradients_when_frozen = False

    def __init__(self, *data: Any):
        """A Tensor of numbers in the default type, or with arbitrary elements, of the sizes given."""
        has_elements = len(data) == 1 and not isinstance(data[0], (int, Size))
        kind = get_default_dtype()
        super().__init__(np.array(data[0], kind) if has_elements else np.empty(sizes(data) if data else 0, kind))

    def apply_operator(self, definition: Any, inputs: Any, attributes: Any, into: Any = None) -> Any:
        """Run an operator, whose results are of this class."""
        return in_torch(super().apply_operator(definition, inputs, attributes, into))

    __add__, __radd__ = ValueMethods.__add__, ValueMethods.__radd__
    __sub__, __rsub__ = ValueMethods.__sub__, ValueMethods.__rsub__
    __mul__, __rmul__ = ValueMethods.__mul__, ValueMethods.__rmul__
    __truediv__, __rtruediv__ = ValueMethods.__truediv__, ValueMethods.__rtruediv__
    __lt__, __le__ = ValueMethods.__lt__, ValueMethods.__le__
    __gt__, __ge__ = ValueMethods.__gt__, ValueMethods.__ge__
    __iadd__, __isub__, __imul__ = assigning("add"), assigning("subtract"), assigning("multiply")
    __itruediv__, __ipow__ = assigning("divide"), assigning("pow")

    # Shape and type

    @property
    def shape(self) -> Any:
        return Size(self._array.shape)

    def size(self, dim: int | None = None) -> Any:  # type: ignore[override]
        """The shape, or the size of one axis."""
        return self.shape if dim is None else self.shape[dim]

    @property
    def dtype(self) -> types:
        return DTYPES[self._array.dtype.name]

    @property
    def device(self) -> device:
        return CPU

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def to(self, *args: Any, dtype: Any = None, device: Any = None) -> Tensor:
        """The Tensor converted to an element type, or that of another Tensor; itself if it has that type."""
        for argument in args:
            if isinstance(argument, FrameworkTensor):
                dtype = argument.dtype
            elif isinstance(argument, types) or argument in (float, int, bool):
                dtype = argument
            else:
                device = argument
        check_device(device)
        if dtype is None or named(dtype) == self.dtype:
            return self
        converted: Tensor = app.cast(self, dtype=named(dtype))
        return converted

    def type(self, dtype: Any) -> Tensor:
        """The Tensor converted to an element type."""
        return self.to(dtype=dtype)

    # Elements

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(_index(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        self._check_own_memory()
        super().__setitem__(_index(index), value)

    def become(self, result: Any) -> Any:
        """Take the elements of a result, as `x += y` does."""
        self._check_own_memory()
        return super().become(result)

    def _check_own_memory(self) -> None:
        if not self._array.flags.writeable and self._sharing is not None:
            raise InPlaceError(
                "a Tensor that was expanded cannot be changed in place, because several of its elements are one in "
                "memory; change its clone()"
            )

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The elements, as an array that shares the memory."""
        if self.requires_grad and modes().on and not force:
            raise RequiresGradError("numpy() of a Tensor that requires grad: use tensor.detach().numpy()")
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self.requires_grad and modes().on:
            raise RequiresGradError("a Tensor that requires grad cannot become an array: use tensor.detach().numpy()")
        return super().__array__(dtype, copy)

    # Gradients

    @property
    def requires_grad(self) -> bool:
        return not self.stop_gradient

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set whether gradients are computed."""
        if requires_grad and not self.is_floating_point():
            raise RequiresGradError(f"only Tensors of floating point dtype can require gradients, this is {self.dtype}")
        if not (requires_grad or self.stop_gradient or self.is_leaf):
            raise RequiresGradError("requires_grad of a result cannot be switched off; take its detach()")
        self.stop_gradient = not requires_grad
        return self

    @property
    def grad(self) -> Any:
        return _GRAD.__get__(self)

    @grad.setter
    def grad(self, value: Any) -> None:
        if type(value) is FrameworkTensor and value._node is None:
            value.stop_gradient = True  # in Paddle a gradient can be differentiated
        _GRAD.__set__(self, in_torch(value))

    @grad.deleter
    def grad(self) -> None:
        _GRAD.__set__(self, None)

    @property
    def grad_fn(self) -> Any:
        """The operator that made it, if it was recorded: it has a name, and is of no other use."""
        name = "" if self._node is None else _maker(self)
        methods = {"name": lambda _: name, "__repr__": lambda _: f"<{name}>", "__getattr__": _no_attribute}
        return type(name, (), methods)() if name else None

    def backward(
        self, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """Add the gradients of this Tensor to the `.grad` of the leaves that it was computed from."""
        backward(self, gradient, retain_graph, create_graph, inputs)

    def retain_grad(self) -> None:
        """Keep the gradient in `.grad`, although an operator made this Tensor."""
        if self.stop_gradient:
            raise GradientError("a Tensor with requires_grad=False has no gradient to retain")
        self.retain_grads()

    def register_hook(self, hook: Hook) -> HookHandle:
        """Register a function that is called with the gradient in each backward pass and may replace it."""
        handle = super().register_hook(lambda gradient: hook(in_torch(gradient)))
        hooks = hooks_of(self)
        if RETAINED in hooks:  # in PyTorch the gradient after all hooks is kept
            hooks[RETAINED] = hooks.pop(RETAINED)
        return handle

    def detach(self) -> Any:
        """A Tensor that shares the memory, and through which no gradient flows."""
        return in_torch(super().detach())

    def detach_(self) -> Tensor:
        """Leave the graph."""
        self._node, self.stop_gradient = None, True
        return self

    @property
    def data(self) -> Tensor:
        """The same numbers without the graph. Unlike after `detach()`, changes in place go unnoticed."""
        return in_torch(FrameworkTensor(with_own_version(self._array)))

    @data.setter
    def data(self, value: Tensor) -> None:
        self._array = with_own_version(value._array)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """A copy of a leaf, with a copy of its gradient."""
        if self._node is not None:
            raise OperatorError(
                "a Tensor that an operator made cannot be copied with copy.deepcopy (only Tensors created explicitly "
                "by the user, graph leaves, support it); take a copy of its detach()"
            )
        copied = super().__deepcopy__(memo)
        copied.grad = deepcopy(self.grad, memo)
        return copied

    # Printing

    def __getattr__(self, name: str) -> Any:
        raise MissingNameError(no_name("torch.Tensor", name), name=name)

    def __repr__(self) -> str:
        array, notes = self._array, []
        numbers = np.array2string(array, 81, separator=", ", prefix="tensor(", **_format(array)) if array.size else "[]"
        if array.dtype.name not in (get_default_dtype(), "int64", "bool"):
            notes.append(f"dtype={self.dtype}")
        if self._node is not None:
            notes.append(f"grad_fn=<{_maker(self)}>")
        elif self.requires_grad:
            notes.append("requires_grad=True")
        text = f"tensor({numbers}"
        for note in notes:  # on a new line where the last one is full
            text += f", {note}" if len(text) - text.rfind("\n") + len(note) < 78 else f",\n       {note}"
        return f"{text})"

    def __format__(self, form: str) -> str:
        return format(self.item(), form) if not self._array.ndim else format(str(self), form)


Tensor.__module__ = "torch"  # as it prints


def _no_attribute(grad_fn: Any, name: str) -> Any:
    raise MissingNameError(no_name("torch.Tensor.grad_fn", name), name=name)


def _converter(name: str) -> Callable[[Tensor], Tensor]:
    return lambda self: self.to(dtype=DTYPES[name])


for _name, _type in (*ALIASES.items(), ("bool", "bool")):
    setattr(Tensor, _name, _converter(_type))


class _Missing:
    """A method of the framework's Tensors that PyTorch's lack, or that does something else there."""

    def __init__(self, name: str):
        self._name = name

    def __get__(self, tensor: Any, owner: type) -> Any:
        raise MissingNameError(no_name("torch.Tensor", self._name), name=self._name)


def add_methods(methods: dict[str, Any], same: frozenset[str]) -> None:
    """Give Tensors methods. Of the framework's operators those in `same` stay methods, and no other one."""
    for name, entry in PUBLIC.items():
        if entry.method and name not in same:
            setattr(Tensor, name, _Missing(name))
        if entry.in_place:
            setattr(Tensor, f"{name}_", _Missing(f"{name}_"))
    for name, method in methods.items():
        setattr(Tensor, name, method)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` to the `.grad` of every leaf that requires one, or of `inputs` only."""
    starts = check_starts(listed(tensors), grad_tensors)
    _backward(listed(tensors), starts, create_graph if retain_graph is None else retain_graph, create_graph, inputs)


def listed(values: Any) -> list[Any]:
    """One Tensor, or several, as a list."""
    return [values] if isinstance(values, FrameworkTensor) else list(values)


def check_starts(tensors: list[Any], starts: Any) -> list[Any]:
    """The gradients from which a backward pass starts, one for each Tensor; an error if it cannot start there."""
    starts = [None] * len(tensors) if starts is None else listed(starts)
    for place, tensor in enumerate(tensors):
        if tensor.stop_gradient:
            raise GradientError(
                f"element {place} of tensors does not require grad and does not have a grad_fn: nothing that it was "
                "computed from requires a gradient"
            )
        if place < len(starts) and starts[place] is None and tensor._array.size != 1:
            raise OperatorError(
                f"backward from a Tensor of shape {list(tensor.shape)} without a gradient for it: grad can be "
                "implicitly created only for scalar outputs; sum it, or pass the gradient"
            )
    return starts


def _index(index: Any) -> Any:
    """The index with a number in place of an integer Tensor without axes, whose part is a view."""
    if isinstance(index, tuple):
        return tuple(map(_index, index))
    if isinstance(index, FrameworkTensor) and index.dtype == "uint8":
        raise OperatorError(
            "an index of torch.uint8 is ambiguous; use index.bool() for a mask, index.long() for places"
        )
    if isinstance(index, FrameworkTensor) and not index._array.ndim and index._array.dtype.kind == "i":
        return int(index._array)
    return index


def _maker(tensor: Tensor) -> str:
    """The name of the operator that made a Tensor, as PyTorch prints one."""
    definition = tensor._node.definition  # type: ignore[union-attr]
    if definition.custom:
        return f"{definition.name}Backward"
    return f"{''.join(part.capitalize() for part in definition.name.split('_'))}Backward0"


def _format(array: np.ndarray) -> dict[str, Any]:
    """Settings for `np.array2string`: numbers of one width, with an exponent if their sizes differ much."""
    form = "{}"
    if array.dtype.kind == "f":
        sizes = np.abs(array[np.isfinite(array) & (array != 0)].astype(np.float64))
        whole = bool((sizes == np.ceil(sizes)).all())
        form = "{:.0f}." if whole else "{:.4f}"
        if sizes.size and (sizes.max() > 1000 * sizes.min() or sizes.max() > 1e8 or (not whole and sizes.min() < 1e-4)):
            form = "{:.4e}"

    def text(number: Any) -> str:
        return form.format(number) if array.dtype.kind != "f" or np.isfinite(number) else f"{number}"

    shown = array.ravel() if array.size <= 1000 else np.concatenate([array.ravel()[:1000], array.ravel()[-1000:]])
    width = max(len(text(number)) for number in shown)
    return {"threshold": 1000, "formatter": {"all": lambda number: text(number).rjust(width)}}
