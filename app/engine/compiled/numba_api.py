"""All undocumented parts of Numba that the engine uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import llvmlite.binding as llvm
import numba

from app.errors import AppError

KNOWN = "0.61 to 0.68"
"""The tested releases of Numba."""


def _missing(what: object) -> AppError:
    return AppError(
        f"the compiled engine cannot work with numba {numba.__version__}: {what}. It is known to work with numba "
        f"{KNOWN}: install one of these, or use engine=reference"
    )


try:
    from numba._dispatcher import compute_fingerprint
    from numba.core import callconv, cgutils, serialize
    from numba.core.caching import NullCache
    from numba.core.codegen import CPUCodeLibrary
    from numba.core.compiler import CompileResult, Flags, compile_extra
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher
    from numba.core.funcdesc import ExternalFunctionDescriptor, FunctionDescriptor
    from numba.core.lowering import Environment
    from numba.core.registry import cpu_target
    from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]
    from numba.core.typing import signature
    from numba.core.typing.templates import builtin_registry
    from numba.core.utils import INPLACE_BINOPS_TO_OPERATORS
    from numba.np.numpy_support import from_dtype
except ImportError as error:
    raise _missing(error) from error

_USED: dict[Any, tuple[str, ...]] = {
    CompileResult: ("_rebuild", "_reduce"),
    CPUCodeLibrary: ("_optimize_functions", "_optimize_final_module", "_get_module_for_linking"),
    Dispatcher: ("_reset_overloads", "get_call_template", "nopython_signatures"),
    Environment: ("from_fndesc",),
}
for _owner, _names in _USED.items():
    for _name in _names:
        if not hasattr(_owner, _name):
            raise _missing(f"{_owner.__name__} has no {_name}")


_lost: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()
"""The signatures of functions that could not be compiled again with the value that a variable then had."""


def compile_again(dispatcher: Any) -> None:
    """Compile a function again for the same types. Numba's `recompile` forgets the declared types of results."""
    getattr(dispatcher._compiler, "_failed_cache", {}).clear()  # errors that Numba would raise again
    if dispatcher._can_compile:
        if dispatcher.overloads:
            dispatcher.recompile()
        return
    signatures = _lost[dispatcher] = _lost.get(dispatcher) or dispatcher.nopython_signatures
    dispatcher._reset_overloads()
    dispatcher._can_compile = True
    try:
        for each in signatures:
            dispatcher.compile(each)
    finally:
        dispatcher._can_compile = False
    del _lost[dispatcher]


def lower(function: Any, arguments: Sequence[Any]) -> None:
    """Compile a Python function for these types as `njit` does, but not to machine code, which takes most of the time:
    whatever Numba refuses raises here, too."""
    flags: Any = Flags()
    flags.nrt = flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    plain, target = numba.njit(function).py_func, cpu_target
    with global_compiler_lock:
        compile_extra(target.typing_context, target.target_context, plain, tuple(arguments), None, flags, {})


def overloads_of(function: Any) -> list[Any]:
    """Return the functions that `numba.extending.overload` declared for a plain function."""
    kinds = [kind for value, kind in builtin_registry.globals if value is function]
    templates = [each for kind in kinds for each in getattr(kind, "templates", ())]
    return [overload for each in templates if (overload := getattr(each, "_overload_func", None))]


def add_symbols_of_numba() -> None:
    """Let LLVM know the C functions that compiled code calls. Numba itself does when it begins to compile, together
    with much that takes a tenth of a second."""
    assert cpu_target.target_context  # it adds most of them when it is made
    for name, address in _nrt_python.c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


__all__ = [
    "INPLACE_BINOPS_TO_OPERATORS",
    "CompileResult",
    "Dispatcher",
    "Environment",
    "ExternalFunctionDescriptor",
    "FunctionDescriptor",
    "NullCache",
    "add_symbols_of_numba",
    "callconv",
    "cgutils",
    "compile_again",
    "compute_fingerprint",
    "cpu_target",
    "from_dtype",
    "global_compiler_lock",
    "lower",
    "overloads_of",
    "serialize",
    "signature",
]
