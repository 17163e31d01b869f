"""Functions written in vector instructions (`vectors.py`), compiled by LLVM alone, for generated source to call.

Without type inference this takes a tenth of a second where Numba takes a second. The code does not depend on a user's,
and is kept on disk.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import msgspec

from app.engine.compiled import cache
from app.engine.compiled.fingerprint import fingerprint
from app.engine.compiled.vectors import Code, processor


@dataclass(frozen=True)
class VectorFunction:
    """A function that `write` writes for its name and arguments. The name says all that the code depends on besides the
    modules that write it and the machine."""

    name: str
    write: Callable[..., Code]
    arguments: tuple[Any, ...]


class MachineCode(NamedTuple):
    """The machine code of a vector function, as what calls it is linked with it."""

    name: str
    takes: list[str]
    """The LLVM types of its arguments."""
    code: bytes


@lru_cache(maxsize=128)
def machine_code(function: VectorFunction) -> MachineCode:
    """Compile a function, or take it from disk."""
    file = f"function_{fingerprint(function.name, cache.environment())[:32]}.bin"
    name, data = f"opsmith_{function.name}", cache.read(file)
    if data is not None:
        with contextlib.suppress(msgspec.DecodeError):
            return msgspec.msgpack.decode(data, type=MachineCode)
    code = function.write(name, *function.arguments)
    takes = [str(value.ir.type) for value in code.parameters.values()]
    machine_function = MachineCode(name, takes, compiled(code.text(), machine()))
    cache.keep(file, msgspec.msgpack.encode(machine_function))
    return machine_function


def machine(cpu: str | None = None, features: str | None = None) -> Any:
    """The machine that code is made for, or another, as LLVM knows it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, usual = processor()
    cpu, features = name if cpu is None else cpu, usual if features is None else features
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
