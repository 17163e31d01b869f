"""The tape: records of operators that ran, gradient hooks, and checks for overwritten values.

Versions belong to memory rather than to Tensors, so all arrays that share memory share a version. Records and changes
take their times from one clock: a saved value is invalid if its memory was changed after the record.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Container, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from app.errors import InPlaceError, OperatorError
from app.ops.definition import OpDef
from app.ops.size import Shape
from app.ops.values import Array, Attributes

if TYPE_CHECKING:
    from app.tensor.tensor import Tensor

    Key: TypeAlias = "tuple[Node, int] | Tensor"
    """The key of a gradient: an output of a node, or a leaf."""

new_tensor: Callable[..., Tensor] = None  # type: ignore[assignment]
"""The class of Tensors. The file that defines it imports this one, and sets this when it is loaded."""

Hook: TypeAlias = "Callable[[Any], Tensor | None]"
"""A function of a gradient, a Tensor or a Variable, that may return another gradient."""
Hooks: TypeAlias = "dict[HookHandle | str, Hook]"
"""Functions that are called with a complete gradient, by the handles that remove them."""

# Versions of memory

clock = itertools.count(1)
"""The times of records and of changes in place."""


class _Latest:
    """The time of the latest change of any memory, in one object so that the hot path reads a single attribute."""

    __slots__ = ("moment",)

    def __init__(self) -> None:
        self.moment = 0


latest = _Latest()


class _Memory:
    """The number of changes of the memory of an array, and the time of the latest one."""

    __slots__ = ("count", "moment", "watch")

    def __init__(self, owner: np.ndarray):
        key, forget = id(owner), _changed.pop  # bound here, as the names of a module are None when Python ends
        self.count = self.moment = 0
        self.watch = weakref.ref(owner, lambda _: forget(key, None))  # ids are reused


_lock = threading.RLock()
_acquire, _release = _lock.acquire, _lock.release  # twice as fast as `with`
_changed: dict[int, _Memory] = {}
"""Memory that was changed in place, by the id of the array that owns it."""


def owner_of(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory of an array: itself, or the one that it is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def with_own_version(array: np.ndarray) -> np.ndarray:
    """The same memory with its own version: changes through one array do not count for the other."""
    return np.asarray(array.data)


def note_change(array: np.ndarray) -> None:
    """Record that an array was changed in place, so values saved before are invalid."""
    owner = owner_of(array)
    _acquire()  # otherwise `latest.moment` could go back, and a change could be missed
    try:
        memory = _changed.get(id(owner))
        if memory is None:
            memory = _changed[id(owner)] = _Memory(owner)
        memory.count += 1
        latest.moment = memory.moment = next(clock)
    finally:
        _release()


def version_of(array: np.ndarray) -> int:
    """The number of times that the memory of this array was changed in place."""
    memory = _changed.get(id(owner_of(array)))
    return 0 if memory is None else memory.count


def check_unchanged(array: np.ndarray | None, moment: int, what: str) -> None:
    """Raise an InPlaceError if an array was changed after it was saved at a moment."""
    if array is None or latest.moment < moment:
        return
    memory = _changed.get(id(owner_of(array)))
    if memory is None or memory.moment < moment:
        return
    raise InPlaceError(
        f"{what}, of shape {list(array.shape)}, is needed for the gradient, but has been modified by an inplace "
        "operation since; change a copy of it (x.clone()), or make a new Tensor (x = x + ...)"
    )


# Records


class Node:
    """A recorded operator: the sources of its inputs, and the values that its gradient rules read.

    It holds arrays rather than Tensors, so that a result does not keep itself alive. `sources` has the keys of the
    gradients of the inputs; None for an input that needs no gradient.
    """

    __slots__ = (
        "__weakref__",
        "_inputs",
        "_outputs",
        "attributes",
        "definition",
        "hooks",
        "input_specs",
        "needs",
        "order",
        "output_specs",
        "released",
        "sources",
    )

    def __init__(
        self,
        definition: OpDef,
        sources: Sequence[Key | None],
        arrays: Sequence[Any],
        outputs: Sequence[np.ndarray],
        attributes: Attributes,
        needs: Sequence[bool],
    ):
        self.order = next(clock)
        self.definition = definition
        self.attributes = attributes
        self.needs = needs
        self.sources = sources
        self.released = False
        self.hooks: dict[int, Hooks] | None = None
        """The hooks by the number of the output."""
        input_specs: list[tuple[tuple[int, ...], np.dtype[Any]] | None] = []
        for array in arrays:
            input_specs.append(None if array is None else (array.shape, array.dtype))
        self.input_specs = input_specs
        """Shape and type of each input, None for an absent one."""
        output_specs: list[tuple[tuple[int, ...], np.dtype[Any]]] = []
        for array in outputs:
            output_specs.append((array.shape, array.dtype))
        self.output_specs = output_specs
        """Shape and type of each output."""
        reads = definition.reads
        first = reads.inputs_from
        if first is not None:
            self._inputs = [*[None] * first, *arrays[first:]] if first else list(arrays)
        else:
            self._inputs = [a if i in reads.inputs else None for i, a in enumerate(arrays)] if reads.inputs else []
        self._outputs = [a if j in reads.outputs else None for j, a in enumerate(outputs)] if reads.outputs else []

    @property
    def input_keys(self) -> Sequence[Key | None]:
        return self.sources

    @property
    def output_keys(self) -> Sequence[tuple[Node, int]]:
        count = len(self.output_specs)
        return ((self, 0),) if count == 1 else [(self, j) for j in range(count)]

    def input(self, index: int) -> Any:
        if self.released:
            self.check_alive()
        array = self._inputs[index]
        if latest.moment > self.order:
            check_unchanged(array, self.order, f"{self.definition.label}: its input {index}")
        return array

    def output(self, index: int) -> Any:
        if self.released:
            self.check_alive()
        array = self._outputs[index]
        if latest.moment > self.order:
            check_unchanged(array, self.order, f"{self.definition.label}: its output {index}")
        return array

    def like(self, index: int) -> np.ndarray:
        shape, dtype = self.input_specs[index] or _NUMBER
        array: np.ndarray = np.ndarray(shape, dtype, _ZEROS, strides=(0,) * len(shape))
        return array

    def input_shape(self, index: int) -> tuple[int, ...]:
        spec = self.input_specs[index]
        return () if spec is None else spec[0]

    def output_shape(self, index: int) -> Shape:
        return self.output_specs[index][0]

    def zeros(self, index: int) -> np.ndarray:
        return np.zeros(*self.output_specs[index])

    def release(self) -> None:
        """Free the saved values. A second backward pass through this node raises an error."""
        self._inputs, self._outputs, self.released = [], [], True

    def check_alive(self) -> None:
        if self.released:
            raise OperatorError(
                f"{self.definition.label}: the values saved for its gradient were freed by an earlier backward(). "
                "Trying to backward through the graph a second time? Specify retain_graph=True the first time"
            )

    def copy_saved(self, array: np.ndarray) -> None:
        """Copy the saved values that share the memory of an array, which is about to be overwritten."""
        owner = owner_of(array)
        for saved in (self._inputs, self._outputs):
            saved[:] = [a.copy() if isinstance(a, np.ndarray) and owner_of(a) is owner else a for a in saved]


_NUMBER = (), np.dtype(np.float32)
"""The shape and type used for an omitted input."""
_ZEROS = bytes(16)
"""The memory of arrays of which only the shape and the type are read."""


def on_tape(array: Array, source: Key | None) -> Tensor:
    """A Tensor of an array with the tape position `source`; with None, one without a gradient."""
    if source is not None and not isinstance(source, tuple) and source._array is array:
        return source
    tensor = new_tensor(np.asarray(array), source is None)
    if isinstance(source, tuple):
        tensor._node, tensor._slot = source
    return tensor


class DifferentiableNode:
    """A node that returns its saved values as Tensors on the tape, so that gradients can be differentiated again."""

    def __init__(self, node: Node):
        self.node = node
        self.definition = node.definition
        self.attributes = node.attributes
        self.needs = node.needs
        self.input_keys = node.input_keys
        self.output_keys = node.output_keys
        self.input_shape = node.input_shape
        self.output_shape = node.output_shape
        self.input_specs = node.input_specs
        self.output_specs = node.output_specs

    def input(self, index: int) -> Tensor:
        return on_tape(self.node.input(index), self.node.sources[index])

    def output(self, index: int) -> Tensor:
        return on_tape(self.node.output(index), (self.node, index))

    def like(self, index: int) -> Tensor:
        return on_tape(self.node.like(index), None)

    def zeros(self, index: int) -> Tensor:
        return on_tape(self.node.zeros(index), None)


_order = attrgetter("order")


def reachable(sources: Iterable[Key | None], blocked: Container[Key] = ()) -> list[Node]:
    """The nodes that gradients can reach from `sources` without passing through `blocked`, the latest first."""
    nodes: set[Node] = set()
    waiting = list(sources)
    while waiting:
        source = waiting.pop()
        if source.__class__ is tuple and not (blocked and source in blocked):
            node = source[0]
            if node not in nodes:
                nodes.add(node)
                waiting += node.sources
    return sorted(nodes, key=_order, reverse=True)


def leading_to(targets: Container[Key | None], nodes: Sequence[Node]) -> list[Node]:
    """The nodes, the latest first, from which gradients can reach one of `targets`."""
    leading: set[Node] = set()
    for node in reversed(nodes):
        if any(source in targets or (type(source) is tuple and source[0] in leading) for source in node.sources):
            leading.add(node)
    return [node for node in nodes if node in leading]


# Hooks

RETAINED = "retained"
"""The handle of the hook that keeps the gradient of a value that is not a leaf."""


class HookHandle:
    """The handle that `register_hook` returns, which can remove the hook."""

    def __init__(self, hooks: Hooks):
        self._hooks = hooks

    def remove(self) -> bool:
        """Remove the hook; returns whether it was still there."""
        return self._hooks.pop(self, None) is not None


def has_hooks(tensor: Tensor) -> bool:
    """Return whether somebody has registered a hook for the gradient of a Tensor."""
    node = tensor._node
    hooks = tensor._hooks if node is None else (node.hooks or {}).get(tensor._slot)
    return bool(hooks) and any(handle != RETAINED for handle in hooks or ())


def hooks_of(tensor: Tensor) -> Hooks:
    """The mutable hooks of a Tensor, stored in the node that computed it, or in the Tensor if it is a leaf."""
    node = tensor._node
    if node is None:
        if tensor._hooks is None:
            tensor._hooks = {}
        return tensor._hooks
    if node.hooks is None:
        node.hooks = {}
    return node.hooks.setdefault(tensor._slot, {})


def add_hook(tensor: Tensor, hook: Hook) -> HookHandle:
    if tensor.stop_gradient:
        raise OperatorError(
            "a Tensor with stop_gradient=True (that doesn't require gradient) cannot have a gradient hook"
        )
    hooks = hooks_of(tensor)
    handle = HookHandle(hooks)
    hooks[handle] = hook
    return handle


def retain_gradient(tensor: Tensor) -> None:
    """Keep the gradient of a value that is not a leaf in its `.grad`, after the hooks registered so far."""
    if tensor.stop_gradient or tensor._node is None:
        return
    reference = weakref.ref(tensor)

    def keep(gradient: Tensor) -> None:
        alive = reference()
        if alive is not None:
            own = gradient.clone()
            alive.grad = own if alive.grad is None else alive.grad + own

    hooks_of(tensor)[RETAINED] = keep


def move_retained_gradient(tensor: Tensor, node: Node | None, slot: int) -> None:
    """After a change in place, retain the gradient of the new value instead of that of the old value, from `node`.

    Other hooks stay with the old value.
    """
    hooks = None if node is None or node.hooks is None else node.hooks.get(slot)
    if hooks and RETAINED in hooks and not tensor.stop_gradient:
        hooks_of(tensor)[RETAINED] = hooks.pop(RETAINED)
