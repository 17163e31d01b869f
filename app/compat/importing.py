"""How `import paddle` and `import torch` find the façades, whether or not the real packages are installed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import ModuleType

from app.compat.modules import PREFIX, MissingModuleError, no_name
from app.reading import PACKAGE

FACADES = {"paddle": (f"{PREFIX}paddle", PACKAGE), "torch": (f"{PREFIX}torch",)}
"""The packages that a program imports, and those in which their modules are looked for."""


def install() -> None:
    """Let imports of these names return the façades."""
    if not any(isinstance(finder, FacadeFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, FacadeFinder())


class FacadeFinder(MetaPathFinder):
    """Finds `torch.nn` in `opsmith.compat.torch.nn`, and `paddle.nn` in `opsmith.nn`: one module under both names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of a façade; raise an error if there is none."""
        root, _, rest = fullname.partition(".")
        if root not in FACADES:
            return None
        if not rest:
            _say_if_passed_over(fullname)
        for home in FACADES[root]:
            name = f"{home}.{rest}" if rest else home
            if name in sys.modules or _exists(name):
                return ModuleSpec(fullname, _AliasLoader(name))
        raise MissingModuleError(no_name(*fullname.rsplit(".", 1)), name=fullname)


class _AliasLoader(Loader):
    """Loads a module under the name that programs import."""

    def __init__(self, name: str):
        self._name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # Python has replaced it by that of the other name
        for name, inner in list(sys.modules.items()):
            # Known from now on, as importing it later would put it in the place of a function of the same name.
            if name.startswith(f"{module.__name__}.") and name.startswith(PREFIX):
                sys.modules.setdefault(name.removeprefix(PREFIX), inner)


def _exists(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # a parent is missing, or is no package
        return False


def _say_if_passed_over(name: str) -> None:
    real = PathFinder.find_spec(name)
    if real is not None and real.origin is not None:  # a folder without an __init__.py is not a package
        print(f"note: the installed {name} is passed over; {name} is opsmith.compat.{name} here", file=sys.stderr)
