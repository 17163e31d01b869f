"""opsmith in a checkout: `import opsmith` gives the package `app`, and `import opsmith.nn` the module `app.nn`.

A wheel has neither this file nor `app`: `tools/wheel.py` builds the package `opsmith` itself. Type checkers find the
modules of `app` under the name `opsmith` through the link `opsmith-stubs`, which is the name that they look for first.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # of the modules in it, through the link opsmith-stubs
    from app import *  # noqa: F403

    def __getattr__(name: str) -> Any: ...  # the operators


class _SameModules(MetaPathFinder, Loader):
    """Finds `opsmith.nn` as the module `app.nn`, so that there is one of each."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        found = importlib.util.find_spec(_in_app(name)) if name.startswith("opsmith.") else None
        return None if found is None else ModuleSpec(name, self, origin=found.origin)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(_in_app(spec.name))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It was executed as a module of `app`."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state  # Python replaced it by that of the other name
        _enter_loaded()

    def get_code(self, name: str) -> CodeType | None:
        """The code of a module, for `python -m opsmith`."""
        spec = importlib.util.find_spec(_in_app(name))
        assert spec is not None
        assert spec.loader is not None
        code: CodeType | None = spec.loader.get_code(spec.name)  # type: ignore[attr-defined]
        return code


def _in_app(name: str) -> str:
    return f"app.{name.partition('.')[2]}"


def _enter_loaded() -> None:
    """Enter the loaded modules under the other name: importing `opsmith.custom.custom_op` would otherwise put the
    module in place of the function that `app.custom` has under its name.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith("app."):
            sys.modules.setdefault(f"opsmith.{name.partition('.')[2]}", module)


def _package() -> ModuleType:
    """The package `app` that lies beside this one, whatever else is called `app.py`."""
    file = Path(__file__).resolve().parents[1] / "app" / "__init__.py"
    package = sys.modules.get("app")
    if package is None:
        spec = importlib.util.spec_from_file_location("app", file)
        assert spec is not None
        assert spec.loader is not None
        package = sys.modules["app"] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(package)
        except BaseException:
            del sys.modules["app"]
            raise
    own = getattr(package, "__file__", None)
    if own is None or not os.path.samefile(own, file):
        raise ImportError(
            f"{own or 'another module'} was imported as `app` before opsmith, whose own package has that name in a "
            "checkout: rename that file, or install opsmith's wheel, in which the package is called opsmith"
        )
    return package


_same = _package()
sys.meta_path.insert(0, _SameModules())
sys.modules[__name__] = _same
