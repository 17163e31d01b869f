"""Every operator that can be exported gives in ONNX what its kernel gives: the same numbers, shapes and types."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from onnx_runs import model_for, program_of, run
from op_calls import CALLS, Call

from app.errors import AppError, ExportError
from app.ops import REGISTRY
from app.ops.lowering import Convolution, Pooling

WITHOUT = {
    "adadelta", "adagrad", "adam", "amsgrad", "momentum", "rmsprop", "sgd", "matmul_step", "running_mean",
    "avg_pool2d_spread", "conv2d_input", "conv2d_weight", "max_pool2d_pick", "max_pool2d_scatter", "one_hot_like",
    "put_items", "split_like", "spread", "sum_like", "sum_to",  # of training and gradients
    "accuracy", "binary_cross_entropy", "pick", "softmax_with_cross_entropy",  # of losses
    "gaussian_random", "integer_random", "permutation", "truncated_gaussian_random", "uniform_random",
    "byte_product", "transposed_byte_product", "transposed_byte_product_step", "transposed_bytes",  # made by a pass
    "isclose", "places_of_nonzero",
}  # fmt: skip
OF_IMAGES = {name for name, op in REGISTRY.items() if isinstance(op.lowering, (Convolution, Pooling))}
IN_FLOAT32 = {name for name, op in REGISTRY.items() if isinstance(op.lowering, Convolution)}
"""ONNX Runtime has them for float32 alone, and ONNX's reference implementation is wrong about groups."""
EXAMPLES = int(os.environ.get("OPSMITH_EXAMPLES", "3"))
"""How many calls of an operator are generated. `make soak` sets more."""
NEAR = {"float16": 1e-2, "float32": 1e-5, "float64": 1e-7}  # settings such as alpha are float32 in ONNX


def test_every_operator_of_a_network_in_use_has_a_rule():
    assert {name for name, op in REGISTRY.items() if op.onnx is None} == WITHOUT


def assert_exported_alike(name: str, call: Call, free: bool) -> None:
    definition = REGISTRY[name]
    given = [np.asarray(x) for x in call.inputs]
    if name in OF_IMAGES and not all(x.size for x in given):
        reject()  # ONNX's reference implementation, which judges empty values, fails on these
    given = [x.astype("float32") for x in given] if name in IN_FLOAT32 else given
    free = free and all(x.size for x in given)
    _, attributes = definition.bind([given] if definition.variadic else given, dict(call.attributes))
    if "training" in attributes:
        attributes = {**attributes, "training": False}
    try:
        program, feed, fetch = program_of(name, given, attributes, free)
    except AppError:
        assert free  # some operators need to know sizes
        return
    try:
        model = model_for(program, feed, fetch)
    except ExportError:
        assert name == "take_items"  # of indices by arrays, ONNX has one array along one axis
        return
    with np.errstate(all="ignore"):
        expected: Any = definition.kernel(*map(np.asarray, definition.prepared(given)), **attributes)
    found = run(model, dict(zip(feed, given, strict=True)))
    for result, array in zip(found, expected if isinstance(expected, tuple) else (expected,), strict=True):
        array = np.asarray(array)
        assert (result.dtype, result.shape) == (array.dtype, array.shape)
        near = max(NEAR.get(x.dtype.name, 0) for x in (*given, array))
        np.testing.assert_allclose(result.astype("float64"), array.astype("float64"), rtol=near, atol=near)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # float16 overflows
@pytest.mark.parametrize("name", sorted(name for name in CALLS if REGISTRY[name].onnx is not None))
def test_an_exported_operator_gives_the_same(name: str):
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(call=CALLS[name], free=st.booleans())
    def check(call: Call, free: bool) -> None:
        assert_exported_alike(name, call, free)

    check()


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        *(("unsqueeze", {"axis": axis}) for axis in [(0, 0), (2, 0), (-1, 1), (1, 0, 2)]),
        ("split", {"num_or_sections": 2, "axis": 0}),
    ],
)
def test_several_axes_are_inserted_in_order_and_an_open_axis_is_split(name: str, attributes: dict[str, Any]):
    assert_exported_alike(name, Call([np.ones((4, 3), "float32")], attributes), True)


@pytest.mark.parametrize(("size", "free"), [(5, False), (2, True)])
def test_slices_end_where_those_of_numpy_do(size: int, free: bool):
    ends = [None, -7, -2, -1, 0, 1, 7]
    for cut in ((start, stop, step) for start in ends for stop in ends for step in (-2, 1, 2)):
        assert_exported_alike(
            "take_items", Call([np.arange(size, dtype="float32")], {"items": (("slice", *cut),)}), free
        )
