"""How `import paddle` and `import torch` find the façades, whether or not the real packages are installed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from app.compat.missing import PREFIX, MissingImportError, MissingModuleError, closest, shown
from app.ops.gone import INSTEAD, without

FACADES = ("paddle", "torch", "torchvision")
"""The names of the façades. Each is a package of `app.compat`."""


def install() -> None:
    """Let imports of these names return the façades."""
    if not any(isinstance(finder, FacadeFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, FacadeFinder())


class FacadeFinder(MetaPathFinder):
    """Resolves `paddle.nn` to `app.compat.paddle.nn`: the same module under both names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of a façade; raise an error with the closest name if there is none."""
        parent, _, last = fullname.rpartition(".")
        if _is_facade(fullname):
            if not parent:
                _say_if_passed_over(fullname)
            elif _find(PREFIX + fullname) is None:
                reason = f"{fullname} is not part of this façade{closest(PREFIX + parent, last)}"
                if last in INSTEAD:
                    reason = without(f"the façade {parent}", last)
                raise MissingModuleError(reason, name=fullname)
            return ModuleSpec(fullname, _AliasLoader())
        if _is_facade(shown(parent)) and parent != shown(parent) and _find(fullname) is None:
            reason = f"{shown(parent)} has no {last!r} in this façade{closest(parent, last)}"
            if last in INSTEAD:
                reason = without(f"the façade {shown(parent)}", last)
            raise MissingImportError(reason, name=shown(parent))
        return None


class _AliasLoader(Loader):
    """Loads a module of a façade under the name that programs import."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = _load(PREFIX + spec.name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # Python has replaced it by that of the other name
        for name, inner in list(sys.modules.items()):
            # Known from now on, as importing it later would put it in the place of a function of the same name.
            if name.startswith(module.__name__ + "."):
                sys.modules.setdefault(shown(name), inner)


def _is_facade(name: str) -> bool:
    return name.partition(".")[0] in FACADES


def _find(name: str) -> ModuleSpec | ModuleType | None:
    """Find a module of a façade: an attribute of its parent, or a file in the parent's folder."""
    parent, _, last = name.rpartition(".")
    package = _load(parent) if parent.startswith(PREFIX) else importlib.import_module(parent)
    known = vars(package).get(last)
    if isinstance(known, ModuleType) and known.__name__.startswith(PREFIX):
        return known
    return PathFinder.find_spec(name, getattr(package, "__path__", []))


def _load(name: str) -> ModuleType:
    found = _find(name)
    return found if isinstance(found, ModuleType) else importlib.import_module(name)


def _say_if_passed_over(name: str) -> None:
    real = PathFinder.find_spec(name)
    if real is not None and real.origin is not None:  # a folder without an __init__.py is not a package
        print(f"note: the installed {name} is passed over; {name} is opsmith.compat.{name} here", file=sys.stderr)
