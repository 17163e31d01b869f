"""Whether eager operators are recorded for a backward pass.

Each thread has a mode of its own, as in PyTorch, and so has each asyncio task: it is a context variable. A new thread
begins with recording on, whatever the thread that started it does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ContextDecorator
from contextvars import ContextVar, Token
from functools import wraps
from typing import Any

from app.errors import OperatorError


class Modes:
    """What an operator has to know of the thread that applies it. Never changed: another one takes its place."""

    __slots__ = ("on", "plain", "recorded", "tracer", "unrecorded")

    def __init__(self, on: bool, tracer: Any, other: Modes | None = None):
        self.on = on
        """Whether operators are recorded."""
        self.tracer = tracer
        """What operators are handed to instead of being run, while a function is traced into a Program."""
        self.plain = not on and tracer is None
        """Whether operators are run, and nothing else."""
        other = Modes(not on, tracer, self) if other is None else other
        self.recorded, self.unrecorded = (self, other) if on else (other, self)
        """The same modes with recording on, and off."""


_at_first = Modes(True, None)
_modes = ContextVar("modes", default=_at_first)

modes = _modes.get
"""The modes of the thread that asks. The hot path asks once for each operator."""
set_modes, reset_modes = _modes.set, _modes.reset


def _switch(on: bool) -> None:
    """Set whether this thread records, until it is set again."""
    now = modes()
    set_modes(now.recorded if on else now.unrecorded)


class set_grad_enabled:  # noqa: N801 - Paddle's name
    """Switch recording on or off: at once when called, and back at the end when used with `with`. It decorates too."""

    def __init__(self, mode: bool):
        self._mode = bool(mode)
        self._outside = modes().on
        _switch(self._mode)

    def __call__(self, function: Any) -> Any:
        _switch(self._outside)  # a decorator switches when the function is called, not before
        return (enable_grad if self._mode else no_grad)()(function)

    def __enter__(self) -> None:
        _switch(self._mode)

    def __exit__(self, *error: Any) -> None:
        _switch(self._outside)


class _Switched(ContextDecorator):
    """A context, and a decorator, inside which recording is on or off. `no_grad(function)` decorates too.

    A generator that is decorated runs inside it as well, and whoever iterates over it does not.
    """

    _mode: bool
    _entered: list[Token[Modes]]
    """Of each time that it was entered, what was before. Threads share it where they share the context."""

    def __new__(cls, function: Any = None) -> Any:
        made = super().__new__(cls)
        made._entered = []
        return made if function is None else made(function)

    def __call__(self, function: Any) -> Any:
        if inspect.isgeneratorfunction(function):
            return _step_by_step(self, function)
        if inspect.iscoroutinefunction(function):
            return _awaited(self, function)
        if inspect.isasyncgenfunction(function):
            name = f"{type(self).__name__} cannot decorate {function.__name__}, which is an asynchronous generator"
            raise OperatorError(f"{name}: write `with app.{type(self).__name__}():` inside it, around what it computes")
        return super().__call__(function)

    def __enter__(self) -> None:
        now = modes()
        self._entered.append(set_modes(now.recorded if self._mode else now.unrecorded))

    def __exit__(self, *error: Any) -> None:
        for token in self._entered[::-1]:
            try:
                reset_modes(token)
            except (ValueError, RuntimeError):  # that of another thread, which is in this context too or just left it
                continue
            self._entered.remove(token)
            return


def _awaited(context: AbstractContextManager[None], function: Callable[..., Any]) -> Callable[..., Any]:
    """A coroutine function that runs inside a context."""

    @wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        with context:
            return await function(*args, **kwargs)

    return run


def _step_by_step(context: AbstractContextManager[None], function: Callable[..., Any]) -> Callable[..., Any]:
    """A generator function each of whose steps, from one `yield` to the next, runs inside a context."""

    @wraps(function)
    def generate(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        generator = function(*args, **kwargs)
        step, given = generator.send, None
        while True:
            try:
                with context:
                    value = step(given)
            except StopIteration as end:
                return end.value
            try:
                step, given = generator.send, (yield value)
            except GeneratorExit:
                with context:
                    generator.close()
                raise
            except BaseException as error:  # what its user throws into it
                step, given = generator.throw, error

    return generate


class no_grad(_Switched):  # noqa: N801 - Paddle's name
    """Operators inside are not recorded."""

    _mode = False


class enable_grad(_Switched):  # noqa: N801 - Paddle's name
    """Operators inside are recorded."""

    _mode = True


def is_grad_enabled() -> bool:
    """Whether operators are being recorded."""
    return modes().on
