"""Element types: their names, how the many spellings are read, and which type two of them share."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from app.errors import DtypeError

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
NAMES = ("bool", *INTEGERS, *FLOATS)

_SPELLINGS = {"float": "float32", "double": "float64", "half": "float16", "int": "int64", "long": "int64"}
_SPELLINGS.update(zip(NAMES, NAMES, strict=True))
_PYTHON_TYPES = {float: "float32", int: "int64", bool: "bool"}
_OF_NUMPY = {np.dtype(name): name for name in NAMES}
"""Asked often, where NumPy works out the name each time."""
_default_float = "float32"


def canonical(dtype: Any) -> str:
    """The one name of an element type, from a name, a NumPy type or a Python type."""
    if isinstance(dtype, np.dtype) and dtype in _OF_NUMPY:
        return _OF_NUMPY[dtype]
    if isinstance(dtype, str) and dtype in _SPELLINGS:
        return _SPELLINGS[dtype]  # the name itself, where the given one is of a kind that prints in its own way
    try:
        name = _PYTHON_TYPES.get(dtype) or ("" if _is_no_name(dtype) else np.dtype(dtype).name)
    except TypeError:
        name = ""
    if name not in NAMES:
        raise DtypeError(f"{dtype!r} is not an element type; there are {', '.join(NAMES)}")
    return name


def _is_no_name(dtype: Any) -> bool:
    """Whether NumPy would make of it what it does not say: float64 of None, and records of a text such as '2,f4'."""
    return dtype is None or (isinstance(dtype, str) and not (dtype == "?" or dtype.lstrip("<>=|").isidentifier()))


def name_of(dtype: np.dtype) -> str:
    """The name of an array's element type, whether operators know it or not."""
    return _OF_NUMPY.get(dtype) or dtype.name


def is_float(dtype: Any) -> bool:
    return canonical(dtype) in FLOATS


def get_default_dtype() -> str:
    """The type that Python floats and initialisers get."""
    return _default_float


def set_default_dtype(dtype: Any) -> None:
    """Choose the floating type that Python floats and initialisers get."""
    global _default_float
    name = canonical(dtype)
    if name not in FLOATS:
        raise DtypeError(f"the default element type must be one of {', '.join(FLOATS)}, not {name}")
    _default_float = name


@lru_cache(maxsize=256)
def common(*names: str) -> str:
    """The type that values of these types meet in: a float wins over whole numbers and keeps its own width."""
    floats = [name for name in names if name in FLOATS]
    result: str = np.result_type(*(floats or names)).name
    if result not in NAMES:
        raise DtypeError(f"{' and '.join(names)} have no common element type")
    return result
