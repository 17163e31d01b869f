"""Custom operators that are written with the framework's operators: what these are, found by calling the function.

The function is called with Variables. If it can do with them, and computes the same with them as the operator does
with arrays, the operators that it appended are what it is made of. Else it is opaque: Python that works on numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from app.graph import names
from app.graph.defaults import program_guard, static_mode
from app.graph.program import Program, Variable
from app.graph.running import run_operator
from app.listed import as_list
from app.ops.definition import OpDef
from app.ops.dtype import FLOATS
from app.ops.settings import key_of_settings
from app.ops.spec import UNKNOWN, Spec
from app.tensor.modes import Modes, modes, set_modes

Specs = Sequence[Spec | None]
"""Of each input what is known of it; None where there is none."""


def drawn(specs: Specs) -> list[Any]:
    """Random numbers for inputs of these Specs, to try a function on."""
    random = np.random.default_rng(0)
    return [None if spec is None else _drawn(random, spec) for spec in specs]


def _drawn(random: np.random.Generator, spec: Spec) -> np.ndarray:
    shape = [_SIZE if size == UNKNOWN else size for size in spec.shape]
    numbers = random.uniform(-2.0, 2.0, shape) if spec.dtype in FLOATS else random.integers(0, 2, shape)
    return np.asarray(numbers).astype(spec.dtype)


_SIZE = 3
"""What an unknown size is while a function is tried."""


@dataclass(frozen=True)
class OnValues:
    """A custom operator's function as one of values, and inputs to try it on, given what is known of them."""

    function: Callable[..., Any]
    examples: Callable[[Specs], list[Any]] = drawn


@dataclass(frozen=True)
class Composition:
    """What an operator is made of: a Program, and its variables for the inputs and the outputs, in order."""

    program: Program
    inputs: tuple[str | None, ...]
    outputs: tuple[str, ...]


_KEPT = 16
_found: WeakKeyDictionary[OpDef, dict[Any, Composition | None]] = WeakKeyDictionary()


def composition(
    definition: OpDef, on_values: OnValues | None, specs: Specs, settings: Mapping[str, Any]
) -> Composition | None:
    """The operators that an operator on inputs of these Specs is made of; None for one that is opaque."""
    if on_values is None:
        return None
    known = _found.setdefault(definition, {})
    key = (*specs, key_of_settings(settings))
    if key not in known:
        if len(known) >= _KEPT:
            known.pop(next(iter(known)))
        found = _called(definition, on_values, specs, settings)
        same = found is not None and _does_the_same(definition, on_values, found, specs, settings)
        known[key] = found if same else None
    return known[key]


def _called(definition: OpDef, on_values: OnValues, specs: Specs, settings: Mapping[str, Any]) -> Composition | None:
    program = Program()
    block = program.global_block()
    inputs = [
        None if spec is None else block.create_var(name, spec.shape, spec.dtype, is_data=True)
        for name, spec in zip(definition.inputs, specs, strict=True)
    ]
    outside = modes()
    set_modes(Modes(outside.on, None))
    try:
        with names.guard(), program_guard(program, Program()), static_mode():
            result = on_values.function(*inputs, **settings)
    except KeyboardInterrupt:
        raise
    except BaseException:  # whatever a function raises that cannot do with Variables
        return None
    finally:
        set_modes(outside)
    outputs = as_list(result)
    if not all(isinstance(v, Variable) and v.block is block for v in outputs):
        return None
    return Composition(program, tuple(None if v is None else v.name for v in inputs), tuple(v.name for v in outputs))


def _does_the_same(
    definition: OpDef, on_values: OnValues, found: Composition, specs: Specs, settings: Mapping[str, Any]
) -> bool:
    values: dict[str, Any] = {}
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            examples = on_values.examples(specs)
            values.update((n, _copied(a)) for n, a in zip(found.inputs, examples, strict=True) if n is not None)
            expected = definition.kernel(*map(_copied, examples), **settings)
            for op in found.program.global_block().ops:
                run_operator(op, values)
    except Exception:  # the function's, on numbers that it was not made for
        return False
    results = expected if isinstance(expected, tuple) else (expected,)
    wanted = [np.asarray(r) for r in results if isinstance(r, (np.ndarray, np.generic))]
    return len(wanted) == len(found.outputs) and all(
        _alike(np.asarray(values[name]), array) for name, array in zip(found.outputs, wanted, strict=True)
    )


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _alike(found: np.ndarray, expected: np.ndarray) -> bool:
    same = found.dtype == expected.dtype and found.shape == expected.shape
    return same and bool(np.allclose(found, expected, rtol=1e-3, atol=1e-5, equal_nan=True))
