"""From functions in LLVM's language to machine code that Numba's functions call by name.

It needs no type inference, so it takes a tenth of a second where Numba takes a second. It depends on no code of a
user's, and is kept on disk.
"""

from __future__ import annotations

import base64
from typing import Any

import llvmlite.binding as llvm
from numba import types

from app.engine.compiled import cache
from app.engine.compiled.vectors import FLOAT, INT, POINTER, Code

_TYPES = {str(POINTER): types.uintp, str(INT): types.int64, str(FLOAT): types.float32}

_loaded: list[Any] = []
"""What holds the machine code, for as long as the process lives."""


def machine(cpu: str | None = None, features: str | None = None) -> Any:
    """This machine, or another, as LLVM knows it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu = llvm.get_host_cpu_name() if cpu is None else cpu
    features = llvm.get_host_cpu_features().flatten() if features is None else features
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=cpu, features=features, opt=3, jit=True)


def compiled(text: str, target: Any) -> bytes:
    """The machine code of functions in LLVM's language."""
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False
    passes = llvm.create_pass_builder(target, options)
    passes.getModulePassManager().run(module, passes)
    code: bytes = target.emit_object(module)
    return code


def loaded(code: bytes, name: str, target: Any) -> int:
    """The address of a function of machine code, which stays."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _loaded.append(engine)
    address: int = engine.get_function_address(name)
    return address


def linked(code: Code) -> Any:
    """A function for Numba's functions to call, compiled or taken from disk."""
    text = code.text()
    kept = cache.remembered(
        f"machine code: {text}", lambda: base64.b64encode(compiled(text, machine())).decode("ascii")
    )
    llvm.add_symbol(code.name, loaded(base64.b64decode(kept), code.name, machine()))
    kinds = [_TYPES[str(value.ir.type)] for value in code.parameters.values()]
    return types.ExternalFunction(code.name, types.void(*kinds))
