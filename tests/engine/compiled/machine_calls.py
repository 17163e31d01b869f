"""Functions of machine code, to be called with arrays and numbers."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from app.engine.compiled import vector_functions
from app.engine.compiled.vectors import FLOAT, INT, POINTER, Code

KINDS: dict[str, Any] = {str(POINTER): ctypes.c_void_p, str(INT): ctypes.c_int64, str(FLOAT): ctypes.c_float}


def function(code: Code, target: Any) -> Callable[..., None]:
    """A function as it is for a machine."""
    address = vector_functions.loaded(vector_functions.compiled(code.text(), target), code.name, target)
    kinds = [KINDS[str(value.ir.type)] for value in code.parameters.values()]
    called = ctypes.CFUNCTYPE(None, *kinds)(address)
    return lambda *values: called(*(v.ctypes.data if isinstance(v, np.ndarray) else v for v in values))
