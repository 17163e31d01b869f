"""Shared by converted code: which values are Tensors, and the variables that a branch or a loop may change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from app.errors import ShapeError
from app.graph.variable import Variable
from app.jit.tracer import Changes
from app.jit.variable import RefusedError, TracedVariable
from app.ops.dtype import common, get_default_dtype, name_of
from app.ops.spec import UNKNOWN
from app.static.structure import Structure
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
        raise ShapeError(f"{wish} needs a Tensor with one element, this one has shape {words_of(variable.shape)}")
    return variable.reshape([])


def words_of(shape: Sequence[int]) -> str:
    """Format a shape for messages."""
    return "[" + ", ".join("any" if size == UNKNOWN else str(size) for size in shape) + "]"


def as_condition(value: Any, where: str) -> Any:
    """Convert a value to a condition: a single truth value."""
    truth = as_truth(value)
    if any(size != 1 for size in getattr(truth, "shape", ())):
        raise RefusedError(
            f"{where}: a Tensor of shape {words_of(truth.shape)} is neither true nor false; use opsmith.any or "
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
    if np.isfinite(number) and (not np.isfinite(held) or (held.dtype.kind in "iu" and held != number)):
        raise RefusedError(f"the number {other} is too large for {dtype}, the type of the Tensor that it would replace")
    return dtype


def as_variable(value: Any, dtype: str, shape: Sequence[int] = ()) -> Any:
    """Return a value as a variable of a type. A number becomes an array of a shape."""
    if not is_value(value):
        if UNKNOWN in shape:
            raise RefusedError("a number cannot replace a value of open size; the function is traced for each size")
        value = np.full(shape, value, dtype)
    variable = tracer().value(value) if is_value(value) else tracer().program.current_block().as_variable(value)
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


class State:
    """Reads and writes what a branch or a loop may change: variables of a function, and the contents of containers."""

    def __init__(
        self,
        names: Sequence[str],
        getters: Sequence[Callable[[], Any]],
        setter: Any,
        containers: Sequence[str] = (),
        outer: Sequence[str] = (),
    ):
        self.names = tuple(names)
        """The names of the variables, followed by those of the containers."""
        self.outer = outer
        """Those that are `global` or `nonlocal`, which a branch or a loop over a Tensor cannot assign."""
        self._getters, self._setter = tuple(getters), setter
        self._given = len(self.names) - len(containers)

    @contextmanager
    def region(self, where: str) -> Iterator[None]:
        """Trace a branch or the body of a loop over a Tensor inside the block."""
        with tracer().region(where, [part for _, value in self.current() for part in _containers(value)]):
            for name in self.outer:
                tracer().check_change(self, f"{name}, a variable of an outer scope,")
            yield

    def read(self) -> list[Any]:
        """Return the current values, with copies of the containers."""
        values = [value for _, value in self.current()]
        return [*values[: self._given], *map(copied, values[self._given :])]

    def current(self) -> list[tuple[str, Any]]:
        """Return the names with the objects that they stand for now."""
        return [(name, self._value(name, get)) for name, get in zip(self.names, self._getters, strict=True)]

    def _value(self, name: str, get: Callable[[], Any]) -> Any:
        try:
            return get()
        except NameError:
            return Undefined(name)

    def write(self, values: Sequence[Any]) -> None:
        """Assign the values. Containers are modified in place; new ones may be changed where they were made."""
        before = {id(part) for _, value in self.current() for part in _containers(value)}
        self._write(values)
        for part in (part for _, value in self.current() for part in _containers(value)):
            if id(part) not in before:
                tracer().own(part)

    def _write(self, values: Sequence[Any]) -> None:
        if self._given:
            self._setter(values[: self._given])
        for name, get, new in list(zip(self.names, self._getters, values, strict=True))[self._given :]:
            now = self._value(name, get)
            if isinstance(new, Undefined) and not isinstance(now, Undefined):
                new.refuse()
            put_back(now, copied(new))

    def after(self, name: str, getter: Callable[[], Any], setter: Callable[[Any], None]) -> State:
        """Return a State with one more variable at the front."""

        def put(values: Sequence[Any]) -> None:
            setter(values[0])
            if len(values) > 1:
                self._setter(values[1:])

        return State((name, *self.names), (getter, *self._getters), put, self.names[self._given :], self.outer)


NOTHING = State((), (), None)


def stand_in(nest: Any) -> Any:
    """Return a placeholder for a nest that nothing reads, with 0 for each Tensor."""
    structure = Structure.of(nest)
    return structure.filled([0 if is_value(leaf) else leaf for leaf in structure.leaves])


def frozen(nest: Any) -> Any:
    """Return a nest whose traced Tensors keep their current values when the originals are changed in place."""
    structure = Structure.of(nest)
    if not any(isinstance(leaf, TracedVariable) for leaf in structure.leaves):
        return nest
    return structure.filled([v.frozen() if isinstance(v, TracedVariable) else v for v in structure.leaves])


def _containers(nest: Any) -> Iterator[Any]:
    """The lists and dicts of a nest."""
    if type(nest) in CONTAINERS:
        yield nest
        for item in nest.values() if type(nest) is dict else nest:
            yield from _containers(item)


def copied(nest: Any) -> Any:
    """Copy the lists and dicts of a nest."""
    if type(nest) is list:
        return [copied(v) for v in nest]
    if type(nest) is dict:
        return {k: copied(v) for k, v in nest.items()}
    return nest


def put_back(old: Any, new: Any) -> Any:
    """Return the new nest in the lists and dicts of the old one, which other variables may hold."""
    if type(old) is list and type(new) is list and old is not new:
        known = dict(enumerate(old))
        old[:] = [put_back(known.get(place), item) for place, item in enumerate(new)]
        return old
    if type(old) is dict and type(new) is dict and old is not new:
        known = dict(old)
        old.clear()
        old.update((key, put_back(known.get(key), item)) for key, item in new.items())
        return old
    return new


def link(new: Any, old: Any) -> None:
    """Note that the values of a nest may be those of another, in the same memory: control flow has chosen."""
    pairs = Structure.of(new).leaves, Structure.of(old).leaves
    for a, b in zip(*pairs, strict=False) if len(pairs[0]) == len(pairs[1]) else ():
        if isinstance(a, TracedVariable) and is_value(b):
            a.share_memory(tracer().value(b) if isinstance(b, Tensor) else b)


def settle(changes: Sequence[Changes], results: Sequence[tuple[TracedVariable, Any]]) -> None:
    """Assign the results of branches or of a loop to the Tensors that were changed in place there."""
    for tensor, new in results:
        tensor.stand_for(new)
    for tensor, _ in results:
        tensor.changed()
    for each in changes:
        for tensor in each.stale:
            tensor.mark_stale()


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
