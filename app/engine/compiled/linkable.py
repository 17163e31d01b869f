"""Functions that Numba compiled, as LLVM code on disk, which is linked into the loops that call them.

Numba compiles what it calls again in every process: the engine's runtime, the built-in operators' functions, and a
user's. Here each function is compiled once for each combination of argument types, and is then linked from disk. The
file is named by a hash of everything that the function depends on, and so is the function in it: Numba's own names
contain numbers that another process gives to other functions.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import llvmlite.binding as llvm
import numba

from app.engine.compiled import cache
from app.engine.compiled.fingerprint import fingerprint
from app.engine.compiled.numba_api import Dispatcher, ExternalFunctionDescriptor, signature
from app.engine.compiled.read_only import only_reads

AS_NUMPY: dict[str, Any] = {"nopython": True, "nogil": True, "error_model": "numpy"}
"""How Numba compiles a plain function: dividing by zero gives what NumPy gives."""

_known: OrderedDict[str, Linkable] = OrderedDict()
"""The functions that were used last, by key."""
KNOWN = 256


class Linkable:
    """A function for arguments of certain types. Numba links it as it links a library of its own."""

    _reload_init: frozenset[str] = frozenset()

    def __init__(self, name: str, takes: tuple[Any, ...], returns: Any, only_reads: bool, code: bytes):
        self.name, self.takes, self.returns, self._code = name, takes, returns, code
        self.only_reads = only_reads
        """Whether it is sure to leave the arrays that it takes as they are."""
        self._module: Any = None

    def call(self, context: Any, builder: Any, values: Sequence[Any]) -> Any:
        """Call it in a function that is being built, with values of its types."""
        context.add_linking_libs([self])
        description = ExternalFunctionDescriptor(self.name, self.returns, self.takes)
        return context.call_internal(builder, description, signature(self.returns, *self.takes), values)

    def _ensure_finalized(self) -> None:
        """Numba asks for this before it links a library."""

    def _get_module_for_linking(self) -> Any:
        if self._module is None:
            self._module = llvm.parse_bitcode(self._code)
        return self._module


def linkable(function: Any, kinds: tuple[Any, ...]) -> Linkable | None:
    """Return a function, compiled for these types or taken from disk; None if its code is good for one process only."""
    if not isinstance(function, (FunctionType, Dispatcher)):  # one of Numba's intrinsics
        return None
    key = fingerprint(function, repr(kinds), cache.environment())[:32]
    found = _known.get(key)
    if found is None:
        found = _from_disk(key) or _compiled(key, function, kinds)
        if found is None:
            return None
        _known[key] = found
        if len(_known) > KNOWN:
            _known.popitem(last=False)
    _known.move_to_end(key)
    return found


def dispatcher_of(function: Callable[..., Any]) -> Any:
    """Return a function as one of Numba's. If it was none before, dividing by zero gives what NumPy gives."""
    return numba.jit(**AS_NUMPY)(function) if isinstance(function, FunctionType) else function


def _without_wrappers(dispatcher: Any) -> Any:
    """Return a function without the form that Python calls, which takes longer to compile than the rest of it."""
    if not dispatcher._can_compile:
        return dispatcher
    options = {**dispatcher.targetoptions, "nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.jit(locals=dispatcher.locals, **options)(dispatcher.py_func)


def _from_disk(key: str) -> Linkable | None:
    data = cache.read(_file(key))
    if data is None:
        return None
    try:
        return Linkable(_symbol(key), *pickle.loads(data))
    except Exception:  # pickle fails in many ways
        return None


def _compiled(key: str, function: Callable[..., Any], kinds: tuple[Any, ...]) -> Linkable | None:
    dispatcher = _without_wrappers(dispatcher_of(function))
    dispatcher.get_call_template(kinds, {})
    made = dispatcher.overloads.get(kinds)
    if made is None or made.lifted or made.library._reload_init or made.library.has_dynamic_globals:
        return None
    code = _alone(made.library, made.fndesc.llvm_func_name, _symbol(key))
    if code is None:
        return None
    kept = kinds, made.signature.return_type, only_reads(dispatcher, kinds), code
    cache.keep(_file(key), pickle.dumps(kept))
    return Linkable(_symbol(key), *kept)


def _alone(library: Any, entry: str, symbol: str) -> bytes | None:
    """Return the code of one function and of what it calls, which no other code sees; None if it refers to objects."""
    module = library._get_module_for_linking().clone()
    for function in module.functions:
        if function.name == entry:
            function.name = symbol
            function.linkage = "external"
        elif not (function.is_declaration or function.name.startswith(_SHARED)):
            function.linkage = "internal"
    for variable in module.global_variables:
        if variable.name.startswith(_ENVIRONMENT):
            variable.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(library.codegen._tm, llvm.create_pipeline_tuning_options()))
    if any(each.name.startswith(_ENVIRONMENT) for each in module.global_variables):
        return None
    module.get_function(symbol).linkage = "linkonce_odr"
    code: bytes = module.as_bitcode()
    return code


_SHARED = "NRT_"
"""Numba's functions for memory, which are the same in each process; its passes know them by their names."""
_ENVIRONMENT = "_ZN08NumbaEnv"


def _file(key: str) -> str:
    return f"function_{key}.bin"


def _symbol(key: str) -> str:
    return f"opsmith_{key}"
