"""`torch.Tensor`: the framework's Tensor with PyTorch's names, which prints as in PyTorch.

Operators return the class of their inputs, so the framework's operators return such Tensors as well.
"""

from __future__ import annotations

from copy import deepcopy
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np

import app
from app.compat.missing import MissingNameError
from app.compat.torch import _changes, _matrices, _pointwise, _products, _reductions, _shapes  # noqa: F401 - they fill METHODS
from app.compat.torch._device import CPU, check_device, device
from app.compat.torch._dtype import DTYPES, NAMED, get_default_dtype, named
from app.compat.torch._dtype import dtype as types
from app.compat.torch._grad_fn import Node, name_of, node_of
from app.compat.torch._printing import tensor_text
from app.compat.torch._size import Size, sizes
from app.compat.torch._table import METHODS
from app.errors import OperatorError
from app.ops.gone import INSTEAD, without
from app.ops.lowering import Constant, Elementwise
from app.ops.methods import ValueMethods
from app.tensor import Tensor as FrameworkTensor
from app.tensor import backward
from app.tensor.inplace import assigning
from app.tensor.modes import modes
from app.tensor.tape import with_own_version


class _Constructor(type):
    """`torch.Tensor(...)`: numbers become float32, and sizes give an empty Tensor. Operators do not call it."""

    def __call__(cls, *data: Any, **settings: Any) -> Any:
        if cls is not Tensor:
            return super().__call__(*data, **settings)
        kind = get_default_dtype()
        if not data or isinstance(data[0], (int, Size)):
            return cls.result_class(np.empty(sizes(data) if data else (0,), kind))
        return cls.result_class(np.array(data[0], kind))


_Base: Any = object  # the class that it is mixed into has many more attributes


class TensorMethods(_Base):  # type: ignore[misc]
    """The methods of Tensors and of the values that stand for them in a traced function."""

    __slots__ = ()
    stop_gradient: Any

    # Shape and type

    @property
    def shape(self) -> Any:
        return Size(super().shape)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one axis."""
        shape = Size(getattr(self, "asked_shape", None) or self.shape)
        return shape if dim is None else shape[dim]

    @property
    def dtype(self) -> Any:
        name = super().dtype
        return DTYPES.get(name, name)  # the context of a custom Function has the type `object`

    @property
    def device(self) -> device:
        return CPU

    is_cuda = property(lambda self: False)
    is_sparse = property(lambda self: False)
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.numel() * self.dtype.itemsize)
    layout = property(lambda self: "torch.strided")

    @property
    def mT(self) -> Any:
        """The matrix, or each of a stack of matrices, with its two axes exchanged."""
        return METHODS["transpose"](self, -2, -1)

    def ndimension(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        """The number of elements."""
        return int(self.size().numel())

    nelement = numel

    def element_size(self) -> int:
        return int(self.dtype.itemsize)

    def is_contiguous(self) -> bool:
        return True

    def is_floating_point(self) -> bool:
        return bool(self.dtype.is_floating_point)

    # Assignments such as `x += y`, which change x in place; with the framework's Tensors they make a new one

    __iadd__, __isub__ = assigning("add"), assigning("subtract")
    __imul__, __itruediv__ = assigning("multiply"), assigning("divide")
    __ifloordiv__, __imod__, __ipow__ = assigning("floor_divide"), assigning("remainder"), assigning("pow")
    __iand__, __ior__, __ixor__ = assigning("bitwise_and"), assigning("bitwise_or"), assigning("bitwise_xor")

    # Parts

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(_index(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(_index(index), value)

    # Gradients

    @property
    def requires_grad(self) -> bool:
        return not self.stop_gradient

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Set whether gradients are computed."""
        if requires_grad and not self.dtype.is_floating_point:
            raise RequiresGradError(f"only Tensors of floating point dtype can require gradients, this is {self.dtype}")
        if not (requires_grad or self.stop_gradient or self.is_leaf):
            raise RequiresGradError("requires_grad of a result cannot be switched off; take its detach()")
        if requires_grad is self.stop_gradient and getattr(self, "is_data", False):
            raise RequiresGradError("requires_grad of an argument of a traced function is set before it is called")
        self.stop_gradient = not requires_grad
        return self

    def backward(
        self, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """Add the gradients of this Tensor to the `.grad` of the leaves that it was computed from."""
        backward([self], [gradient], create_graph if retain_graph is None else retain_graph, create_graph, inputs)

    @property
    def data(self) -> Any:
        """The same numbers without the graph."""
        return self.detach()

    # Other types and places

    def type(self, dtype: Any = None) -> Any:
        """The name of the Tensor's type, or the Tensor converted to another type."""
        if dtype is None:
            return f"torch.{KINDS[self.dtype]}"
        by_kind = {kind: name for name, kind in KINDS.items()}
        return self.to(dtype=by_kind.get(str(dtype).removeprefix("torch."), dtype))

    def to(
        self,
        *args: Any,
        dtype: Any = None,
        device: Any = None,
        other: Any = None,
        non_blocking: bool = False,
        copy: bool = False,
        memory_format: Any = None,
    ) -> Any:
        """The Tensor converted to an element type; itself where it has that type. The only device is the CPU."""
        wanted = self.dtype
        for argument in (*args, dtype, device, other):
            if isinstance(argument, types):
                wanted = argument
            elif hasattr(argument, "apply_operator"):
                wanted = named(argument.dtype)
            elif argument is not None and argument is dtype:
                wanted = named(argument)
            elif not isinstance(argument, bool):
                check_device(argument)
        if wanted != self.dtype:
            return app.cast(self, dtype=wanted)
        return app.assign(self) if copy else self

    def cpu(self) -> Any:
        return self


def _index(index: Any) -> Any:
    """The index with a number in place of an integer Tensor without axes, whose part is a view."""
    if isinstance(index, tuple):
        return tuple(map(_index, index))
    if isinstance(index, (FrameworkTensor, np.ndarray)) and index.dtype == "uint8":
        raise OperatorError(
            "an index of torch.uint8 is a mask in old programs; use index.bool() for a mask, or index.long() for places"
        )
    if isinstance(index, FrameworkTensor) and not index._array.ndim and index._array.dtype.kind == "i":
        return int(index._array) if modes().tracer is None else index
    return index


class Tensor(TensorMethods, FrameworkTensor, metaclass=_Constructor):  # type: ignore[misc]
    """An array on which operators run at once. With `requires_grad=True` they are recorded for `backward`."""

    __slots__ = ()
    as_in_pytorch = True
    grad_stops = True
    dialect = TensorMethods

    def apply_operator(self, definition: Any, inputs: Any, attributes: Any, into: Any = None) -> Any:
        """Run the operator. As in PyTorch, results are in row-major order, except for views and elementwise results."""
        results = super().apply_operator(definition, inputs, attributes, into)
        if definition.custom or isinstance(definition.lowering, (Elementwise, Constant)):
            return results
        for result in results if isinstance(results, tuple) else (results,):
            array = getattr(result, "_array", None)
            if array is None or array.flags.c_contiguous:
                continue
            if not (definition.views and np.may_share_memory(array, getattr(inputs[0], "_array", inputs[0]))):
                result._array = np.ascontiguousarray(array)
        return results

    def stride(self, dim: int | None = None) -> Any:
        """The number of elements from one place to the next along each axis."""
        steps = tuple(step // self._array.itemsize for step in self._array.strides)
        return steps if dim is None else steps[dim]

    def is_contiguous(self) -> bool:
        return bool(self._array.flags.c_contiguous)

    def data_ptr(self) -> int:
        return int(self._array.ctypes.data)

    @property
    def _version(self) -> int:
        """How often the numbers were changed in place."""
        return self.inplace_version

    # The graph

    @property
    def grad_fn(self) -> Node | None:
        """The operator that made it, if it was recorded."""
        return None if self._node is None else node_of(self.source)

    def retain_grad(self) -> None:
        """Keep the gradient in `.grad`, although an operator made this Tensor."""
        self.retain_grads()

    @property
    def data(self) -> Any:
        """The same numbers without the graph. Unlike after `detach()`, changes in place go unnoticed."""
        if modes().tracer is not None:
            return self.detach()
        return type(self).result_class(with_own_version(self._array))

    @data.setter
    def data(self, value: Any) -> None:
        if not isinstance(value, FrameworkTensor):
            raise TypeError(f"data has to be a Tensor, but got a {type(value).__name__}; make one with torch.tensor")
        if self.requires_grad and value._array.dtype.kind != "f":
            raise RequiresGradError(
                f"data set to a tensor that requires gradients must be floating point, found {value.dtype}"
            )
        self._array = with_own_version(value._array)

    def detach_(self) -> Tensor:
        """Leave the graph."""
        self._node, self.stop_gradient = None, True
        return self

    # Its numbers

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The numbers, as an array that shares the memory."""
        if self.requires_grad and modes().on and not force:
            raise RequiresGradError("numpy() of a Tensor that requires grad: use tensor.detach().numpy()")
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self.requires_grad and modes().on:
            raise RequiresGradError("a Tensor that requires grad cannot become an array: use tensor.detach().numpy()")
        return super().__array__(dtype, copy)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        """A copy of a leaf, with a copy of its gradient."""
        if self._node is not None:
            raise OperatorError(
                "a Tensor that an operator made cannot be copied with copy.deepcopy (only Tensors created explicitly "
                "by the user, graph leaves, support it); take a copy of its detach()"
            )
        copied: Tensor = super().__deepcopy__(memo)
        copied.grad = deepcopy(self.grad, memo)
        return copied

    # Printing

    def __getattr__(self, name: str) -> Any:
        raise MissingNameError(lambda: _about(name))

    def __repr__(self) -> str:
        about: tuple[str, ...] = ()
        if self._node is not None:
            about = (f"grad_fn=<{name_of(self._node)}>",)
        elif self.requires_grad:
            about = ("requires_grad=True",)
        return tensor_text(self._array, "tensor(", about)

    def __format__(self, form: str) -> str:
        return format(self.item(), form) if not self._array.ndim and self._array.size else format(str(self), form)


def _about(name: str) -> str:
    if name in INSTEAD:
        return without("torch.Tensor", name)
    found = get_close_matches(name, [known for known in dir(Tensor) if known[0] != "_"])
    closest = f"; closest: {', '.join(found)}" if found else ""
    return f"torch.Tensor has no {name!r} in this façade{closest}"


class _ResultClass:
    """The class of results: `torch.Tensor`, made by the framework's own constructor and not by PyTorch's."""

    def __call__(self, array: np.ndarray, stop_gradient: bool = True) -> Any:
        return type.__call__(Tensor, array, stop_gradient)

    def __getattr__(self, name: str) -> Any:
        method = partial(getattr(Tensor, name).__func__, self)  # a class method, with this in place of the class
        setattr(self, name, method)
        return method


Tensor.__module__ = "torch"  # as it prints
Tensor.result_class = _ResultClass()


class RequiresGradError(OperatorError, RuntimeError):
    """A Tensor cannot require gradients here, or cannot stop requiring them."""


KINDS = {
    "bool": "BoolTensor",
    "uint8": "ByteTensor",
    "int8": "CharTensor",
    "int16": "ShortTensor",
    "int32": "IntTensor",
    "int64": "LongTensor",
    "float16": "HalfTensor",
    "float32": "FloatTensor",
    "float64": "DoubleTensor",
}
"""The names of types of Tensors, by element type."""


def _converter(name: str) -> Any:
    return lambda self: self.to(NAMED[name])


for _name in ("half", "float", "double", "short", "int", "long", "bool"):
    setattr(TensorMethods, _name, _converter(_name))


def add_methods() -> None:
    """Give Tensors the registered methods."""
    for name, method in METHODS.items():
        setattr(TensorMethods, name, method)


def in_torch(value: Any) -> Any:
    """Convert a traced value, a Tensor of any dialect or an array to one with PyTorch's methods."""
    if isinstance(value, ValueMethods) and not isinstance(value, FrameworkTensor):
        return value.in_dialect_of(Tensor)  # type: ignore[attr-defined]  # of a function that is being traced
    return Tensor.result_class(value._array if isinstance(value, FrameworkTensor) else np.asarray(value))
