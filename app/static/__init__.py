"""Building, differentiating, running and saving Programs."""

from app.custom.py_func import py_func
from app.engine import Executor, Scope, global_scope, scope_guard
from app.graph import (
    Block,
    Operator,
    Parameter,
    Program,
    Variable,
    append_backward,
    default_main_program,
    default_startup_program,
    gradients,
    program_guard,
)
from app.graph.statements import watch
from app.ops.loss import accuracy
from app.static import nn
from app.static.inputs import InputSpec, data
from app.static.saving import load, load_inference_model, save, save_inference_model
from app.static.variables import create_global_var, create_parameter

__all__ = [
    "Block",
    "Executor",
    "InputSpec",
    "Operator",
    "Parameter",
    "Program",
    "Scope",
    "Variable",
    "accuracy",
    "append_backward",
    "create_global_var",
    "create_parameter",
    "data",
    "default_main_program",
    "default_startup_program",
    "global_scope",
    "gradients",
    "load",
    "load_inference_model",
    "nn",
    "program_guard",
    "py_func",
    "save",
    "save_inference_model",
    "scope_guard",
    "watch",
]


def __dir__() -> list[str]:
    return __all__
