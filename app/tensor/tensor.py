"""Tensors: arrays with a reference to the recorded operator that computed them."""

from __future__ import annotations

import operator
import weakref
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from app.display import Displayed
from app.errors import ShapeError
from app.graph import names
from app.ops.creation import assign
from app.ops.dtype import DTypeLike, canonical, get_default_dtype, name_of
from app.ops.joining import stack
from app.ops.methods import ValueMethods
from app.ops.values import Applied
from app.tensor import inplace, tape
from app.tensor.backward import Start, run_backward
from app.tensor.dispatch import RunsOperators, as_applied
from app.tensor.inplace import ChangesInPlace, making_new, write
from app.tensor.modes import modes
from app.tensor.tape import Hook, HookHandle, Hooks, Node, add_hook, owner_of, retain_gradient, version_of

if TYPE_CHECKING:
    from typing_extensions import Self

    from app.tensor.tape import Key


class Tensor(RunsOperators, ChangesInPlace, Displayed):
    """An array on which operators run at once; with `stop_gradient=False` they are recorded for `backward`."""

    __slots__ = (
        "__weakref__",
        "_array",
        "_hooks",
        "_name",
        "_node",
        "_sharing",
        "_slot",
        "grad",
        "persistable",
        "stop_gradient",
    )
    is_given_gradients_when_frozen: ClassVar[bool] = True
    """Whether `backward` adds to the `.grad` of a leaf whose stop_gradient was set after it was used, as in Paddle."""

    def __init__(self, array: np.ndarray, stop_gradient: bool = True, name: str | None = None):
        self._array = array
        self.stop_gradient = stop_gradient
        self.grad: Tensor | None = None
        self.persistable = False
        self._name = name
        self._node: Node | None = None
        self._slot = 0
        self._hooks: Hooks | None = None
        self._sharing: weakref.WeakValueDictionary[int, Tensor] | None = None

    __iadd__, __isub__ = making_new("add", "+"), making_new("subtract", "-")
    __imul__, __itruediv__ = making_new("multiply", "*"), making_new("divide", "/")

    # Properties

    @property
    def shape(self) -> list[int]:
        return list(self._array.shape)

    @property
    def dtype(self) -> str:
        return name_of(self._array.dtype)

    @property
    def size(self) -> int:
        return int(self._array.size)

    @property
    def ndim(self) -> int:
        return int(self._array.ndim)

    @property
    def name(self) -> str:
        if self._name is None:
            self._name = names.generate("generated_tensor")
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = name

    @property
    def place(self) -> str:
        return "Place(cpu)"

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operator computed it."""
        return self._node is None

    @property
    def source(self) -> Key:
        """The key of its gradient: the node that computed it and the number of the output, or the Tensor itself."""
        return self if self._node is None else (self._node, self._slot)

    def numel(self) -> int:
        return int(self._array.size)

    def dim(self) -> int:
        return int(self._array.ndim)

    # Elements

    def _read(self) -> np.ndarray:
        """The elements, for Python code. A function that is being traced then depends on them."""
        tracer = modes().tracer
        if tracer is not None:
            tracer.note_numbers(self)
        return self._array

    def numpy(self) -> np.ndarray:
        """A copy of the elements as a NumPy array."""
        numbers: np.ndarray = self._read().copy()
        return numbers

    def item(self, *index: int) -> Any:
        """The element of a Tensor with one element, or the element at an index, as a Python number."""
        if index:
            return self._read().item(*index)
        if self._array.size != 1:
            raise ShapeError(f"item() needs a Tensor with one element, found shape {self.shape}")
        return self._read().item()

    def tolist(self) -> Any:
        return self._read().tolist()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        array = self._read()
        if copy is False and dtype in (None, array.dtype):
            return array
        return array.astype(dtype or array.dtype)

    def __bool__(self) -> bool:
        if self._array.size != 1:
            raise ShapeError(
                f"the truth value of a Tensor of shape {self.shape} is ambiguous; use opsmith.any or opsmith.all"
            )
        return bool(self._read())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        return operator.index(self.item())

    def __format__(self, form: str) -> str:
        return format(self.item(), form) if form and self._array.size == 1 else format(str(self), form)

    def __repr__(self) -> str:
        indent = " " * 7
        numbers = np.array2string(self._array, separator=", ", prefix=indent, precision=8)
        return (
            f"Tensor(shape={self.shape}, dtype={self.dtype}, place={self.place}, "
            f"stop_gradient={self.stop_gradient},\n{indent}{numbers})"
        )

    # Gradients

    def backward(
        self, grad_tensor: Start = None, retain_graph: bool | None = False, create_graph: bool = False
    ) -> None:
        """Add the gradients of this Tensor to the `.grad` of the leaves that it was computed from."""
        run_backward([self], [grad_tensor], retain_graph, create_graph)

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Set the gradient to zero, or remove it; in a traced function it is always removed."""
        tracer, gradient = modes().tracer, self.grad
        if tracer is not None:
            tracer.note_gradient(self)
            self.grad = None
        elif gradient is None or not set_to_zero:
            self.grad = None
        elif gradient._node is None:
            write(gradient, 0)
        else:  # a Tensor on the tape
            self.grad = Tensor(np.zeros_like(gradient._array), False)

    clear_gradient = clear_grad

    def gradient(self) -> np.ndarray | None:
        """The gradient as a NumPy array, or None."""
        return None if self.grad is None else self.grad.numpy()

    def register_hook(self, hook: Hook) -> HookHandle:
        """Register a function that is called with the gradient in each backward pass and may replace it."""
        if modes().tracer is not None:
            modes().tracer.refuse_hook()
        return add_hook(self, hook)

    def retain_grads(self) -> None:
        """Keep the gradient in `.grad`, even if this Tensor is not a leaf."""
        retain_gradient(self)

    def detach(self) -> Tensor:
        """A Tensor that shares the memory, and through which no gradient flows."""
        tracer = modes().tracer
        if tracer is not None:
            variable: Tensor = tracer.value(self).detach()
            return variable
        return Tensor(self._array)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """A leaf with copied elements and its own name, without the gradient and the hooks."""
        copied = self.__class__.__new__(self.__class__)
        memo[id(self)] = copied
        name = None if self._name is None else names.generate(f"{self._name}_deepcopy")
        Tensor.__init__(copied, self._array.copy(), self.stop_gradient, name)
        copied.persistable = self.persistable
        return copied

    def __reduce__(self) -> Any:
        """Pickle the elements, the name and the flags, but neither the gradient nor the graph."""
        return _restored, (self.__class__, self._array, self.stop_gradient, self._name, self.persistable)

    def cpu(self) -> Tensor:
        """This Tensor itself, which is on the CPU already."""
        return self

    def clone(self) -> Tensor:
        """A copy through which gradients flow."""
        copied: Tensor = assign(self)
        return copied

    # Changes in place

    @property
    def inplace_version(self) -> int:
        """The number of times that the memory of this Tensor was changed in place."""
        return version_of(self._array)

    set_value, become, __setitem__ = inplace.set_value, inplace.become, inplace.set_item

    def take_place_of(self, result: Tensor) -> None:
        """Become the result, with its memory and its position on the tape."""
        if owner_of(result._array) is not owner_of(self._array):
            inplace.stop_sharing(self)
        self._array, self._node, self._slot = result._array, result._node, result._slot
        self.stop_gradient = result.stop_gradient
        inplace.note_sharing(self, result)


tape.new_tensor = Tensor


def _restored(
    kind: type[Tensor], array: np.ndarray, stop_gradient: bool, name: str | None, persistable: bool
) -> Tensor:
    restored = kind.__new__(kind)
    Tensor.__init__(restored, array, stop_gradient, name)
    restored.persistable = persistable
    return restored


def to_tensor(data: Any, dtype: DTypeLike | None = None, stop_gradient: bool = True) -> Tensor:
    """Create a Tensor from numbers, lists or arrays; Python floats get the default type, the others keep theirs.

    A Variable, or a Tensor while a function is traced, is copied in the Program; a list of them is stacked.
    """
    if _is_symbolic(data):
        value = assign(_copied(data, dtype).detach())
        tracer = modes().tracer
        if tracer is not None:
            value = tracer.as_leaf(value, stop_gradient)
        value.stop_gradient = stop_gradient
        symbolic: Tensor = value
        return symbolic
    if _holds_tensors(data):
        data = _copied(data, dtype)
    if isinstance(data, Tensor):
        data = data._array
    array = np.array(data)
    if dtype is None and array.dtype.kind == "f" and not hasattr(data, "dtype"):
        dtype = get_default_dtype()
    array = array.astype(canonical(dtype or array.dtype), copy=False)
    tracer = modes().tracer
    if tracer is not None:  # a constant of the Program, which is new at each call
        constant: Tensor = tracer.constant(array, stop_gradient)
        return constant
    return Tensor(array, stop_gradient)


def _is_symbolic(data: object) -> bool:
    """Whether some elements are known only when a Program runs."""
    if isinstance(data, Tensor):
        return modes().tracer is not None
    if isinstance(data, (list, tuple)) and modes().tracer is not None:
        return any(map(_is_symbolic, data))
    return isinstance(data, ValueMethods)


def _holds_tensors(data: object) -> bool:
    if not isinstance(data, (list, tuple)):
        return False
    kinds = {*map(type, data)}  # lists of numbers may be long
    if any(issubclass(kind, Tensor) for kind in kinds):
        return True
    return any(issubclass(kind, (list, tuple)) for kind in kinds) and any(map(_holds_tensors, data))


def _copied(data: Any, dtype: DTypeLike | None) -> Applied:
    if isinstance(data, ValueMethods):
        value = as_applied(data)
        return value if dtype is None or canonical(dtype) == value.dtype else value.astype(dtype)
    if not (_is_symbolic(data) or _holds_tensors(data)):
        return to_tensor(data, dtype)
    items = [_copied(item, dtype) for item in data]
    arrays = [v._array for v in items if isinstance(v, Tensor)] if modes().tracer is None else []
    if len(arrays) == len(items) and len({(array.shape, array.dtype) for array in arrays}) == 1:
        return Tensor(np.stack(arrays))  # several times as fast
    return stack(items)


class Parameter(Tensor):
    """A Tensor that training updates."""

    __slots__ = ()

    def __init__(self, array: np.ndarray, name: str | None = None, trainable: bool = True):
        super().__init__(array, stop_gradient=not trainable, name=name or names.generate("param"))
        self.persistable = True

    @property
    def trainable(self) -> bool:
        return not self.stop_gradient

    @trainable.setter
    def trainable(self, trainable: bool) -> None:
        self.stop_gradient = not trainable
