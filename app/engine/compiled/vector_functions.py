"""Functions written in vector instructions (`vectors.py`), compiled by LLVM alone, for Numba's functions to call.

Without type inference this takes a tenth of a second where Numba takes a second. The code does not depend on a user's,
and is kept on disk.
"""

from __future__ import annotations

import base64
import inspect
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm
from numba import types

from app.engine.compiled import cache, vectors
from app.engine.compiled.fingerprint import fingerprint
from app.engine.compiled.vectors import FLOAT, INT, POINTER, Code, lanes_of_machine

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


def engine_of(objects: Sequence[bytes], target: Any = None) -> Any:
    """Load machine code. It stays as long as the engine that is returned, which knows its addresses."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target or machine())
    for code in objects:
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def loaded(code: bytes, name: str, target: Any) -> int:
    """The address of a function of machine code, which stays."""
    _loaded.append(engine_of([code], target))
    address: int = _loaded[-1].get_function_address(name)
    return address


def linked(name: str, make: Callable[[], Code]) -> Any:
    """A function for Numba's functions to call, compiled or taken from disk.

    Its name says all that `make` depends on besides this code and the machine.
    """
    lanes = lanes_of_machine()
    key = f"machine code: {name}, {lanes} lanes, {_written_by(make.__module__)}"
    kept = cache.remembered(key, lambda: _kept(make()))
    llvm.add_symbol(name, loaded(base64.b64decode(kept["code"]), name, machine()))
    return types.ExternalFunction(name, types.void(*(_TYPES[kind] for kind in kept["takes"])))


def _kept(code: Code) -> dict[str, Any]:
    """What is kept of a function on disk."""
    takes = [str(value.ir.type) for value in code.parameters.values()]
    return {"code": base64.b64encode(compiled(code.text(), machine())).decode("ascii"), "takes": takes}


@lru_cache(maxsize=8)
def _written_by(module: str) -> str:
    """A hash of the code that writes the functions of a module."""
    return fingerprint(*(inspect.getsource(each) for each in (vectors, sys.modules[__name__], sys.modules[module])))
