"""Hooks: functions that are called before and after a layer's `forward`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, MutableMapping
from typing import Any

from app.errors import silent_end

_numbers = itertools.count()

Hooks = MutableMapping[int, Callable[..., Any]]


class HookRemoveHelper:
    """The handle that registering a hook returns."""

    def __init__(self, hooks: Hooks, hook: Callable[..., Any]):
        self._hooks, self._number = hooks, next(_numbers)
        hooks[self._number] = hook

    def remove(self) -> None:
        """Remove the hook."""
        self._hooks.pop(self._number, None)


def inputs_after(hooks: Hooks, layer: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs of a layer after all hooks, each of which may replace them."""
    for hook in list(hooks.values()):
        changed = _called(hook, layer, inputs)
        if changed is not None:
            inputs = changed if isinstance(changed, tuple) else (changed,)
    return inputs


def output_after(hooks: Hooks, layer: Any, inputs: tuple[Any, ...], output: Any) -> Any:
    """The output of a layer after all hooks, each of which may replace it."""
    for hook in list(hooks.values()):
        changed = _called(hook, layer, inputs, output)
        output = output if changed is None else changed
    return output


def _called(hook: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return hook(*arguments)
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise silent_end(f"hook {getattr(hook, '__name__', hook)}", error) from error
