"""Whether eager operators are recorded for a backward pass.

The mode is a context variable, so each thread and each asyncio task has its own, as in PyTorch. In a new thread,
recording is on, whatever the mode of the thread that started it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import ContextDecorator
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, TypeVar

from app.errors import OperatorError
from app.tensor.tape import Node

if TYPE_CHECKING:
    from typing_extensions import Self


class Modes:
    """The modes of a thread. The object is immutable; to change a mode, set another object."""

    __slots__ = ("direct", "node", "on", "recorded", "tracer", "unrecorded")

    def __init__(self, on: bool, tracer: Any, node: type[Node] = Node, other: Modes | None = None):
        self.on = on
        """Whether operators are recorded."""
        self.tracer = tracer
        """While a function is traced into a Program, the `opsmith.jit.tracer.Tracer` that gets the
        operators; else None.
        """
        self.node = node
        """The class of the records."""
        self.direct = not on and tracer is None
        """Whether operators run without being recorded or traced."""
        other = Modes(not on, tracer, node, self) if other is None else other
        self.recorded, self.unrecorded = (self, other) if on else (other, self)
        """The same modes with recording on, and with recording off."""


_Function = TypeVar("_Function", bound=Callable[..., Any])

_initial = Modes(True, None)
_modes = ContextVar("modes", default=_initial)

modes = _modes.get
"""Returns the modes of this thread. The hot path calls it once for each operator."""
set_modes, reset_modes = _modes.set, _modes.reset


def _switch(on: bool) -> None:
    """Switch recording on or off in this thread."""
    now = modes()
    set_modes(now.recorded if on else now.unrecorded)


class set_grad_enabled:  # noqa: N801 - Paddle's name
    """Switch recording on or off, by a call, inside a `with` block, or inside a decorated function."""

    def __init__(self, mode: bool):
        self._mode = bool(mode)
        self._outside = modes().on
        _switch(self._mode)

    def __call__(self, function: _Function) -> _Function:
        _switch(self._outside)  # a decorator switches when the function is called, not before
        return (enable_grad if self._mode else no_grad)()(function)

    def __enter__(self) -> None:
        _switch(self._mode)

    def __exit__(self, *error: object) -> None:
        _switch(self._outside)


_RUN_LATER = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
"""Tests for functions whose calls return before their bodies run."""


class _Switched(ContextDecorator):
    """A context manager and decorator that switches recording on or off. `no_grad(function)` decorates too."""

    _mode: bool
    _entered: list[Token[Modes]]
    """The modes before each entry. Threads that share the object share the list."""

    def __new__(cls, function: Callable[..., Any] | None = None) -> Self:
        switch = super().__new__(cls)
        switch._entered = []
        return switch if function is None else switch(function)  # type: ignore[return-value] # `no_grad(function)`

    def __call__(self, function: _Function) -> _Function:
        if any(test(function) for test in _RUN_LATER):
            name = type(self).__name__
            raise OperatorError(
                f"{name} cannot decorate {function.__name__}, whose body runs after the call: write "
                f"`with opsmith.{name}():` inside it, around what it computes"
            )
        return super().__call__(function)

    def __enter__(self) -> None:
        now = modes()
        self._entered.append(set_modes(now.recorded if self._mode else now.unrecorded))

    def __exit__(self, *error: object) -> None:
        for token in self._entered[::-1]:
            try:
                reset_modes(token)
            except (ValueError, RuntimeError):  # the token of another thread that uses the same object
                continue
            self._entered.remove(token)
            return


class no_grad(_Switched):  # noqa: N801 - Paddle's name
    """Disable recording of operators, as a context manager or decorator."""

    _mode = False


class enable_grad(_Switched):  # noqa: N801 - Paddle's name
    """Enable recording of operators, as a context manager or decorator."""

    _mode = True


def is_grad_enabled() -> bool:
    """Whether operators are being recorded."""
    return modes().on
