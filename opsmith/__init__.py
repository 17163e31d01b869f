"""opsmith under its own name: `import opsmith` gives the package `app`, whatever else is called `app.py`.

`import app` finds a user's own `app.py` where one lies beside the program. This does not.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

_ROOT = Path(__file__).resolve().parents[1]


class _SameModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `opsmith.nn` as the module `app.nn`, so that there is one of each."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return importlib.util.spec_from_loader(name, self) if name.startswith("opsmith.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return importlib.import_module(f"app.{spec.name.partition('.')[2]}")

    def exec_module(self, module: ModuleType) -> None:
        """It has been executed."""


def _package() -> ModuleType:
    """The package `app` that lies beside this one."""
    sys.path.insert(0, str(_ROOT))
    try:
        package = importlib.import_module("app")
    finally:
        sys.path.remove(str(_ROOT))
    if getattr(package, "__file__", None) != str(_ROOT / "app" / "__init__.py"):
        raise ImportError(
            f"{getattr(package, '__file__', 'another module')} was imported as `app` before opsmith, whose own package "
            "has that name: import opsmith first, or rename that file"
        )
    return package


sys.meta_path.insert(0, _SameModules())
sys.modules[__name__] = _package()
