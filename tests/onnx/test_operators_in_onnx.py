"""Every operator that can be exported gives in ONNX what its kernel gives: the same numbers, shapes and types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from onnx_runs import DRAWN, model_for, program_of, run
from op_calls import CALLS, Call

from app.errors import AppError
from app.ops import REGISTRY
from app.ops.lowering import Convolution, Pooling

WITHOUT = {
    "adadelta", "adagrad", "adam", "amsgrad", "momentum", "rmsprop", "sgd",  # optimisers: a network in use has none
    "truncated_gaussian_random",  # ONNX draws no such numbers
    "byte_product", "transposed_byte_product", "transposed_byte_product_step", "transposed_bytes",  # made by a pass
}  # fmt: skip
OF_IMAGES = {name for name, op in REGISTRY.items() if isinstance(op.lowering, (Convolution, Pooling))}
IN_FLOAT32 = {name for name, op in REGISTRY.items() if isinstance(op.lowering, Convolution)}
"""ONNX Runtime has them for float32 alone, and ONNX's reference implementation is wrong about groups."""
NEAR = {"float16": 1e-2, "float32": 1e-5, "float64": 1e-7}  # settings such as alpha are float32 in ONNX


def test_every_operator_has_a_rule_but_those_that_onnx_has_no_way_to_say():
    assert {name for name, op in REGISTRY.items() if op.onnx is None} <= WITHOUT


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
    model = model_for(program, feed, fetch)
    with np.errstate(all="ignore"):
        expected: Any = definition.kernel(*map(np.asarray, definition.prepared(given)), **attributes)
    found = run(model, dict(zip(feed, given, strict=True)))
    for result, array in zip(found, expected if isinstance(expected, tuple) else (expected,), strict=True):
        array = np.asarray(array)
        assert (result.dtype, result.shape) == (array.dtype, array.shape)
        near = max(NEAR.get(x.dtype.name, 0) for x in (*given, array))
        if name not in DRAWN:
            np.testing.assert_allclose(result.astype("float64"), array.astype("float64"), rtol=near, atol=near)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # float16 overflows
@pytest.mark.parametrize("name", sorted(name for name in CALLS if REGISTRY[name].onnx is not None))
def test_an_exported_operator_gives_the_same(name: str):
    @settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(call=CALLS[name], free=st.booleans())
    def check(call: Call, free: bool) -> None:
        assert_exported_alike(name, call, free)

    check()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "free"),
    [
        (5, False),
        (0, True),
        (2, True),
        *(
            pytest.param(*form, marks=pytest.mark.soak)
            for form in ((0, False), (1, False), (2, False), (1, True), (5, True))
        ),
    ],
)
def test_slices_end_where_numpys_do_whatever_there_is(size: int, free: bool):
    ends = [None, -7, -3, -2, -1, 0, 1, 3, 7]
    for cut in ((start, stop, step) for start in ends for stop in ends for step in (-2, -1, 2)):
        assert_exported_alike(
            "take_items", Call([np.arange(size, dtype="float32")], {"items": (("slice", *cut),)}), free
        )


@pytest.mark.parametrize(
    ("name", "attributes", "low", "high"),
    [
        ("uniform_random", {"shape": (50, 4), "min": -1.0, "max": 3.0}, -1.0, 3.0),
        ("integer_random", {"shape": (200,), "low": 2, "high": 5, "dtype": "int32"}, 2, 4),
        ("permutation", {"n": 20}, 0, 19),
    ],
)
def test_numbers_that_are_drawn_lie_where_they_are_drawn_from(name: str, attributes: Any, low: float, high: float):
    program, feed, fetch = program_of(name, [], {**REGISTRY[name].attributes, **attributes}, False)
    (drawn,) = run(model_for(program, feed, fetch), {})
    spread = (drawn.min(), drawn.max())
    assert low <= spread[0] < low + (high - low) / 4
    assert high - (high - low) / 4 < spread[1] <= high
    assert name != "permutation" or sorted(drawn) == list(range(20))
