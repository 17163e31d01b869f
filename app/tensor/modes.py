"""Whether eager operators are recorded for a backward pass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ContextDecorator
from functools import wraps
from typing import Any


class _Recording:
    """The switch; one object, so that the hot path reads a single attribute."""

    __slots__ = ("on", "tracer")

    def __init__(self) -> None:
        self.on = True
        self.tracer: Any = None
        """What operators are handed to instead of being run, while a function is traced into a Program."""


recording = _Recording()


class set_grad_enabled:  # noqa: N801 - Paddle's name
    """Switch recording on or off: at once when called, and back at the end when used with `with`. It decorates too."""

    def __init__(self, mode: bool):
        self._mode = bool(mode)
        self._outside = recording.on
        recording.on = self._mode

    def __call__(self, function: Any) -> Any:
        recording.on = self._outside  # a decorator switches when the function is called, not before
        return (enable_grad if self._mode else no_grad)()(function)

    def __enter__(self) -> None:
        recording.on = self._mode

    def __exit__(self, *error: Any) -> None:
        recording.on = self._outside


class _Switched(ContextDecorator):
    """A context, and a decorator, inside which recording is on or off. `no_grad(function)` decorates too.

    A generator that is decorated runs inside it as well, and whoever iterates over it does not.
    """

    _mode: bool

    def __new__(cls, function: Any = None) -> Any:
        made = super().__new__(cls)
        if function is None:
            return made
        made._outside = []
        return made(function)

    def __init__(self, function: Any = None):
        self._outside: list[bool] = []

    def __call__(self, function: Any) -> Any:
        if inspect.isgeneratorfunction(function):
            return _step_by_step(self, function)
        return super().__call__(function)

    def __enter__(self) -> None:
        self._outside.append(recording.on)
        recording.on = self._mode

    def __exit__(self, *error: Any) -> None:
        recording.on = self._outside.pop()


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
    return recording.on
