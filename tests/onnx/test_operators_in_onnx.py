"""Exported operators give the numbers, shapes and types of their kernels."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator
from op_calls import CALLS, Call

from app import static
from app.engine import Scope
from app.errors import AppError, ExportError
from app.graph.program import Program
from app.onnx.model import model_of
from app.ops import REGISTRY
from app.ops.lowering import Convolution, Pooling
from app.static.saving import for_use

WITHOUT = {
    "adam", "momentum", "rmsprop", "sgd", "matmul_step", "running_mean",
    "avg_pool2d_expand", "conv2d_input", "conv2d_weight", "max_pool2d_gather", "max_pool2d_scatter", "one_hot_like",
    "put_items", "last_writes", "split_like", "expand_reduced", "sum_like", "sum_to",  # of training and gradients
    "accuracy", "index_sample", "softmax_with_cross_entropy",  # of losses
    "gaussian_random", "integer_random", "uniform_random",
    "byte_product", "transposed_byte_product", "transposed_byte_product_step", "transposed_bytes",  # made by a pass
    "isclose", "while_loop_gradient",
}  # fmt: skip
OF_IMAGES = {name for name, op in REGISTRY.items() if isinstance(op.lowering, (Convolution, Pooling))}
IN_FLOAT32 = {name for name, op in REGISTRY.items() if isinstance(op.lowering, Convolution)}
"""ONNX Runtime has them for float32 alone, and ONNX's reference implementation is wrong about groups."""
EXAMPLES = int(os.environ.get("OPSMITH_EXAMPLES", "2"))
"""How many calls of an operator are generated. `make soak` sets more."""
NEAR = {"float16": 1e-2, "float32": 1e-5, "float64": 1e-7}  # settings such as alpha are float32 in ONNX


QUIET = onnxruntime.SessionOptions()
QUIET.log_severity_level = 4


def test_every_operator_of_a_network_in_use_has_a_rule():
    assert {name for name, op in REGISTRY.items() if op.onnx is None} == WITHOUT


def program_of(name: str, inputs: Sequence[np.ndarray], attributes: Mapping[str, Any], free: bool) -> Any:
    """A Program that applies one operator; `free` leaves the sizes of its inputs' first axes open."""
    program = Program()
    definition = REGISTRY[name]
    with static.program_guard(program, Program()):
        shapes = [[-1, *x.shape[1:]] if free and x.ndim else x.shape for x in inputs]
        feeds = [static.data(f"x{i}", s, x.dtype.name) for i, (s, x) in enumerate(zip(shapes, inputs, strict=True))]
        block = program.global_block()
        values = definition.prepared(feeds)
        outputs = block.append_op(definition, [block.as_variable(v) for v in values], dict(attributes))
    return program, [v.name for v in feeds], [v.name for v in outputs]


def run_by_reference(model: onnx.ModelProto, feed: Mapping[str, np.ndarray]) -> Any:
    try:
        return ReferenceEvaluator(model).run(None, dict(feed))
    except ValueError as error:
        if "index and self should be the same size" in str(error):  # ONNX permits a smaller index, but nobody is left
            reject()
        raise


def run(model: onnx.ModelProto, feed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The results of ONNX Runtime; of ONNX's own implementation where that lacks a type."""
    if not all(np.size(x) for x in feed.values()):  # of which ONNX Runtime leaves some results as memory was
        return run_by_reference(model, feed)
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), QUIET, providers=["CPUExecutionProvider"])
        return session.run(None, dict(feed))
    except Exception as error:
        if "NOT_IMPLEMENTED" not in str(error) and "is not supported with" not in str(error):
            raise
        return run_by_reference(model, feed)


def assert_exported_alike(name: str, call: Call, free: bool) -> None:
    definition = REGISTRY[name]
    inputs = [np.asarray(x) for x in call.inputs]
    if name in OF_IMAGES and not all(x.size for x in inputs):
        reject()  # ONNX's reference implementation, which judges empty values, fails on these
    inputs = [x.astype("float32") for x in inputs] if name in IN_FLOAT32 else inputs
    free = free and all(x.size for x in inputs)
    _, attributes = definition.bind([inputs] if definition.variadic else inputs, dict(call.attributes))
    if "training" in attributes:
        attributes = {**attributes, "training": False}
    try:
        program, feed, fetch = program_of(name, inputs, attributes, free)
    except AppError:
        assert free  # some operators need to know sizes
        return
    try:
        model, *_ = model_of(for_use(program, feed, fetch, Scope()))
    except ExportError:
        assert name == "take_items"  # of indices by arrays, ONNX has one array along one axis
        return
    with np.errstate(all="ignore"):
        expected: Any = definition.kernel(*map(np.asarray, definition.prepared(inputs)), **attributes)
    results = run(model, dict(zip(feed, inputs, strict=True)))
    for result, array in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
        array = np.asarray(array)
        assert (result.dtype, result.shape) == (array.dtype, array.shape)
        near = max(NEAR.get(x.dtype.name, 0) for x in (*inputs, array))
        np.testing.assert_allclose(result.astype("float64"), array.astype("float64"), rtol=near, atol=near)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # float16 overflows
@pytest.mark.parametrize("name", sorted(name for name in CALLS if REGISTRY[name].onnx is not None))
def test_exported_operators_give_the_same_results(name: str):
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
    ends = [None, -7, -1, 0, 7]
    for cut in ((start, stop, step) for start in ends for stop in ends for step in (-2, 1, 2)):
        assert_exported_alike(
            "take_items", Call([np.arange(size, dtype="float32")], {"items": (("slice", *cut),)}), free
        )


SPECIAL = np.array([0.0, -0.0, 1.5, -1.5, 3.0, -200.0, 1e30, np.inf, -np.inf, np.nan], "float32")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        *((name, {}) for name in ("atan2", "floor_divide", "remainder")),
        *(("clip", bounds) for bounds in ({"min": 0.5}, {"max": 0.5}, {"min": -1.0, "max": 2.0})),
        ("logsumexp", {"axis": 0}),
    ],
)
def test_infinite_numbers_nan_and_both_zeros_give_the_same_results(name: str, attributes: dict[str, Any]):
    pairs = [x.ravel() for x in np.meshgrid(SPECIAL, SPECIAL)]
    inputs = [np.stack(pairs)] if name == "logsumexp" else pairs if len(REGISTRY[name].inputs) == 2 else [SPECIAL]
    assert_exported_alike(name, Call(inputs, attributes), False)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
def test_quotients_of_the_largest_integers_do_not_overflow(name: str, dtype: str):
    ends = np.iinfo(dtype)
    x, y = np.meshgrid([ends.min, ends.min + 1, ends.max - 1, ends.max, 7], [ends.max, ends.min or 5, 2, 3])
    assert_exported_alike(name, Call([x.astype(dtype), y.astype(dtype)], {}), False)
    if ends.min:
        assert_exported_alike(name, Call([x.astype(dtype), (-2 - abs(y % 9)).astype(dtype)], {}), False)
