"""paddle.base.framework"""

from typing import Any

from app.compat.missing import missing
from app.device import CPUPlace, CUDAPlace
from app.graph import (
    Block,
    Operator,
    Parameter,
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    in_dynamic_mode,
    program_guard,
)
from app.static import name_scope
from app.tensor import is_grad_enabled, set_grad_enabled

in_dygraph_mode = in_dynamic_mode


_flags: dict[str, Any] = {}


def set_flags(flags: dict[str, Any]) -> None:
    """Settings of Paddle's own engine: they are kept, and change nothing here."""
    _flags.update(flags)


def get_flags(flags: Any) -> dict[str, Any]:
    names = [flags] if isinstance(flags, str) else flags
    return {name: _flags.get(name) for name in names}


class _Tracer:
    """What records eager operators in Paddle, of which programs switch this one thing."""

    @property
    def _has_grad(self) -> bool:
        return is_grad_enabled()

    @_has_grad.setter
    def _has_grad(self, on: bool) -> None:
        set_grad_enabled(on)


def _dygraph_tracer() -> Any:
    return _Tracer()


__all__ = [
    "Block",
    "CPUPlace",
    "CUDAPlace",
    "Operator",
    "Parameter",
    "Program",
    "Variable",
    "default_main_program",
    "default_startup_program",
    "get_flags",
    "in_dygraph_mode",
    "name_scope",
    "program_guard",
    "set_flags",
]

__getattr__ = missing(__name__)
