"""Of generated calls of every operator: what inference says happens, in a Program and eagerly, and what is computed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy_forms import NUMPY
from op_calls import CALLS, OF_VALUES, Call, applied
from test_lowerings import assert_same, the_compiled_form_computes_what_the_kernel_computes

from app import static, to_tensor
from app.errors import AppError, DtypeError, ShapeError
from app.ops import REGISTRY, OpDef
from app.ops.dtype import NAMES
from app.ops.size import named_size
from app.ops.spec import Spec

RANDOM = {"uniform_random", "gaussian_random", "integer_random"}


def test_every_operator_has_a_strategy_of_calls():
    assert set(CALLS) == set(OF_VALUES)


def declared(
    definition: OpDef, call: Call, shapes: list[list[int]] | None = None
) -> tuple[static.Program, list[static.Variable]]:
    """A Program that makes the call on variables of these shapes, else those of the inputs, and its results."""
    program = static.Program()
    shapes = [list(x.shape) for x in call.inputs] if shapes is None else shapes
    with static.program_guard(program, static.Program()):
        if not call.inputs:
            return program, program.current_block().append_op(definition, [], definition.bind((), call.attributes)[1])
        feeds = [
            static.data(f"x{i}", s, x.dtype.name) for i, (x, s) in enumerate(zip(call.inputs, shapes, strict=True))
        ]
        return program, applied(definition, feeds, call.attributes)


def run(program: static.Program, call: Call, variables: list[static.Variable]) -> list[np.ndarray]:
    return static.Executor().run(program, {f"x{i}": x for i, x in enumerate(call.inputs)}, variables)


SIZED_BY_NUMBERS = {"last_writes", "take_items"}
"""Operators whose results have as many elements as their inputs' numbers say, so that it is not known before a run."""


def results_are_as_inferred_and_as_eager_ones(name: str, call: Call, data: Any) -> None:
    program, variables = declared(REGISTRY[name], call)
    results = run(program, call, variables)
    for variable, result in zip(variables, results, strict=True):
        unknown = -1 if name in SIZED_BY_NUMBERS else None
        expected = tuple(-1 if size == unknown else n for size, n in zip(variable.shape, result.shape, strict=True))
        assert (variable.shape, variable.dtype) == (expected, result.dtype.name)
    if name not in RANDOM:
        eager = applied(REGISTRY[name], [to_tensor(x) for x in call.inputs], dict(call.attributes))
        for tensor, value in zip(eager, results, strict=True):
            assert (list(tensor.shape), str(tensor.dtype)) == (list(value.shape), value.dtype.name)
            np.testing.assert_array_equal(np.asarray(tensor), value)


REFUSES_UNKNOWN = {"squeeze": "has an unknown size", "matmul_step": "cannot update a matrix"}
"""Operators that may refuse a size that is not known where the shape of the result would hang on it."""


def inference_of_unknown_sizes_agrees_with_any_size(name: str, call: Call, data: Any) -> None:
    if name in RANDOM | {"fill_constant"}:
        return
    shapes = [[-1 if data.draw(st.booleans(), "hide") else n for n in x.shape] for x in call.inputs]
    try:
        program, variables = declared(REGISTRY[name], call, shapes)
    except ShapeError as error:
        if REFUSES_UNKNOWN.get(name, "nothing is refused") in str(error):
            return
        raise
    for variable, value in zip(variables, run(program, call, variables), strict=True):
        assert len(variable.shape) == value.ndim
        assert all(size in (-1, n) for size, n in zip(variable.shape, value.shape, strict=True)), variable
        assert variable.dtype == value.dtype.name


def what_follows_from_a_named_size_holds_for_every_number(name: str, call: Call, data: Any) -> None:
    definition, n = REGISTRY[name], named_size("n")
    sizes = sorted({size for x in call.inputs for size in x.shape})
    if not sizes:
        return
    hidden = data.draw(st.sampled_from(sizes), "hidden")
    places = [[size == hidden and data.draw(st.integers(0, 3), "hide") > 0 for size in x.shape] for x in call.inputs]
    attributes = definition.bind([call.inputs] if definition.variadic else call.inputs, dict(call.attributes))[1]

    def inferred(size: Any) -> list[tuple[Any, ...]]:
        shapes = [
            tuple(size if hide else s for s, hide in zip(x.shape, hides, strict=True))
            for x, hides in zip(call.inputs, places, strict=True)
        ]
        prepared = definition.prepared(call.inputs)
        specs = [Spec(shape, np.asarray(x).dtype.name) for shape, x in zip(shapes, prepared, strict=True)]
        return [spec.shape for spec in definition.infer_outputs(specs, attributes)]

    try:
        symbolic = inferred(n)
    except AppError:
        return  # what the shape is hangs on the number
    if any(isinstance(size, int) and size == -1 for shape in symbolic for size in shape):
        return
    for number in (0, 1, 2, 3, 7, hidden):
        try:
            expected = inferred(number)
        except AppError:
            continue
        assert [tuple(s if isinstance(s, int) else s.at(n=number) for s in shape) for shape in symbolic] == expected


def the_same_element_types_are_refused_eagerly_as_in_a_program(name: str, call: Call, data: Any) -> None:
    definition = REGISTRY[name]
    if not definition.public or name in RANDOM:
        return
    mixed = data.draw(st.tuples(*[st.sampled_from(NAMES)] * len(call.inputs)), "mixed")
    alike = data.draw(st.permutations(NAMES), "alike")[:4]
    for types in (mixed, *((dtype,) * len(call.inputs) for dtype in alike)):
        inputs = [x.astype(dtype) for x, dtype in zip(call.inputs, types, strict=True)]
        expected = outcome(lambda inputs=inputs: declared(definition, Call(inputs, call.attributes))[1])
        eager = outcome(lambda inputs=inputs: applied(definition, [to_tensor(x) for x in inputs], call.attributes))
        assert eager in (expected, "other"), types  # other: such as an index that is out of range after the cast


def outcome(apply: Callable[[], Any]) -> Any:
    """The element types of the results of a call, or how it is refused."""
    try:
        return [str(result.dtype) for result in apply()]
    except DtypeError:
        return "type"
    except AppError:
        return "other"


def numbers_are_those_of_numpy(name: str, call: Call, data: Any) -> None:
    if name in NUMPY:
        results = applied(REGISTRY[name], [to_tensor(x) for x in call.inputs], call.attributes)
        expected = NUMPY[name](*REGISTRY[name].prepared(call.inputs), **call.attributes)
        assert_same(results, [np.asarray(x) for x in (expected if isinstance(expected, tuple) else (expected,))])


FACTS = [
    results_are_as_inferred_and_as_eager_ones,
    inference_of_unknown_sizes_agrees_with_any_size,
    what_follows_from_a_named_size_holds_for_every_number,
    the_same_element_types_are_refused_eagerly_as_in_a_program,
    numbers_are_those_of_numpy,
    the_compiled_form_computes_what_the_kernel_computes,
]
EXAMPLES = int(os.environ.get("OPSMITH_EXAMPLES", "4"))
"""How many calls of an operator are generated. `make soak` sets more."""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # float16 overflows, and so do numbers that other types make
@pytest.mark.parametrize("name", sorted(OF_VALUES))
def test_generated_calls(name: str):
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(call=CALLS[name], data=st.data())
    def check(call: Call, data: Any) -> None:
        for fact in FACTS:
            fact(name, call, data)

    check()
