"""The function of a custom operator called with Variables, for its export to ONNX and for second derivatives.

The operators that it appends are used only if they compute what it computes for arrays: a random number, or anything
else that it computes itself, would be a constant in them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from app.errors import OperatorError
from app.graph.autodiff import reverse_walk
from app.graph.defaults import program_guard, static_mode
from app.graph.gradients import BlockCall, active_names
from app.graph.interpret import run_body
from app.graph.program import Body, Program
from app.graph.variable import Variable
from app.listed import as_list
from app.ops.definition import OpDef, apply
from app.ops.dtype import FLOATS
from app.ops.rules import Call
from app.ops.spec import UNKNOWN, Spec, spec_of
from app.tensor.modes import Modes, modes, set_modes


def body_of(
    definition: OpDef, function: Callable[..., Any], specs: Sequence[Spec | None], settings: Mapping[str, Any]
) -> Body | None:
    """The operators that a function appends for Variables of these Specs; None if it needs numbers.

    None stands for a missing input.
    """
    program = Program()
    block = program.global_block()
    names = [name if spec else None for name, spec in zip(definition.inputs, specs, strict=True)]
    variables = [spec and block.create_var(name, *spec, is_data=True) for name, spec in zip(names, specs, strict=True)]
    outside = modes()
    set_modes(Modes(outside.on, None))  # compute, even while a function is being traced
    try:
        with program_guard(program, Program()), static_mode():
            outputs = as_list(function(*variables, **settings))
        if not all(isinstance(v, Variable) and v.block is block for v in outputs):
            return None
        body = Body(block, [name for name in names if name], [v.name for v in outputs])
        is_same = all(_computes_the_same(body, definition, specs, settings, seed) for seed in range(2))
        return body if is_same else None
    except KeyboardInterrupt:
        raise
    except BaseException:  # a function that does not take Variables may raise anything
        return None
    finally:
        set_modes(outside)


def _computes_the_same(
    body: Body, definition: OpDef, specs: Sequence[Spec | None], settings: Mapping[str, Any], seed: int
) -> bool:
    """Whether a body computes what the operator does, for an example: two random numbers may be equal by chance."""
    random = np.random.default_rng(seed)
    values = [spec and _drawn(random, spec) for spec in specs]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        expected = definition.kernel(*(None if x is None else x.copy() for x in values), **settings)
        results = run_body(body, [x for x in values if x is not None])
    pairs = zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True)
    return all(_nearly_equal(np.asarray(a), np.asarray(b)) for a, b in pairs)


def _drawn(random: np.random.Generator, spec: Spec) -> np.ndarray:
    """An array for a Spec; open sizes are 3."""
    shape = [3 if size == UNKNOWN else size for size in spec.shape]
    numbers = random.uniform(-2.0, 2.0, shape) if spec.dtype in FLOATS else random.integers(0, 2, shape)
    return np.asarray(numbers).astype(spec.dtype)


def _nearly_equal(a: np.ndarray, b: np.ndarray) -> bool:
    same_kind = a.dtype == b.dtype and a.shape == b.shape
    return same_kind and bool(np.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True))


# Second derivatives


def differentiate_on_variables(gradient: OpDef, function: Callable[..., Any], message: str) -> None:
    """Let the gradient of a custom operator be differentiated through what its function appends for Variables.

    Where it appends nothing, that is an error with this message: the silent alternative would be zero.
    """

    def rule(call: Call, douts: Sequence[Any], *inputs: Any) -> list[Any]:
        specs = [None if x is None else spec_of(x) for x in inputs]
        body = body_of(gradient, function, specs, call.attributes)
        if body is None:
            raise OperatorError(message)
        needs = {name for name, need in zip(gradient.inputs, call.needs, strict=True) if need}
        values = {name: x for name, x in zip(gradient.inputs, inputs, strict=True) if x is not None}
        results = gradients_of(body, values, douts, needs)
        return [results.get(name) for name in gradient.inputs]

    gradient.optional_gradients = True
    gradient.gradient(rule, [("call", None), ("douts", None), *(("input", i) for i in range(len(gradient.inputs)))])


def gradients_of(body: Body, inputs: Mapping[str, Any], douts: Sequence[Any], needs: set[str]) -> dict[str, Any]:
    """The gradients of some inputs of a body, for values and gradients of the outputs of any class.

    The reverse walk appends their operators to the body, and then all are applied to the values.
    """
    block = body.block
    active = active_names(block, needs)
    calls = [BlockCall(block, op, [name in active for name in op.inputs]) for op in block.ops]
    values = dict(inputs)
    gradients: dict[Hashable, Any] = {}
    with program_guard(block.program, Program()), static_mode():
        for place, (name, dout) in enumerate(zip(body.outputs, douts, strict=True)):
            if dout is not None and name in active:
                arriving = block.create_var(f"{name}@ARRIVED{place}", *spec_of(dout), is_data=True)
                values[arriving.name] = dout
                gradients[name] = gradients[name] + arriving if name in gradients else arriving
        reverse_walk((call for call in reversed(calls) if not active.isdisjoint(call.output_keys)), gradients)
    for op in block.ops:
        results = apply(op.definition, [None if name is None else values[name] for name in op.inputs], op.attributes)
        values.update(zip(op.outputs, results if isinstance(results, tuple) else (results,), strict=True))
    return {name: values[gradients[name].name] for name in needs if name in gradients}
