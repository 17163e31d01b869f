"""What converted code shares: which values are Tensors, and the variables that a construct may change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.errors import ProgramError
from app.graph.variable import Variable
from app.ops.dtype import get_default_dtype, name_of
from app.ops.spec import UNKNOWN
from app.static.structure import Structure
from app.tensor import Tensor
from app.tensor.modes import recording

NUMBERS = (bool, int, float, np.generic)


def is_value(value: Any) -> bool:
    """Whether something is known only when the function runs."""
    return isinstance(value, (Variable, Tensor))


def tracer() -> Any:
    """What traces now."""
    if recording.tracer is None:
        raise ProgramError("converted code was called while nothing is traced; call the function of to_static itself")
    return recording.tracer


def as_truth(value: Any) -> Any:
    """A value as a truth value."""
    if not is_value(value):
        return bool(value)
    variable = tracer().value(value)
    return variable if variable.dtype == "bool" else variable.astype("bool")


def as_condition(value: Any, where: str) -> Any:
    """A value that control flow depends on: one truth value."""
    truth = as_truth(value)
    if any(size not in (1, UNKNOWN) for size in truth.shape):
        raise ProgramError(
            f"{where}: a Tensor of shape {list(truth.shape)} is neither true nor false; use app.any or app.all"
        )
    return truth


def dtype_of(value: Any) -> str:
    """The element type that a value or a number has as a value."""
    if is_value(value):
        return name_of(value._array.dtype) if isinstance(value, Tensor) else value.dtype
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    return "int64" if isinstance(value, (int, np.integer)) else get_default_dtype()


def common_dtype(a: Any, b: Any) -> str:
    """The element type of a value that is one of two: a Python number yields to a Tensor, where that can hold it."""
    first, second = dtype_of(a), dtype_of(b)
    for value, one, other in ((a, first, second), (b, second, first)):
        kinds = "biuf"
        if is_value(value) and kinds.index(np.dtype(one).kind) >= kinds.index(np.dtype(other).kind):
            return one
    return np.promote_types(first, second).name


def as_variable(value: Any, dtype: str, shape: Sequence[int] = ()) -> Any:
    """A value, or a number in every place of a shape, as a variable of a type."""
    if not is_value(value):
        if UNKNOWN in shape:
            raise ProgramError("a number cannot stand for a value of open size; the function is traced for each size")
        value = np.full(shape, value, dtype)
    variable = tracer().program.current_block().as_variable(value)
    return variable if variable.dtype == dtype else variable.astype(dtype)


class Undefined:
    """What a name stands for that has no value: whoever uses it is told why."""

    def __init__(self, name: str, reason: str = ""):
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "reason", reason)

    def _refuse(self, *_: Any) -> Any:
        raise ProgramError(f"{self.name} has no value here{self.reason}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "apply_operator":
            raise AttributeError(name)
        return self._refuse()

    __call__ = __getitem__ = __iter__ = __len__ = __bool__ = __float__ = __int__ = __index__ = __array__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = _refuse
    __matmul__ = __rmatmul__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = __mod__ = __floordiv__ = _refuse


class State:
    """The variables of a function that a construct gives values to."""

    def __init__(self, names: Sequence[str], getters: Sequence[Callable[[], Any]], setter: Any):
        self.names, self._getters, self._setter = tuple(names), getters, setter

    def read(self) -> list[Any]:
        """Their values now."""
        return [self._value(name, get) for name, get in zip(self.names, self._getters, strict=True)]

    def _value(self, name: str, get: Callable[[], Any]) -> Any:
        try:
            return get()
        except (NameError, AttributeError):
            return Undefined(name)

    def write(self, values: Sequence[Any]) -> None:
        """Give them values."""
        if self.names:
            self._setter(values)


def zeros_in_place_of(nest: Any) -> Any:
    """The same nest of numbers that nobody reads."""
    structure = Structure.of(nest)
    return structure.filled([0] * len(structure.leaves))


def copied(nest: Any) -> Any:
    """A nest with lists and dicts of its own, so that what is put into it is not put into the other."""
    if type(nest) is list:
        return [copied(v) for v in nest]
    if type(nest) is dict:
        return {k: copied(v) for k, v in nest.items()}
    return nest


def put_back(old: Any, new: Any) -> Any:
    """A changed nest in the very list or dict that it was: others may know it, too."""
    if type(old) is list and type(new) is list and old is not new:
        old[:] = new
        return old
    if type(old) is dict and type(new) is dict and old is not new:
        new = dict(new)
        old.clear()
        old.update(new)
        return old
    return new


def same(a: Any, b: Any) -> bool:
    """Whether two plain values, or two nests, are the same."""
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
    try:
        return bool(a == b)
    except Exception:  # what a user's == does, or an array's
        return False
