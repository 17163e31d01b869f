"""Imports Numba without SciPy, which Numba imports only to find its BLAS. This saves 0.17 s and 16 MB; the engine's
products call NumPy's BLAS. User functions can still use SciPy's BLAS: Numba imports it again when it compiles or calls
a product.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from types import ModuleType

_ASKED_FOR = ("scipy.linalg", "scipy.linalg.cython_blas")
_ASKS = "numba.np.arraymath"


def load() -> None:
    """Import the part of Numba that imports SciPy, with a stand-in for SciPy."""
    loaded = "scipy.linalg" in sys.modules or _ASKS in sys.modules
    if loaded or importlib.util.find_spec("scipy") is None:
        return
    importlib.import_module("numba")
    stand_ins = {name: ModuleType(name) for name in _ASKED_FOR}
    sys.modules.update(stand_ins)
    try:
        with contextlib.suppress(Exception):  # a release that needs more of SciPy imports it then
            importlib.import_module(_ASKS)
    finally:
        for name, module in stand_ins.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
