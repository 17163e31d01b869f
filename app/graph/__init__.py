"""Programs as plain data, autodiff and passes."""

from app.graph import control_gradients, names
from app.graph.defaults import (
    default_main_program,
    default_startup_program,
    disable_static,
    dynamic_mode,
    enable_static,
    in_dynamic_mode,
    program_guard,
    static_mode,
    static_unless_chosen,
)
from app.graph.gradients import append_backward, gradients
from app.graph.program import Block, Operator, Program
from app.graph.variable import Parameter, Variable

__all__ = [
    "Block",
    "Operator",
    "Parameter",
    "Program",
    "Variable",
    "append_backward",
    "control_gradients",
    "default_main_program",
    "default_startup_program",
    "disable_static",
    "dynamic_mode",
    "enable_static",
    "gradients",
    "in_dynamic_mode",
    "names",
    "program_guard",
    "static_mode",
    "static_unless_chosen",
]
