"""`static.nn.fc`: its parameters and wrong arguments; and `InputSpec`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.errors import ConfigError, ShapeError
from app.nn import ParamAttr, initializer


def parameters() -> dict[str, tuple[int, ...]]:
    return {p.name: p.shape for p in static.default_main_program().all_parameters()}


# --- fc ---


def test_parameters_are_numbered_or_named_initialised_and_fixed():
    x = static.data("x", [None, 3])
    weight = ParamAttr("mine", initializer.Constant(3.0), trainable=False)
    static.nn.fc(static.nn.fc(static.nn.fc(x, 4), 2, name="head"), 5, weight_attr=weight, bias_attr="shift")
    assert parameters() == {
        "fc_0.w_0": (3, 4),
        "fc_0.b_0": (4,),
        "head.w_0": (4, 2),
        "head.b_0": (2,),
        "mine": (2, 5),
        "shift": (5,),
    }
    assert [p.trainable for p in static.default_main_program().all_parameters()] == [True] * 4 + [False, True]
    static.Executor().run(static.default_startup_program())
    np.testing.assert_array_equal(static.global_scope().value("mine"), np.full((2, 5), 3))
    np.testing.assert_array_equal(static.global_scope().value("fc_0.b_0"), np.zeros(4))


@pytest.mark.parametrize(
    ("shape", "settings", "error", "message"),
    [
        ([None, None], {}, ShapeError, r"fc: the size of x after axis 1 must be known, found shape \[-1, -1\]"),
        *(
            (
                [None, 2, 3],
                {"num_flatten_dims": n},
                ShapeError,
                rf"num_flatten_dims={n} does not fit x of shape \[-1, 2, 3\]",
            )
            for n in (0, 3, -1)
        ),
        ([None, 3], {"activation": "rleu"}, ConfigError, r"there is no operator 'rleu'; did you mean 'relu'\?"),
    ],
)
def test_wrong_arguments_are_errors(shape: list, settings: Any, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        static.nn.fc(static.data("x", shape), 2, **settings)


@pytest.mark.parametrize(("dtype", "expected"), [("float64", "float64"), ("float32", "float32"), ("uint8", "float32")])
@pytest.mark.parametrize(
    "layer", [lambda x: static.nn.fc(x, 3), lambda x: static.nn.conv2d(x, 3, 2), static.nn.batch_norm]
)
def test_parameters_have_the_type_of_the_input_if_that_is_a_float(layer: Any, dtype: str, expected: str):
    y = layer(static.data("x", [None, 2, 4, 4], dtype))
    block = static.default_main_program().global_block()
    assert {v.dtype for v in block.vars.values() if v.persistable} == {expected}
    assert y.dtype == expected
    app.optimizer.SGD(0.1).minimize(app.mean(y * y))
    static.Executor().run(static.default_startup_program())
    (result,) = static.Executor().run(feed={"x": np.ones((3, 2, 4, 4), dtype)}, fetch_list=[y])
    assert result.dtype == expected


# --- InputSpec ---


def test_an_input_spec_has_given_settings_or_those_of_a_value():
    x = static.data("x", [None, 3], "float64")
    spec, of_a_tensor = static.InputSpec([None, 3], "int32", "label"), static.InputSpec.from_tensor(app.ones([2]), "t")
    assert (spec.shape, spec.dtype, spec.name) == ((-1, 3), "int32", "label")
    assert (of_a_tensor.shape, of_a_tensor.dtype, of_a_tensor.name) == ((2,), "float32", "t")
    assert repr(static.InputSpec.from_tensor(x)) == "InputSpec(shape=(-1, 3), dtype=float64, name=x)"
    assert repr(static.InputSpec.from_numpy(np.ones((2, 3)))) == repr(static.InputSpec([2, 3], "float64"))
    assert static.InputSpec([2]).dtype == "float32"
