"""Users' functions in Python and in Numba.

A check runs Numba functions as Python, in a forked process, which raises IndexError for an index outside of an array.
Compiled code does not check: it reads or overwrites whatever lies there.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Generic, TypeVar

from app.reading import PACKAGE, codes_in, future_flags


def function_name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def is_compiled(function: Any) -> bool:
    """Whether a function is compiled by Numba."""
    numba = sys.modules.get("numba.core.dispatcher")  # importing it takes half a second
    # `isinstance` may run code of a proxy object, which may raise, and `issubclass` is slow for Numba's classes
    return numba is not None and numba.Dispatcher in type(function).__mro__


def python_function(function: Any) -> Any:
    """The Python function of a Numba function, or the function itself."""
    return getattr(function, "py_func", function)


def without_keyword_only(function: FunctionType) -> FunctionType:
    """The function with ordinary parameters in place of keyword-only ones, which Numba does not have."""
    code = function.__code__
    if not code.co_kwonlyargcount:
        return function
    code = code.replace(co_argcount=code.co_argcount + code.co_kwonlyargcount, co_kwonlyargcount=0)
    ordinary = FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)
    vars(ordinary).update(vars(function))
    return ordinary


def unused(wish: str, names: Collection[str]) -> str:
    """A name like `wish` that is none of these."""
    name, number = wish, 1
    while name in names:
        number += 1
        name = f"{wish}_{number}" if wish[-1].isdigit() else f"{wish}{number}"
    return name


def function_beside(
    function: FunctionType, tree: ast.FunctionDef, extra: Mapping[str, Any], file: str = ""
) -> FunctionType:
    """The function of a tree, with the globals and the closure of another function, and these extra variables.

    It shares them, so that both functions see a variable that is assigned later. `file` is a name under which linecache
    keeps the source.
    """
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells |= {name: CellType(value) for name, value in extra.items()}
    named = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
    code = code_beside(function.__code__, tree, sorted(named & cells.keys()), file)
    return FunctionType(code, function.__globals__, tree.name, None, tuple(cells[name] for name in code.co_freevars))


def code_beside(code: CodeType, tree: ast.FunctionDef, free: Sequence[str], file: str = "") -> CodeType:
    """The code of a tree that is compiled in place of another code, with these free variables."""
    module = ast.parse(f"def {unused('closure', [tree.name])}({', '.join(free)}): pass" if free else "")
    around = next((node for node in module.body if isinstance(node, ast.FunctionDef)), module)
    around.body = [tree]
    ast.fix_missing_locations(module)
    if file:
        text = ast.unparse(module) + "\n"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        module = ast.parse(text)
    whole = compile(module, file or code.co_filename, "exec", dont_inherit=True, flags=future_flags(code))
    return next(each for each in codes_in(whole) if each.co_name == tree.name)


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
