"""An example call of an operator: the tensors among its arguments are inputs, everything else stays as it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from app.bridge.function import POSITIONAL, Foreign
from app.errors import ConfigError

Form = Callable[[Sequence[Any]], Any]
"""Gives an argument for the tensors of a call."""


def with_example(
    foreign: Foreign, args: Sequence[Any], settings: dict[str, Any]
) -> tuple[Foreign, list[str], list[np.ndarray], list[bool]]:
    """The operator as a function of the tensors of an example call alone, with their names and numbers, and whether
    each needs a gradient.
    """
    arrays: list[np.ndarray] = []
    names: list[str] = []
    needs: list[bool] = []
    framework = foreign.framework

    def form_of(value: Any, name: str) -> Form:
        if isinstance(value, np.ndarray) or framework.is_tensor(value):
            place = len(arrays)
            arrays.append(np.array(value if isinstance(value, np.ndarray) else framework.array(value)))
            names.append(name)
            needs.append(framework.is_tensor(value) and framework.needs_gradient(value))
            return lambda tensors: tensors[place]
        if isinstance(value, (list, tuple)):
            forms = [form_of(item, f"{name}{place}") for place, item in enumerate(value)]
            return lambda tensors: type(value)(form(tensors) for form in forms)
        return lambda tensors: value

    positional = [p.name for p in foreign.signature if p.kind is not p.VAR_POSITIONAL]
    forms = [form_of(a, positional[i] if i < len(positional) else f"x{i}") for i, a in enumerate(args)]
    by_name = {name: form_of(value, name) for name, value in settings.items()}
    if not arrays:
        raise ConfigError(f"{foreign.name}: the example call has no {framework.name} tensor among its arguments")

    def filled(tensors: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        return [f(tensors) for f in forms], {name: f(tensors) for name, f in by_name.items()}

    signature = tuple(inspect.Parameter(name, POSITIONAL) for name in names)
    return replace(foreign, signature=signature, filled=filled), names, arrays, needs
