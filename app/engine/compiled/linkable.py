"""Functions that Numba compiled, kept on disk for the loops that call them.

Numba by itself compiles called functions again in every process. Here each function is compiled once per combination of
argument types. A function of numbers is kept as LLVM code and inlined, so that the loop around it can be vectorised; to
that end it calls `vector_math` in place of the C library. A function of arrays is kept as machine code and called. The
file and the function in it are named by a hash of everything that the function depends on, because Numba's own names
contain numbers that differ between processes.
"""

from __future__ import annotations

import pickle
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba import types

from app.engine.compiled import cache, vector_math
from app.engine.compiled.fingerprint import fingerprint
from app.engine.compiled.frozen import Frozen
from app.engine.compiled.numba_api import ExternalFunctionDescriptor, cpu_target, signature
from app.engine.compiled.read_only import only_reads
from app.engine.compiled.shape_errors import compiled_quickly
from app.errors import AppError

AS_NUMPY: dict[str, Any] = {"nopython": True, "nogil": True, "error_model": "numpy"}
"""The options for compiling a plain function: division by zero behaves as in NumPy."""

_cache: OrderedDict[str, Linkable] = OrderedDict()
"""The most recently used functions, by key."""
CACHE_SIZE = 256


class Linkable:
    """A function compiled for certain argument types. Numba links it like one of its own libraries."""

    _reload_init: frozenset[str] = frozenset()

    def __init__(
        self, name: str, takes: tuple[Any, ...], returns: Any, only_reads: bool, code: bytes, needs: Sequence[str]
    ):
        self.name, self.takes, self.returns, self.code = name, takes, returns, code
        self.only_reads = only_reads
        """Whether it provably does not modify its array arguments."""
        self.needs = needs
        """The symbols that its machine code refers to."""
        self.is_inlined = _is_inlined(takes)
        self._module: Any = None

    def call(self, context: Any, builder: Any, values: Sequence[Any]) -> Any:
        """Emit a call with values of its argument types."""
        if self.is_inlined:
            context.add_linking_libs([self])
        description = ExternalFunctionDescriptor(self.name, self.returns, self.takes)
        return context.call_internal(builder, description, signature(self.returns, *self.takes), values)

    def _ensure_finalized(self) -> None:
        """Called by Numba before it links a library."""

    def _get_module_for_linking(self) -> Any:
        if self._module is None:
            self._module = llvm.parse_bitcode(self.code)
        return self._module


class OfThisProcessError(AppError):
    """The code of a function contains addresses, so that it is valid in one process only."""

    def __init__(self) -> None:
        super().__init__(
            "its code would be valid in this process only, as with a function of C that is called by address"
        )


def linkable(function: Any, kinds: tuple[Any, ...]) -> Linkable:
    """Return a function compiled for these types, from disk if cached."""
    key = fingerprint(function, repr(kinds), cache.environment())[:32]
    linked = _cache.get(key)
    if linked is None:
        linked = _cache[key] = _from_disk(key) or _compiled(key, function, kinds)
        if len(_cache) > CACHE_SIZE:
            _cache.popitem(last=False)
    _cache.move_to_end(key)
    return linked


def dispatcher_of(function: Callable[..., Any]) -> Any:
    """Return a function as a Numba dispatcher. Plain functions get NumPy's division by zero."""
    return numba.jit(**AS_NUMPY)(function) if isinstance(function, FunctionType) else function


def _without_wrappers(dispatcher: Any) -> Any:
    """Return a function without its Python wrapper, which takes longer to compile than the function."""
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


@compiled_quickly()
def _compiled(key: str, function: Callable[..., Any], kinds: tuple[Any, ...]) -> Linkable:
    Frozen(function)  # recompiles Numba functions whose global variables have changed
    dispatcher = dispatcher_of(function)
    if kinds not in dispatcher.overloads:  # else it was compiled for an eager call
        dispatcher = _without_wrappers(dispatcher)
        dispatcher.get_call_template(kinds, {})
    overload = dispatcher.overloads.get(kinds)
    if overload is None or overload.lifted or overload.library.has_dynamic_globals:
        raise OfThisProcessError()
    if getattr(overload.library, "_reload_init", None):  # which older releases of Numba do not have
        raise OfThisProcessError()
    code = _alone(overload.library, overload.fndesc.llvm_func_name, _symbol(key), _is_inlined(kinds))
    fields = kinds, overload.signature.return_type, only_reads(dispatcher, kinds), *code
    cache.keep(_file(key), pickle.dumps(fields))
    return Linkable(_symbol(key), *fields)


def _is_inlined(kinds: Sequence[Any]) -> bool:
    return not any(isinstance(kind, types.Array) for kind in kinds)


def _alone(library: Any, entry: str, symbol: str, is_inlined: bool) -> tuple[bytes, list[str]]:
    """Return the code of a function with its callees as private functions, and the symbols that it refers to."""
    module = library._get_module_for_linking().clone()
    if is_inlined:
        _link_vector_math(module)
    for function in module.functions:
        if function.name == entry:
            function.name = symbol
            function.linkage = "external"
        elif not (function.is_declaration or (is_inlined and function.name.startswith(_SHARED))):
            function.linkage = "internal"
    for variable in module.global_variables:
        if variable.name.startswith(_ENVIRONMENT):
            variable.linkage = "internal"
    _remove_unused(module, library.codegen._tm)
    if any(each.name.startswith(_ENVIRONMENT) for each in module.global_variables):
        module = _without_environments(module)
    if is_inlined:
        module.get_function(symbol).linkage = "linkonce_odr"
        return module.as_bitcode(), []
    needs = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    return library.codegen._tm.emit_object(module), needs


def _without_environments(module: Any) -> Any:
    """The module without its references to Numba's environments, which are objects of this process.

    An error whose message has values, such as the shapes of an assignment, only asks whether its environment is there.
    """
    text = str(module)
    for function in module.functions:
        body = str(function)
        loaded = _ENVIRONMENT_LOADED.findall(body)
        compared = sum(len(re.findall(rf"icmp eq \S+ {re.escape(value)}, null", body)) for value in loaded)
        used = sum(len(re.findall(rf"{re.escape(value)}(?![\w.])", body)) for value in loaded)
        if body.count(f"@{_ENVIRONMENT}") != len(loaded) or used != len(loaded) + compared:
            raise OfThisProcessError()
    return llvm.parse_assembly(_NO_ENVIRONMENT.sub(r"\1 inttoptr (i64 1 to \2)", text))


def _link_vector_math(module: Any) -> None:
    """Let a function call those of `vector_math` in place of the C library's, which take one number at a time."""
    for function in list(module.functions):
        name = _VECTORISED.get(function.name) if function.is_declaration else None
        if name:
            quick = linkable(getattr(vector_math, name), (types.float32 if name.endswith("32") else types.float64,))
            function.name = f"opsmith_{name}"
            module.link_in(_in_plain_form(quick, function.name, module))
            module.link_in(quick._get_module_for_linking(), preserve=True)


def _in_plain_form(function: Linkable, name: str, like: Any) -> Any:
    """A module with a function that is called as C's are, and calls one of Numba's."""
    module, context = ir.Module(), cpu_target.target_context
    module.triple, module.data_layout = like.triple, like.data_layout
    number = context.get_value_type(function.returns)
    plain = ir.Function(module, ir.FunctionType(number, [number]), name)
    plain.attributes.add("alwaysinline")
    builder = ir.IRBuilder(plain.append_basic_block())
    description = ExternalFunctionDescriptor(function.name, function.returns, function.takes)
    called = signature(function.returns, *function.takes)
    _, value = context.call_internal_no_propagate(builder, description, called, plain.args)
    builder.ret(value)
    return llvm.parse_assembly(str(module))


def _remove_unused(module: Any, machine: Any) -> None:
    """Remove the functions that nothing in a module calls."""
    passes = llvm.create_new_module_pass_manager()
    if hasattr(passes, "add_global_dead_code_eliminate_pass"):
        passes.add_global_dead_code_eliminate_pass()
        passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    else:  # llvmlite before 0.45
        older = llvm.create_module_pass_manager()
        older.add_global_dce_pass()
        older.run(module)


_VECTORISED = {
    symbol: f"{name}_{bits}"
    for name in ("exp", "expm1", "tanh", "log", "log1p", "erf")
    for bits, of_c in ((32, f"{name}f"), (64, name))
    for symbol in (of_c, f"llvm.{name}.f{bits}")
    if hasattr(vector_math, f"{name}_{bits}")
}
"""The functions of `vector_math` by what Numba calls for them: the C library's functions and LLVM's own."""
_SHARED = "NRT_"
"""Numba's memory functions, which are the same in each process and recognised by name in its passes."""
_ENVIRONMENT = "_ZN08NumbaEnv"
_ENVIRONMENT_LOADED = re.compile(rf"(%[\w.]+) = load [^,]+, \S+ @{_ENVIRONMENT}")
_NO_ENVIRONMENT = re.compile(rf"^(@{_ENVIRONMENT}.* global (\S+)) null", re.MULTILINE)


def _file(key: str) -> str:
    return f"function_{key}.bin"


def _symbol(key: str) -> str:
    return f"opsmith_{key}"
