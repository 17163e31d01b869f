"""Loading Numba without SciPy, which it imports as it loads only to see whether its BLAS is there.

That costs a sixth of a second and 16 MB, and the engine's products call NumPy's own BLAS. A user's function that
needs SciPy's gets it: Numba imports it again where a product is compiled, and where one is called.
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
    """Load the part of Numba that asks for SciPy, with something in SciPy's place meanwhile."""
    loaded = "scipy.linalg" in sys.modules or _ASKS in sys.modules
    if loaded or importlib.util.find_spec("scipy") is None:
        return
    importlib.import_module("numba")
    stand_ins = {name: ModuleType(name) for name in _ASKED_FOR}
    sys.modules.update(stand_ins)
    try:
        with contextlib.suppress(Exception):  # a release that wants more of SciPy gets it when it asks next
            importlib.import_module(_ASKS)
    finally:
        for name, module in stand_ins.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
