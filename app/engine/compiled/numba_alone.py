"""Imports Numba without what it imports for other purposes than the engine's.

`coverage` and `yaml` are for settings of Numba that are rarely made. SciPy is imported only to find its BLAS, while the
engine's products call NumPy's. Without all three, a run takes a quarter of a second less, and 16 MB. User functions can
still use SciPy's BLAS: Numba imports it again when it compiles or calls a product.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType

_ASKED_FOR = ("scipy.linalg", "scipy.linalg.cython_blas")
_ASKS = "numba.np.arraymath"


def import_numba() -> None:
    """Import Numba, without its compiler."""
    is_needed = {
        "coverage": "NUMBA_JIT_COVERAGE" in os.environ,
        "yaml": os.path.exists(".numba_config.yaml"),
    }
    with _in_place_of({name: None for name, needed in is_needed.items() if not (needed or name in sys.modules)}):
        importlib.import_module("numba")


def load() -> None:
    """Import the part of Numba that imports SciPy, with a stand-in for SciPy."""
    loaded = "scipy.linalg" in sys.modules or _ASKS in sys.modules
    if loaded or importlib.util.find_spec("scipy") is None:
        return
    with (
        _in_place_of({name: ModuleType(name) for name in _ASKED_FOR}),
        contextlib.suppress(Exception),  # a release that needs more of SciPy imports it then
    ):
        importlib.import_module(_ASKS)


@contextlib.contextmanager
def _in_place_of(stand_ins: Mapping[str, ModuleType | None]) -> Iterator[None]:
    """Let imports inside the block find these modules; those that are None cannot be imported."""
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]  # typeshed does not know None
    modules.update(stand_ins)
    try:
        yield
    finally:
        for name, module in stand_ins.items():
            if modules.get(name) is module:
                modules.pop(name, None)
