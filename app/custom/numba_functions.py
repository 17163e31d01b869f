"""What users' functions read, and their Numba functions run as Python.

A check runs Numba functions as Python, in a forked process, which raises IndexError for an index outside of an array.
Compiled code does not check: it reads or overwrites whatever lies there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from types import FunctionType, ModuleType
from typing import Any, Generic, TypeVar

from app.functions import is_compiled
from app.reading import PACKAGE

_OTHERS = frozenset({PACKAGE, "numba", "llvmlite", "numpy", "scipy"}) | sys.stdlib_module_names
"""Packages whose own functions stay compiled, but for the shelf's, which are as a user would write them."""


def is_of_users(module: str) -> bool:
    """Whether the functions of a module are a user's, so that they run as Python where Numba functions do."""
    return module.partition(".")[0] not in _OTHERS or module.startswith(f"{PACKAGE}.custom.shelf.")


T = TypeVar("T")


class Current(Generic[T]):
    """What is made from a function: once, and again after a variable that the function reads has changed."""

    def __init__(self, function: Any, make: Callable[[], T]):
        self._function, self._make = function, make
        self._latest: tuple[Any, T] | None = None

    def get(self) -> T:
        if self._latest is None or self._latest[0].have_changed():
            from app.engine.compiled.frozen import Frozen  # imported late: it needs Numba

            self._latest = Frozen(self._function), self._make()  # both at once, as other threads may ask
        return self._latest[1]


class _Interpreted:
    """Whether Numba functions run as Python in this process, and how many calls did."""

    __slots__ = ("calls", "on")

    def __init__(self) -> None:
        self.on = False
        self.calls = 0


interpreted = _Interpreted()


def interpret_numba(modules: Sequence[ModuleType]) -> None:
    """From now on, run the Numba functions of operators, and those that they call, as Python.

    For forked processes: it replaces them in closures and in these modules, where other threads would miss them.
    """
    interpreted.on = True
    kinds = _types_of_compiled()
    for module in modules:
        _open_module(module, kinds)


def modules_with_numba() -> list[ModuleType]:
    """The users' modules that have Numba functions, for `interpret_numba`.

    They are found before a fork, as the forked process would copy all memory that it searches.
    """
    kinds = _types_of_compiled()
    if not kinds:
        return []
    modules = [(name, module, getattr(module, "__dict__", None)) for name, module in list(sys.modules.items())]
    return [
        module
        for name, module, names in modules
        if type(names) is dict and is_of_users(name) and not kinds.isdisjoint(map(type, list(names.values())))
    ]  # sys.modules may hold other objects


def _types_of_compiled() -> set[type]:
    """The types of Numba functions, by which they are found among all values of all modules in little time."""
    numba = sys.modules.get("numba.core.dispatcher")
    kinds: list[type] = [] if numba is None else [numba.Dispatcher]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return set(kinds)


def as_python(function: FunctionType, values: Sequence[Any]) -> Any:
    """Call the Python function of a Numba function, with the Numba functions of its closure as Python, too."""
    interpreted.calls += 1
    _open_closure(function)
    return function(*values)


def _open_module(module: ModuleType, kinds: set[type]) -> None:
    """Replace a module's Numba functions by their Python functions."""
    names = vars(module)
    for name, value in [item for item in list(names.items()) if type(item[1]) in kinds]:
        names[name] = _counted(value.py_func)
        _open_closure(value.py_func)


def _counted(function: FunctionType) -> Callable[..., Any]:
    @wraps(function)
    def call(*values: Any, **settings: Any) -> Any:
        interpreted.calls += 1
        return function(*values, **settings)

    return call


def _open_closure(function: FunctionType) -> None:
    """The same for the Numba functions in a function's closure."""
    for cell in function.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:  # an empty cell
            continue
        if is_compiled(value):
            cell.cell_contents = value.py_func
            _open_closure(value.py_func)
