"""Custom operators that are written with the framework's operators: which ones, found by calling the function.

The function is called with Variables. If that works, and the appended operators compute the same as the function does
on arrays, these operators are its composition. Otherwise the operator is opaque: Python code that works on numbers.

A gradient operator with a composition can be differentiated through it. An opaque one cannot; asking for its
derivative is an error, because the silent alternative would be zero.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from app.errors import OperatorError
from app.graph import names
from app.graph.autodiff import Recorded, reverse_walk
from app.graph.defaults import program_guard, static_mode
from app.graph.interpret import run_operators
from app.graph.program import Operator, Program
from app.graph.variable import Variable
from app.listed import as_list
from app.ops.creation import zeros_like
from app.ops.definition import OpDef, apply
from app.ops.dtype import FLOATS
from app.ops.rules import Call
from app.ops.settings import key_of_settings
from app.ops.size import Shape
from app.ops.spec import UNKNOWN, Spec, spec_of
from app.tensor.modes import Modes, modes, set_modes

Specs = Sequence[Spec | None]
"""The Spec of each input; None for an input that is missing."""


@dataclass(frozen=True)
class Composition:
    """The Program of what an operator computes, and its variables for the inputs and the outputs, in order."""

    program: Program
    inputs: tuple[str | None, ...]
    outputs: tuple[str, ...]


_KEPT = 16
_found: WeakKeyDictionary[OpDef, dict[Any, Composition]] = WeakKeyDictionary()
"""The compositions of each operator that were found to compute the same as its function on arrays."""


def composition(
    definition: OpDef, function: Callable[..., Any] | None, specs: Specs, settings: Mapping[str, Any]
) -> Composition | None:
    """The composition of an operator, whose function takes inputs of these Specs; None if it is opaque.

    The function is called each time, because what it reads, such as an attribute of an object, may have changed.
    """
    if function is None:
        return None
    known = _found.setdefault(definition, {})
    key = (*specs, key_of_settings(settings))
    outside = modes()
    set_modes(Modes(outside.on, None))  # compute, even while a function is being traced
    try:
        found = _called(definition, function, specs, settings)
        before = known.pop(key, None)
        if found is None:
            return None
        if before is not None and found.outputs == before.outputs and found.program.equals(before.program):
            found = before
        elif not _does_the_same(definition, found, specs, settings):
            return None
    finally:
        set_modes(outside)
    known[key] = found
    if len(known) > _KEPT:
        known.pop(next(iter(known)))
    return found


def _called(
    definition: OpDef, function: Callable[..., Any], specs: Specs, settings: Mapping[str, Any]
) -> Composition | None:
    program = Program()
    block = program.global_block()
    inputs = [
        None if spec is None else block.create_var(name, spec.shape, spec.dtype, is_data=True)
        for name, spec in zip(definition.inputs, specs, strict=True)
    ]
    try:
        with names.guard(), program_guard(program, Program()), static_mode():
            result = function(*inputs, **settings)
    except KeyboardInterrupt:
        raise
    except BaseException:  # a function that does not take Variables may raise anything
        return None
    outputs = as_list(result)
    if not all(isinstance(v, Variable) and v.block is block for v in outputs):
        return None
    return Composition(program, tuple(None if v is None else v.name for v in inputs), tuple(v.name for v in outputs))


def _does_the_same(definition: OpDef, found: Composition, specs: Specs, settings: Mapping[str, Any]) -> bool:
    values: dict[str, Any] = {}
    random = np.random.default_rng(0)
    examples = [None if spec is None else _drawn(random, spec) for spec in specs]
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            values.update((n, _copied(a)) for n, a in zip(found.inputs, examples, strict=True) if n is not None)
            expected = definition.kernel(*map(_copied, examples), **settings)
            run_operators(found.program.global_block().ops, values)
    except Exception:  # the function's, on inputs that it does not expect
        return False
    wanted = [np.asarray(result) for result in (expected if isinstance(expected, tuple) else (expected,))]
    return len(wanted) == len(found.outputs) and all(
        _alike(np.asarray(values[name]), array) for name, array in zip(found.outputs, wanted, strict=True)
    )


def _drawn(random: np.random.Generator, spec: Spec) -> np.ndarray:
    shape = [_SIZE if size == UNKNOWN else size for size in spec.shape]
    numbers = random.uniform(-2.0, 2.0, shape) if spec.dtype in FLOATS else random.integers(0, 2, shape)
    return np.asarray(numbers).astype(spec.dtype)


_SIZE = 3
"""What an unknown size is replaced by while a function is tried."""


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _alike(found: np.ndarray, expected: np.ndarray) -> bool:
    same = found.dtype == expected.dtype and found.shape == expected.shape
    return same and bool(np.allclose(found, expected, rtol=1e-3, atol=1e-5, equal_nan=True))


# Derivatives of a composition


class ValueCall:
    """One operator of a composition applied to Tensors or Variables, as gradient rules see it."""

    def __init__(self, operator: Operator, values: Mapping[str, Any], active: set[str]):
        self.definition = operator.definition
        self.attributes = operator.attributes
        self.input_keys, self.output_keys = operator.inputs, operator.outputs
        self.needs = [name in active for name in operator.inputs]
        self._values = values

    def input(self, index: int) -> Any:
        name = self.input_keys[index]
        return None if name is None else self._values[name]

    like = input

    def output(self, index: int) -> Any:
        return self._values[self.output_keys[index]]

    def input_shape(self, index: int) -> Shape:
        value = self.input(index)
        return () if value is None else spec_of(value).shape

    def output_shape(self, index: int) -> Shape:
        return spec_of(self.output(index)).shape

    def zeros(self, index: int) -> Any:
        return zeros_like(self.output(index))


def derive_again(gradient: OpDef, function: Callable[..., Any], message: str) -> None:
    """Let a user's backward be differentiated through its composition; without one that is an error."""

    def rule(call: Call, douts: Sequence[Any], *inputs: Any) -> list[Any]:
        specs = [None if x is None else spec_of(x) for x in inputs]
        found = composition(gradient, function, specs, call.attributes)
        if found is None:
            raise OperatorError(message)
        return derivatives(found, inputs, douts, call.needs)

    gradient.optional_gradients = True
    gradient.gradient(rule, [("call", None), ("douts", None), *(("input", i) for i in range(len(gradient.inputs)))])


def derivatives(found: Composition, inputs: Sequence[Any], douts: Sequence[Any], needs: Sequence[bool]) -> list[Any]:
    """The gradients of a composition's inputs from those of its outputs; None for an input without one."""
    values = {name: x for name, x in zip(found.inputs, inputs, strict=True) if name is not None}
    active = {name for name, need in zip(found.inputs, needs, strict=True) if need and name is not None}
    calls: list[Recorded] = []
    for op in found.program.global_block().ops:
        results = apply(op.definition, [None if n is None else values[n] for n in op.inputs], op.attributes)
        values.update(zip(op.outputs, results if isinstance(results, tuple) else (results,), strict=True))
        if op.definition.differentiable and not active.isdisjoint(op.inputs):
            active.update(op.outputs)
            calls.append(ValueCall(op, values, active))
    gradients: dict[Any, Any] = {}
    for name, dout in zip(found.outputs, douts, strict=True):
        if dout is not None and name in active:
            gradients[name] = gradients[name] + dout if name in gradients else dout
    reverse_walk(reversed(calls), gradients)
    return [gradients.get(name) if need else None for name, need in zip(found.inputs, needs, strict=True)]
