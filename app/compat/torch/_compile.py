"""`torch.compile`: a function or a module is traced and runs as a native Program, as with `app.jit.to_static`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.errors import ProgramError
from app.jit import to_static

BACKENDS = {"inductor": "compiled", "aot_eager": "reference", "eager": "reference"}
"""PyTorch's backends, and the engines that run traced functions for them."""
MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Trace a function, or a module's forward, and run it natively. A module is changed and returned.

    `fullgraph`, `dynamic` and `mode` have no effect: there are no graph breaks (what cannot be traced is an error), the
    size of the batch is left open where the function allows it, and there is one way to compile.
    """
    if not isinstance(backend, str) or backend not in BACKENDS:
        raise ProgramError(f"torch.compile: backend={backend!r} is not available; there are {', '.join(BACKENDS)}")
    if mode not in MODES:
        raise ProgramError(f"torch.compile: there is no mode {mode!r}; PyTorch has {', '.join(map(str, MODES[1:]))}")
    if options:
        raise ProgramError(f"torch.compile: options of PyTorch's compiler ({', '.join(options)}) have no meaning here")

    def make(target: Any) -> Any:
        return target if disable else to_static(target, backend=BACKENDS[backend])

    return make if model is None else make(model)
