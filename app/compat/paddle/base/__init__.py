"""paddle.base: what is left of paddle.fluid in later releases, and what the two have in common."""

from app.compat.missing import missing
from app.compat.paddle.base import backward, compiler, core, dygraph, executor, framework, param_attr, unique_name
from app.compat.paddle.base.framework import in_dygraph_mode
from app.device import CPUPlace, CUDAPlace, is_compiled_with_cuda
from app.engine import Executor, Scope, global_scope, scope_guard
from app.graph import (
    Program,
    Variable,
    append_backward,
    default_main_program,
    default_startup_program,
    disable_static,
    enable_static,
    gradients,
    program_guard,
)
from app.nn import ParamAttr
from app.static import BuildStrategy, CompiledProgram, DataFeeder, ExecutionStrategy, name_scope

__all__ = [
    "BuildStrategy",
    "CPUPlace",
    "CUDAPlace",
    "CompiledProgram",
    "DataFeeder",
    "ExecutionStrategy",
    "Executor",
    "ParamAttr",
    "Program",
    "Scope",
    "Variable",
    "append_backward",
    "backward",
    "compiler",
    "core",
    "default_main_program",
    "default_startup_program",
    "disable_dygraph",
    "dygraph",
    "enable_dygraph",
    "executor",
    "framework",
    "global_scope",
    "gradients",
    "in_dygraph_mode",
    "is_compiled_with_cuda",
    "name_scope",
    "param_attr",
    "program_guard",
    "scope_guard",
    "unique_name",
]

enable_dygraph, disable_dygraph = disable_static, enable_static

__getattr__ = missing(__name__)
