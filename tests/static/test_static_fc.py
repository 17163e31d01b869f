"""`static.nn.fc`: its shapes, its parameters, its activations; and `static.data` and `InputSpec`."""

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


def run(fetch: Any, **feed: Any) -> np.ndarray:
    executor = static.Executor()
    executor.run(static.default_startup_program())
    block = static.default_main_program().global_block()
    return executor.run(feed={k: np.asarray(v, block.var(k).dtype) for k, v in feed.items()}, fetch_list=[fetch])[0]


def ones(value: float = 1.0) -> ParamAttr:
    return ParamAttr(initializer=initializer.Constant(value))


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
    np.testing.assert_array_equal(run("mine", x=[[0, 0, 0]]), np.full((2, 5), 3))


@pytest.mark.parametrize(
    ("shape", "flatten", "result", "weight"),
    [
        ([None, 4], 1, (-1, 2), (4, 2)),
        ([None, 2, 3], 1, (-1, 2), (6, 2)),
        ([None, 2, 3], 2, (-1, 2, 2), (3, 2)),
        ([None, 1, 28, 28], 1, (-1, 2), (784, 2)),
        ([5, 2, 3, 4], 2, (5, 2, 2), (12, 2)),
    ],
)
def test_axes_after_the_first_ones_are_joined(shape: list, flatten: int, result: tuple, weight: tuple):
    y = static.nn.fc(static.data("x", shape, "float64"), 2, num_flatten_dims=flatten, bias_attr=False)
    assert (y.shape, y.dtype) == (result, "float64")
    assert parameters() == {"fc_0.w_0": weight}
    assert static.default_main_program().all_parameters()[0].dtype == "float64"
    fed = np.ones([3 if size is None else size for size in shape])
    assert run(y, x=fed).shape == tuple(3 if size == -1 else size for size in result)


def test_several_inputs_have_a_weight_each_and_one_bias():
    x, z = static.data("x", [None, 3]), static.data("z", [None, 2])
    y = static.nn.fc([x, z], 4, weight_attr=ones(), bias_attr=ones(10))
    assert parameters() == {"fc_0.w_0": (3, 4), "fc_0.w_1": (2, 4), "fc_0.b_0": (4,)}
    np.testing.assert_array_equal(run(y, x=[[1, 1, 1]], z=[[2, 2]]), [[17] * 4])


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid", "softmax", "custom.relu"])
def test_an_activation_is_named(activation: str):
    x = static.data("x", [None, 3])
    y = static.nn.fc(x, 2, activation=activation)
    plain = static.default_main_program().global_block().var("add.out_0")
    expected = getattr(app, activation.removeprefix("custom."))(app.to_tensor(run(plain, x=np.eye(3)))).numpy()
    (found,) = static.Executor().run(feed={"x": np.eye(3, dtype="float32")}, fetch_list=[y])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("shape", "settings", "error", "told"),
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
def test_wrong_arguments_are_errors(shape: list, settings: Any, error: type[Exception], told: str):
    with pytest.raises(error, match=told):
        static.nn.fc(static.data("x", shape), 2, **settings)


# --- data and InputSpec ---


def test_data_is_fed_and_has_no_gradient():
    x = static.data("x", [None, -1, 3], "int64")
    assert (x.shape, x.dtype, x.is_data, x.stop_gradient, x.persistable) == ((-1, -1, 3), "int64", True, True, False)
    assert static.data("y", [1]).dtype == "float32"
    assert static.data("z", []).shape == ()


def test_an_input_spec_has_given_settings_or_those_of_a_value():
    x = static.data("x", [None, 3], "float64")
    spec, of_a_tensor = static.InputSpec([None, 3], "int32", "label"), static.InputSpec.from_tensor(app.ones([2]), "t")
    assert (spec.shape, spec.dtype, spec.name) == ((-1, 3), "int32", "label")
    assert (of_a_tensor.shape, of_a_tensor.dtype, of_a_tensor.name) == ((2,), "float32", "t")
    assert repr(static.InputSpec.from_tensor(x)) == "InputSpec(shape=(-1, 3), dtype=float64, name=x)"
    assert repr(static.InputSpec.from_numpy(np.ones((2, 3)))) == repr(static.InputSpec([2, 3], "float64"))
    assert static.InputSpec([2]).dtype == "float32"
