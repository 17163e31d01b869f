"""Shared by converted code: which values are Tensors, and the variables that a branch or a loop may change."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from app.errors import ShapeError
from app.graph.variable import Variable
from app.jit.variable import RefusedError, TracedVariable
from app.ops.dtype import common, get_default_dtype, name_of
from app.ops.spec import UNKNOWN
from app.tensor import Tensor
from app.tensor.modes import modes

NUMBERS = (bool, int, float, np.generic)
CONTAINERS = (list, dict)
"""What a branch or a loop may change, if it is the function's own."""


class Kind(NamedTuple):
    """The common type and shape of the results of branches, or of a carried variable of a loop."""

    dtype: str
    shape: tuple[Any, ...]


def is_value(value: Any) -> bool:
    """Return whether a value is known only when the function runs."""
    return isinstance(value, (Variable, Tensor))


def tracer() -> Any:
    """The active tracer."""
    if modes().tracer is None:
        raise RefusedError("converted code was called while nothing is traced; call the function of to_static itself")
    return modes().tracer


def as_truth(value: Any) -> Any:
    """Convert a value to a truth value."""
    if not is_value(value):
        return bool(value)
    variable = tracer().value(value)
    return variable if variable.dtype == "bool" else variable.astype("bool")


def one_element(value: Any, wish: str) -> Any:
    """Return a Tensor of one element as one without axes."""
    variable = tracer().value(value)
    if variable.shape == ():
        return variable
    if any(size != 1 for size in variable.shape):
        raise ShapeError(f"{wish} needs a Tensor with one element, this one has shape {shape_text(variable.shape)}")
    return variable.reshape([])


def shape_text(shape: Sequence[int]) -> str:
    """Format a shape for messages."""
    return "[" + ", ".join("any" if size == UNKNOWN else str(size) for size in shape) + "]"


def as_condition(value: Any, where: str) -> Any:
    """Convert a value to a condition: a single truth value."""
    truth = as_truth(value)
    if any(size != 1 for size in getattr(truth, "shape", ())):
        raise RefusedError(
            f"{where}: a Tensor of shape {shape_text(truth.shape)} is neither true nor false; use opsmith.any or "
            "opsmith.all"
        )
    return truth


def dtype_of(value: Any) -> str:
    """Return the element type of a value or a number, which keeps its digits where a function computes in float64."""
    if is_value(value):
        return name_of(value._array.dtype) if isinstance(value, Tensor) else value.dtype
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, (int, np.integer)):
        return "int64"
    variables = tracer().program.global_block().vars.values()
    return "float64" if any(v.dtype == "float64" for v in variables) else get_default_dtype()


def common_dtype(a: Any, b: Any) -> str:
    """Return the common element type of two values. Python numbers adapt to a Tensor's type, if it can hold them."""
    if is_value(a):
        return widened(dtype_of(a), b)
    return widened(dtype_of(b), a) if is_value(b) else common(dtype_of(a), dtype_of(b))


def widened(dtype: str, other: Any) -> str:
    """The type that holds values of a type and another value or number."""
    if is_value(other):
        return common(dtype, dtype_of(other))
    number = np.asarray(other)
    if "biuf".index(np.dtype(dtype).kind) < "biuf".index(number.dtype.kind):
        dtype = dtype_of(other)
    with np.errstate(over="ignore"):
        held = number.astype(dtype)
    if np.isfinite(number) and (not np.isfinite(held) or (number.dtype.kind in "iu" and held != number)):
        raise RefusedError(f"the number {other} is too large for {dtype}, the type of the Tensor that it would replace")
    return dtype


def as_variable(value: Any, dtype: str, shape: Sequence[int] = ()) -> Any:
    """Return a value as a variable of a type. A number becomes an array of a shape."""
    if not is_value(value):
        if UNKNOWN in shape:
            raise RefusedError("a number cannot replace a value of open size; the function is traced for each size")
        value = np.full(shape, value, dtype)
    block = tracer().program.current_block()
    variable = tracer().value(value) if isinstance(value, Tensor) else block.as_variable(value)
    return variable.here() if variable.dtype == dtype else variable.astype(dtype)


class Undefined:
    """A placeholder for an undefined name: using it raises an error with the reason."""

    def __init__(self, name: str, reason: str = ""):
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "reason", reason)

    def refuse(self, *_: Any) -> Any:
        raise RefusedError(f"{self.name} has no value here{self.reason}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "apply_operator":
            raise AttributeError(name)
        return self.refuse()

    __setitem__ = __delitem__ = __contains__ = refuse
    __call__ = __getitem__ = __iter__ = __len__ = __bool__ = __float__ = __int__ = __index__ = __array__ = refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = refuse
    __matmul__ = __rmatmul__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = __mod__ = __floordiv__ = refuse


Key: TypeAlias = tuple[Any, ...]
"""Where a value is: the number of a variable, or the id of a list or a dict, and then places in it."""


class Snapshot:
    """What variables stand for at some time, and what the lists and dicts among them hold."""

    def __init__(self, names: Sequence[str], values: Sequence[Any]):
        self.values = list(values)
        self.held: dict[int, Held] = {}
        """The lists and dicts, by identity."""
        self.stale: set[int] = set()
        """The Tensors that share memory with one that was changed, by identity."""
        for name, value in zip(names, values, strict=True):
            self.hold(name, value)

    def hold(self, name: str, value: Any) -> None:
        """Note what a value holds."""
        if isinstance(value, TracedVariable) and value.stale:
            self.stale.add(id(value))
        if type(value) in CONTAINERS and id(value) not in self.held:
            self.held[id(value)] = Held(name, value, value.copy())
        elif not is_tuple(value):
            return
        for _, item in items_of(value):
            self.hold(name, item)

    def content(self, nest: Any) -> Any:
        """The items of a list, a tuple or a dict at that time."""
        return self.held[id(nest)].content if id(nest) in self.held else nest

    def replaced(self, function: Callable[[Key, Any], Any]) -> Snapshot:
        """The same variables, lists and dicts with other values: a function of the place and the value gives them."""
        result = copy.copy(self)
        result.values = [function((place,), value) for place, value in enumerate(self.values)]
        result.held = {
            key: held._replace(content=rebuilt(held.content, partial(_at, function, key)))
            for key, held in self.held.items()
        }
        return result


def _at(function: Callable[[Key, Any], Any], key: int, place: Any, item: Any) -> Any:
    return function((key, place), item)


class Held(NamedTuple):
    """A list or a dict that a variable holds, and what was in it."""

    name: str
    container: Any
    content: Any


def is_tuple(value: Any) -> bool:
    """Whether a value is a tuple or a named one, of which others can be made."""
    return type(value) is tuple or (issubclass(type(value), tuple) and hasattr(type(value), "_make"))


def items_of(nest: Any) -> Iterable[tuple[Any, Any]]:
    """The items of a list, a tuple or a dict with their places."""
    return nest.items() if isinstance(nest, dict) else enumerate(nest)


def rebuilt(nest: Any, function: Callable[[Any, Any], Any]) -> Any:
    """A list, a tuple or a dict of the same kind; a function of the place and the old item gives its items."""
    items = [function(place, item) for place, item in items_of(nest)]
    if is_tuple(nest) and all(map(operator.is_, items, nest)):
        return nest
    if isinstance(nest, dict):
        return type(nest)(zip(nest, items, strict=True))
    return type(nest)._make(items) if hasattr(nest, "_make") else type(nest)(items)


def stand_in(nest: Any) -> Any:
    """A placeholder for a value that nothing reads, with 0 for each Tensor."""
    if type(nest) in CONTAINERS or is_tuple(nest):
        return rebuilt(nest, lambda _, item: stand_in(item))
    return 0 if is_value(nest) else nest


class State:
    """Reads and writes the variables of a function that a branch or a loop uses, and their lists and dicts."""

    def __init__(
        self, assigned: Sequence[str], read: Sequence[str], outer: Sequence[str], getters: Sequence[Any], setter: Any
    ):
        self.names = (*assigned, *read)
        """The names that it assigns, then those that it only reads."""
        self.assigned = len(assigned)
        self._outer, self._getters, self._setter = outer, getters, setter
        """`outer` are `global` and `nonlocal` names, which a branch or a loop over a Tensor cannot assign."""

    @contextmanager
    def region(self, where: str, before: Snapshot, enter: Callable[[Key, Any], Any]) -> Iterator[None]:
        """Trace a branch or the body of a loop over a Tensor inside the block, which begins with other values."""
        with tracer().region(where, [held.container for held in before.held.values()]):
            for name in self._outer:
                tracer().check_change(self, f"{name}, a variable of an outer scope,")
            self.write(before.replaced(enter))
            yield
        self.write(before)

    def read(self, before: Snapshot | None = None, result: Any = None) -> Snapshot:
        """The variables now, and what else a result and the lists and dicts of an earlier time hold now."""
        snapshot = Snapshot(self.names, [self._value(*pair) for pair in zip(self.names, self._getters, strict=True)])
        snapshot.hold("the returned value", result)
        for name, container, _ in before.held.values() if before is not None else ():
            snapshot.hold(name, container)
        return snapshot

    def _value(self, name: str, get: Callable[[], Any]) -> Any:
        try:
            return get()
        except NameError:
            return Undefined(name)

    def write(self, snapshot: Snapshot) -> None:
        """Assign the values, and fill the lists and dicts."""
        for _, container, content in snapshot.held.values():
            container.clear()
            (container.update if isinstance(container, dict) else container.extend)(content)
        if self.names:
            self._setter(snapshot.values)


NOTHING = State((), (), (), (), None)


class Copies:
    """The Tensors that a branch or an iteration works with, so that only it sees what it changes in place."""

    def __init__(self, before: Snapshot):
        self._before = before
        self.pairs: dict[int, tuple[TracedVariable, TracedVariable, str]] = {}
        """Each Tensor from before with its copy and the first name of that, by the identity of the Tensor."""
        self._originals: dict[int, TracedVariable] = {}

    def enter(self, key: Key, value: Any) -> Any:
        """A value with copies of the Tensors in it."""
        if is_tuple(value):
            return rebuilt(value, lambda place, item: self.enter((*key, place), item))
        if not isinstance(value, TracedVariable):
            return value
        if id(value) not in self.pairs:
            self.add(value, value.here())
        return self.pairs[id(value)][1]

    def add(self, value: TracedVariable, copied: TracedVariable) -> None:
        """Note the copy of a Tensor."""
        self.pairs[id(value)] = value, self.linked(value, copied), copied.name
        self._originals[id(copied)] = value

    def linked(self, value: Any, copied: TracedVariable) -> TracedVariable:
        """What stands for a value, in the same memory if that is a Tensor's."""
        if isinstance(value, Tensor):
            copied.share_memory(value)
        if isinstance(value, TracedVariable):
            copied.share_memory(value)
            copied.outside = value.outside
            if id(value) in self._before.stale:
                copied.read_at = value.read_at
        return copied

    def original(self, value: Any) -> Any:
        """The Tensor that a copy stands for; other values as they are."""
        return self._originals.get(id(value), value)

    def changed(self) -> list[TracedVariable]:
        """The Tensors whose copies were changed in place."""
        return [value for value, copied, name in self.pairs.values() if copied.name != name]


def same(a: Any, b: Any) -> bool:
    """Return whether two plain values or nests are equal."""
    if a is b or (isinstance(a, Undefined) and isinstance(b, Undefined)):
        return True
    if is_value(a) or is_value(b):
        return False
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    try:
        return bool(a == b)
    except Exception:  # raised by a user's ==, or an array's
        return False
