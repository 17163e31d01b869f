"""A source as machine code: its functions become one LLVM module, which is optimised as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types

from app.engine.compiled import language as loops
from app.engine.compiled.emit import Callees, Declared, Emitter, numba_type
from app.engine.compiled.numba_api import (
    Environment,
    FunctionDescriptor,
    callconv,
    cpu_target,
)
from app.engine.compiled.shape_errors import compiled_quickly
from app.engine.compiled.vectors import INT


class Objects(NamedTuple):
    """The machine code of a source and of what it calls."""

    code: list[bytes]
    needs: list[str]
    """The symbols that it refers to."""


@compiled_quickly()
def compiled(
    functions: Mapping[str, loops.Function], called: Mapping[str, Any], symbol: Callable[[str], str]
) -> Objects:
    """Compile the functions of a source; those that Python calls get a `symbol`. `called` has all others by name."""
    cpu_target.typing_context.refresh()
    target = cpu_target.target_context
    target.refresh()
    library = target.codegen().create_library(symbol("source"))
    library._optimize_functions = lambda module: None  # the module is optimised once, as a whole
    module = library.create_ir_module(symbol("source"))
    declared: dict[str, Declared] = {}
    callees = Callees()
    for name, function in functions.items():
        description = _description(function, symbol(f"{name}.body"))
        context = target.subtarget(
            error_model=callconv.create_error_model("numpy", target), enable_nrt=True,
            environment=Environment.from_fndesc(description), fndesc=description,
        )  # fmt: skip
        with context.push_code_library(library):
            body = context.declare_function(module, description)
            if not function.is_called_by_python:
                body.attributes.add("noinline")  # it would only make the caller slower to compile
            declared[name] = Declared(body, description, function.parameters)
            builder = ir.IRBuilder(body.append_basic_block("entry"))
            context.call_conv.init_call_helper(builder)
            arguments = context.get_arg_packer(description.argtypes).from_arguments(
                builder, context.call_conv.get_arguments(body)
            )
            emitter = Emitter(context, builder, {}, called, declared, callees)
            emitter.function(function, arguments)
            if function.is_called_by_python:
                _add_entry(context, module, symbol(name), declared[name])
            context.post_lowering(module, library)
    library.add_ir_module(module)
    return _objects(library, {symbol(name) for name in functions}, callees)


def _description(function: loops.Function, name: str) -> FunctionDescriptor:
    kinds: list[Any] = []
    if function.is_called_by_python:
        kinds = [types.int64, types.int64, types.voidptr]
    else:
        for parameter in function.parameters:
            kinds += _parts(parameter)
    return FunctionDescriptor(
        native=True, modname=__name__, qualname=name, unique_name=name, doc="", typemap={}, restype=types.boolean,
        calltypes={}, args=[f"argument_{place}" for place in range(len(kinds))], kws=(), argtypes=tuple(kinds),
        global_dict={},
    )  # fmt: skip


def _parts(parameter: loops.Parameter) -> list[Any]:
    """The Numba types in which a parameter is passed: a number, or an address and the sizes that are not declared."""
    if parameter.shape is None:
        return [numba_type(parameter.dtype)]
    return [types.CPointer(numba_type(parameter.dtype)), *[types.int64] * parameter.shape.count(None)]


def _add_entry(context: Any, module: Any, name: str, declared: Declared) -> None:
    """Add the function that Python calls with the thread's number, the number of threads, and a table of the other
    arguments. It releases the GIL meanwhile."""
    table = context.get_value_type(types.voidptr)
    entry = ir.Function(module, ir.FunctionType(INT, [INT, INT, table]), name)
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    python = context.get_python_api(builder)
    thread = python.save_thread()
    status, gave_up = context.call_conv.call_function(
        builder, declared.body, types.boolean, declared.description.argtypes, entry.args
    )
    python.restore_thread(thread)
    with builder.if_then(status.is_ok, likely=True):
        builder.ret(builder.zext(gave_up, INT))
    context.call_conv.raise_error(builder, python, status)
    builder.ret(INT(0))


def _objects(library: Any, shown: set[str], callees: Callees) -> Objects:
    """The machine code of a library, with only some functions visible from outside, and that of what it calls.

    Functions that return sizes are called before loops, not in them: inlining each call would take a fourth of LLVM's
    time.
    """
    module = library._final_module
    for other in dict.fromkeys(library._linking_libraries):
        module.link_in(other._get_module_for_linking(), preserve=True)
    for function in module.functions:
        if not function.is_declaration and function.name not in shown:
            function.linkage = "internal"
        if function.name in callees.of_sizes:
            function.add_function_attribute("noinline")
    library._optimize_final_module()
    module.verify()
    linked = {each.name: each for each in callees.linked.values() if not each.is_inlined}
    called = {name: each.code for name, each in linked.items()}
    called |= {each.name: each.code for each in callees.of_vectors.values()}
    needs = {name for each in linked.values() for name in each.needs}
    needs.update(f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm."))
    return Objects([library.codegen._tm.emit_object(module), *called.values()], sorted(needs - called.keys()))
