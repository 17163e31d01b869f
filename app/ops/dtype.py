"""Element types: their names and aliases, and type promotion."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from app.errors import DtypeError

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
NAMES = ("bool", *INTEGERS, *FLOATS)

_SPELLINGS = {"float": "float32", "double": "float64", "half": "float16", "int": "int64", "long": "int64"}
_SPELLINGS.update(zip(NAMES, NAMES, strict=True))
_PYTHON_TYPES: dict[object, str] = {float: "float32", int: "int64", bool: "bool"}
_OF_NUMPY = {np.dtype(name): name for name in NAMES}
"""The names by dtype, because `dtype.name` is slow: NumPy computes it each time."""
_default_float = "float32"

DTypeLike: TypeAlias = "str | type | np.dtype[Any]"
"""An element type as a name, a Python or NumPy type, or a NumPy dtype."""


def canonical(dtype: DTypeLike | None) -> str:
    """The canonical name of an element type, given as a name, a NumPy type or a Python type."""
    if isinstance(dtype, np.dtype) and dtype in _OF_NUMPY:
        return _OF_NUMPY[dtype]
    if isinstance(dtype, str) and dtype in _SPELLINGS:
        return _SPELLINGS[dtype]  # a plain str, also if `dtype` is of a subclass with its own repr
    try:
        name = _PYTHON_TYPES.get(dtype) or ("" if _is_no_name(dtype) else np.dtype(dtype).name)
    except TypeError:
        name = ""
    if name not in NAMES:
        of_torch = "; opsmith.bridge.to_torch(operator) is for tensors of PyTorch" if "torch." in repr(dtype) else ""
        raise DtypeError(f"{dtype!r} is not an element type; expected one of {', '.join(NAMES)}{of_torch}")
    return name


def _is_no_name(dtype: DTypeLike | None) -> bool:
    """Whether `np.dtype` would give it another meaning: None is float64, and '2,f4' is a structured type."""
    return dtype is None or (isinstance(dtype, str) and not (dtype == "?" or dtype.lstrip("<>=|").isidentifier()))


def name_of(dtype: np.dtype) -> str:
    """The name of an array's element type, including types that operators do not support."""
    return _OF_NUMPY.get(dtype) or dtype.name


def is_float(dtype: DTypeLike) -> bool:
    return canonical(dtype) in FLOATS


def castable(dtype: DTypeLike, declared: DTypeLike) -> bool:
    """Whether results of a type are cast to the declared one: all numbers become floats, and none becomes another."""
    return is_float(declared) or np.can_cast(dtype, declared)


def get_default_dtype() -> str:
    """The floating type of Python floats and of initial values of parameters."""
    return _default_float


def set_default_dtype(dtype: DTypeLike) -> None:
    """Set the floating type of Python floats and of initial values of parameters."""
    global _default_float
    name = canonical(dtype)
    if name not in FLOATS:
        raise DtypeError(f"the default element type must be one of {', '.join(FLOATS)}, not {name}")
    _default_float = name


def fitting(what: str, value: Any, dtype: str) -> np.ndarray:
    """A copy of a value in the element type of what it is for; an error where that changes more than last digits."""
    array = np.asarray(value)
    of_a_kind = array.dtype.kind in ("biuf" if is_float(dtype) else "biu")
    if of_a_kind:
        with np.errstate(over="ignore"):
            cast = array.astype(dtype)
        if np.all(np.isfinite(cast) == np.isfinite(array) if is_float(dtype) else cast == array):
            return cast
    reason = f", with numbers that {dtype} cannot hold" if of_a_kind else ""
    raise DtypeError(
        f"{what} is {dtype}, and was given {array.dtype}{reason}; nothing was changed. "
        f"If that is meant, give np.asarray(value).astype({dtype!r})"
    )


@lru_cache(maxsize=256)
def common(*names: str) -> str:
    """The promoted type of several types: floats take precedence over integers and keep their own width."""
    floats = [name for name in names if name in FLOATS]
    result: str = np.result_type(*(floats or names)).name
    return result
