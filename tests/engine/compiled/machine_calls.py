"""Functions of machine code, to be called with arrays and numbers."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from app.engine.compiled import vector_functions
from app.engine.compiled.vectors import FLOAT, INT, POINTER, Code

KINDS: dict[str, Any] = {str(POINTER): ctypes.c_void_p, str(INT): ctypes.c_int64, str(FLOAT): ctypes.c_float}
ENGINES: list[Any] = []
"""What holds the machine code. They share machines, and are not freed."""


def function(code: Code, target: Any) -> Callable[..., None]:
    """A function as it is for a machine."""
    engine = vector_functions.engine_of([vector_functions.compiled(code.text(), target)], target)
    kinds = [KINDS[str(value.ir.type)] for value in code.parameters.values()]
    called = ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address(code.name))
    ENGINES.append(engine)
    return lambda *values: called(*(v.ctypes.data if isinstance(v, np.ndarray) else v for v in values))


def with_some_lanes(few: Sequence[tuple[Any, ...]], more: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Each of a few cases with vectors of one width, of the three in turn; all cases with all widths in the soak."""
    return [
        pytest.param(*case, lanes, marks=[] if number < len(few) and number % 3 == place else pytest.mark.soak)
        for number, case in enumerate([*few, *more])
        for place, lanes in enumerate((4, 8, 16))
    ]
