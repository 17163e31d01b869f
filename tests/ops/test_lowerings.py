"""The form that a compiler reads computes what the kernel computes, also where numbers are not finite."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy_forms import NUMPY
from op_calls import Call

import app
from app import static
from app.ops import REGISTRY, OpDef
from app.ops.lowering import Constant, Elementwise, Filling, Reduction
from app.ops.spec import Spec, spec_of

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
NEAR = {"float16": 2e-2, "float32": 1e-5, "float64": 1e-12}
NOT_FINITE = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 90.0, -90.0])


def names_of(kind: type) -> list[str]:
    return sorted(name for name, op in REGISTRY.items() if isinstance(op.lowering, kind))


def prepared(definition: OpDef, call: Call) -> tuple[list[np.ndarray], dict[str, Any], list[Spec]]:
    """The inputs and settings that the kernel gets, and what inference says of the outputs."""
    inputs, attributes = definition.bind(call.inputs, dict(call.attributes))
    inputs = inputs if definition.prepare is None else definition.prepare(inputs)
    return inputs, dict(attributes), list(definition.infer_outputs([spec_of(x) for x in inputs], attributes))


def results_of(definition: OpDef, inputs: list[np.ndarray], attributes: dict[str, Any]) -> list[np.ndarray]:
    results = definition.kernel(*inputs, **attributes)
    return [np.asarray(r) for r in (results if isinstance(results, tuple) else (results,))]


def one_by_one(definition: OpDef, inputs: list[np.ndarray], attributes: dict[str, Any], outs: list[Spec]) -> list[Any]:
    """What the function of an elementwise form gives for each element."""
    lowering, arrays = definition.lowering, [np.empty(spec.shape, spec.dtype) for spec in outs]
    operands = inputs if lowering.takes is None else [inputs[i] for i in lowering.takes]
    spread = [np.broadcast_to(x, outs[0].shape) for x in operands]
    whole = lowering.integers is not None and operands[0].dtype.kind in "iu"
    function = lowering.integers if whole else lowering.function
    for place in np.ndindex(outs[0].shape):
        numbers = function(*(x[place] for x in spread), *(attributes.values() if lowering.settings else ()))
        for array, number in zip(arrays, numbers if isinstance(numbers, tuple) else (numbers,), strict=True):
            array[place] = number.astype(array.dtype) if whole else number  # as compiled code does, without a check
    return arrays


def assert_same(results: list[Any], expected: list[np.ndarray]) -> None:
    for result, right in zip(results, expected, strict=True):
        near = NEAR.get(np.asarray(result).dtype.name, 0)
        np.testing.assert_allclose(result, right, rtol=near, atol=near)


SHAPES_AND_STEPS = {"cast", "expand", "where", "sgd", "momentum", "adam", "rmsprop"}
"""Elementwise operators that only move values, and optimisers' steps, whose kernel is the form's own function."""
OF_BITS = {name for name in REGISTRY if name.startswith("bitwise_")}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(set(names_of(Elementwise)) - SHAPES_AND_STEPS - OF_BITS))
def test_elementwise_beyond_the_finite(name: str, dtype: str):
    definition = REGISTRY[name]
    pairs = [np.array(column, dtype) for column in zip(*itertools.product(NOT_FINITE, repeat=2), strict=True)]
    settings = {"clip": {"min": -1.0, "max": 2.0}}.get(name, {})
    inputs, attributes, outs = prepared(definition, Call(pairs[: len(definition.inputs)], settings))
    results = results_of(definition, inputs, attributes)
    assert_same(one_by_one(definition, inputs, attributes, outs), results)
    if name in NUMPY:
        assert_same(results, [NUMPY[name](*inputs, **attributes)])


@pytest.mark.slow
def test_compiled_functions_of_one_value_agree_with_eager_ones_at_special_values_and_in_the_sign_of_zero():
    x, array = static.data("x", list(NOT_FINITE.shape)), NOT_FINITE.astype("float32")
    names = [n for n in names_of(Elementwise) if len(REGISTRY[n].inputs) == 1 and n not in SHAPES_AND_STEPS | OF_BITS]
    outputs = [REGISTRY[name](x) for name in names]
    results = static.Executor(engine="compiled").run(feed={"x": array}, fetch_list=outputs)
    for name, result in zip(names, results, strict=True):
        expected = REGISTRY[name](app.to_tensor(array)).numpy()
        np.testing.assert_allclose(result, expected, rtol=1e-6, err_msg=name)
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(result[numbers]), np.signbit(expected[numbers]), err_msg=name)


def folded(definition: OpDef, inputs: list[np.ndarray], attributes: dict[str, Any], out: Spec) -> np.ndarray:
    """What a reduction's form gives: each element folded, from the start, out of those along the axes."""
    x, lowering = inputs[0], definition.lowering
    axes = tuple(lowering.axes(attributes, [array.shape for array in inputs]))
    result = np.full([1 if i in axes else n for i, n in enumerate(x.shape)], lowering.start(x.dtype.name), out.dtype)
    for place in np.ndindex(x.shape):
        into = tuple(0 if i in axes else n for i, n in enumerate(place))
        result[into] = x[place] + result[into] if lowering.combine is None else lowering.combine(result[into], x[place])
    if lowering.mean:
        result = result / (x.size / max(result.size, 1))
    return result.reshape(out.shape)


@pytest.mark.parametrize(
    "row", [[1.0, np.nan, 2.0], [np.nan] * 3, [np.inf, 1.0, 2.0], [-np.inf] * 3, [np.inf, -np.inf, 0.0]]
)
@pytest.mark.parametrize("name", names_of(Reduction))
def test_reduction_beyond_the_finite(name: str, row: list[float]):
    x = np.array([row, row[::-1]], "float32")
    settings: dict[str, Any] = {"sum_to": {"shape": (2, 1)}, "sum_like": {}}.get(name, {"axis": 1})
    arrays = [x, np.zeros((2, 1), "float32")] if name == "sum_like" else [x]
    inputs, attributes, (out,) = prepared(REGISTRY[name], Call(arrays, settings))
    assert_same([folded(REGISTRY[name], inputs, attributes, out)], results_of(REGISTRY[name], inputs, attributes))


def the_compiled_form_computes_what_the_kernel_computes(name: str, call: Call, data: object) -> None:
    """A fact of a generated call, in test_inference.py."""
    definition = REGISTRY[name]
    if not isinstance(definition.lowering, Elementwise | Constant | Reduction | Filling):
        return
    inputs, attributes, outs = prepared(definition, call)
    match definition.lowering:
        case Elementwise():
            results = one_by_one(definition, inputs, attributes, outs)
        case Constant(value=value):
            results = [np.full(outs[0].shape, value(attributes), outs[0].dtype)]
        case Reduction():
            results = [folded(definition, inputs, attributes, outs[0])]
        case Filling(fits=fits):
            if not fits(attributes, inputs[0].ndim):
                return
            results = [np.empty(spec.shape, spec.dtype) for spec in outs]
            assert definition.lowering.function(*inputs, *results, *attributes.values())
    assert_same(results, results_of(definition, inputs, attributes))


@pytest.mark.parametrize("labels", [[-1, 0], [0, 3], [1, 255], [0], [0, 0, 0]], ids=str)
@pytest.mark.parametrize("name", ["softmax_with_cross_entropy", "one_hot_like", "accuracy", "index_sample"])
def test_a_filling_says_that_labels_do_not_fit(name: str, labels: list[int]):
    definition = REGISTRY[name]

    def inputs(labels: list[int]) -> list[np.ndarray]:
        scores = np.zeros((2, 3), "float32")
        return [np.array(labels), scores] if name == "one_hot_like" else [scores, np.array(labels)]

    _, attributes, outs = prepared(definition, Call(inputs([0, 0])))
    arrays = [np.empty(spec.shape, spec.dtype) for spec in outs]
    assert definition.lowering.function(*inputs([0, 2]), *arrays, *attributes.values())
    assert not definition.lowering.function(*inputs(labels), *arrays, *attributes.values())
