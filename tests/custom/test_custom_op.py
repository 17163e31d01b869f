"""`custom_op` on functions of arrays: what is passed by name, what is inferred, plain and Numba functions, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layers import data, run, variable
from numba import njit, vectorize

import app
from app import custom_op, static
from app.errors import OperatorError
from app.static import InputSpec

PLACE = r"\(test_custom_op\.py:\d+\)"


@custom_op
def cube(x):
    """The third power."""
    return x**3


@cube.backward
def _(x, dy):
    return 3 * x**2 * dy


@custom_op
@njit
def swish(x):
    return x * (0.5 * np.tanh(0.5 * x) + 0.5)


@swish.backward
@njit
def _(x, y, dy):
    s = 0.5 * np.tanh(0.5 * x) + 0.5
    return dy * (y + s * (1 - y))


@custom_op(outputs=("low", "high"))
def bounds(x, w):
    product = x * w
    return product.min(axis=1), product.max(axis=1)


@bounds.backward
def _(x, w, low, high, dlow, dhigh):
    product = x * w
    dproduct = (product == low[:, None]) * dlow[:, None] + (product == high[:, None]) * dhigh[:, None]
    return dproduct * w, dproduct * x


# --- In both modes ---


def test_a_plain_function_becomes_an_operator():
    x = data(1.0, -2.0)
    y = cube(x)
    y.sum().backward()
    np.testing.assert_array_equal(y.numpy(), [1, -8])
    np.testing.assert_array_equal(x.grad.numpy(), [3, 12])
    assert cube.__doc__ == "The third power."
    assert repr(cube) == "<operator cube>"


def test_a_numba_function_becomes_an_operator():
    x = data(1.0, -2.0)
    expected = app.nn.functional.silu(x)
    np.testing.assert_allclose(swish(x).numpy(), expected.numpy())
    np.testing.assert_allclose(app.grad(swish(x), x)[0].numpy(), app.grad(expected, x)[0].numpy())


@pytest.mark.slow
@pytest.mark.parametrize("operator", [cube, swish])
def test_it_is_appended_to_a_program_without_create_var(operator: Any):
    x = variable("x", None, 2)
    y = operator(x)
    assert y.spec == ((-1, 2), "float32")
    (g,) = static.gradients(y, x)
    feed = np.array([[0.5, -1], [2, 0]], "float32")
    value, slope = run(y, g, x=feed)
    tensor = app.to_tensor(feed, stop_gradient=False)
    np.testing.assert_array_equal(value, operator(tensor).numpy())
    np.testing.assert_array_equal(slope, app.grad(operator(tensor), tensor)[0].numpy())
    assert f"{operator.name}(x)  // test_custom_op.py:" in str(y.program)


def test_the_gradient_of_an_unused_output_arrives_as_zeros():
    x, w = data([1.0, 2.0]), data([1.0, 1.0])
    assert app.grad(bounds(x, w)[0], x)[0].numpy().tolist() == [[1, 0]]


# --- Parameter names decide ---


@pytest.mark.parametrize(
    ("backward", "output"),
    [
        (lambda dy: dy * 2, "y"),
        (lambda x, dy: dy * x / x * 2, "y"),
        (lambda y, dy: dy + y / y * dy, "y"),
        (lambda dy, x, y: dy * y / x, "y"),
        (lambda dresult, result, x: dresult * result / x, "result"),
        (lambda out, dout: dout + out / out * dout, "out"),
        (lambda dout: 2 * dout, "out"),
    ],
)
def test_the_backward_function_gets_what_its_parameters_name(backward: Any, output: str):
    @custom_op
    def double(x):
        return x * 2

    double.backward(backward)
    assert double.outputs == (output,)
    x = data(3.0, 5.0)
    assert app.grad(double(x) * 10, x)[0].numpy().tolist() == [20, 20]


def test_inputs_and_settings_that_begin_with_d_are_no_gradients():
    @custom_op
    def step(position, dt, *, drag=0.5):
        return position + dt * drag

    @step.backward
    def _(dt, drag, dnext):
        return dnext, dnext * drag

    assert step.outputs == ("next",)
    p, dt = data(1.0), data(2.0)
    assert [g.item() for g in app.grad(step(p, dt, drag=0.25), [p, dt])] == [1, 0.25]


def test_a_parameter_that_names_nothing_is_an_error():
    @custom_op
    def half(x):
        return x / 2

    with pytest.raises(
        OperatorError,
        match=r"operator half.*: its gradient has a parameter 'grad'; expected one of x, out, dout \(y and dy",
    ):
        half.backward(lambda x, grad: grad)


# --- Shapes and types ---


def test_shapes_and_types_of_outputs_are_learned_by_running():
    @custom_op(outputs=("flat", "count", "positive"))
    def facts(x):
        return x.ravel(), np.array(x.size), x > 0

    flat, count, positive = facts(variable("x", 2, 3))
    assert (flat.spec, count.spec, positive.spec) == (((6,), "float32"), ((), "int64"), ((2, 3), "bool"))
    flat, count, positive = facts(variable("z", None, 3))
    assert (flat.spec, count.spec, positive.spec) == (((-1,), "float32"), ((), "int64"), ((-1, 3), "bool"))
    assert not flat.stop_gradient if facts.differentiable else flat.stop_gradient
    assert count.stop_gradient


def test_a_number_of_axes_that_depends_on_the_batch_is_refused():
    odd = custom_op(lambda x: x if len(x) % 2 else x.sum(0), name="odd")
    with pytest.raises(OperatorError, match=r"has shapes \(3,\) and \(3, 3\) and \(5, 3\) for different batch sizes"):
        odd(static.data("x", [None, 3]))


def test_what_cannot_run_on_ones_is_told_by_infer():
    def singular(x):
        return np.linalg.inv(x)

    with pytest.raises(
        OperatorError, match=rf"operator singular {PLACE} of .*LinAlgError.*custom_op\(infer=\.\.\.\) can"
    ):
        custom_op(singular)(variable("x", 2, 2))
    inverse = custom_op(singular, infer=lambda x: x)
    y = inverse(variable("y", None, None))
    assert y.spec == ((-1, -1), "float32")
    np.testing.assert_allclose(run(y, y=2 * np.eye(2, dtype="float32"))[0], np.eye(2) / 2)


@pytest.mark.parametrize(
    "infer",
    [
        lambda x, k: InputSpec([None, k], "int64"),
        lambda x, k: [InputSpec([None, k], "int64")],
        lambda x, **settings: InputSpec([x.shape[0], settings["k"]], int),
    ],
)
def test_infer_gets_specs_and_settings_and_gives_specs(infer: Any):
    @custom_op(infer=infer)
    def best(x, k=2):
        return np.argsort(-x, axis=1)[:, :k]

    assert best(variable("x", None, 5), k=3).spec == ((-1, 3), "int64")


@pytest.mark.parametrize("told", [3, [InputSpec([1]), InputSpec([1])], ([2, 3], "float32"), None])
def test_infer_gives_a_spec_for_each_output(told: Any):
    operator = custom_op(lambda x: x, name="same", infer=lambda x: told)
    message = r"infer returned .*, expected a Spec for each of out"
    with pytest.raises(OperatorError, match=rf"operator same {PLACE} of \(float32\[1\]\): {message}"):
        operator(variable("x", 1))


def test_numbas_wider_floats_are_brought_back():
    @custom_op
    @njit
    def halved(x):
        out = np.empty(x.shape)  # float64, as Numba's float32 * 0.5 would be
        for i in range(x.size):
            out[i] = x[i] * 0.5
        return out

    @halved.backward
    @njit
    def _(dy):
        return dy.astype(np.float64) * 0.5

    x = data(1.0, 3.0, dtype="float32")
    y = halved(x)
    assert y.dtype == "float32"
    y.sum().backward()
    assert x.grad.dtype == "float32"
    v = variable("x", None)
    y = halved(v)
    assert y.dtype == "float32"
    assert [f.dtype.name for f in run(y, *static.gradients(y, v), x=np.ones(2, "float32"))] == ["float32"] * 2


def test_types_other_than_floats_stay_as_returned():
    @custom_op
    def where_above(x):
        return np.argwhere(x > 0)[:, 0]

    assert where_above(data(1.0, -1.0, 2.0, dtype="float32")).dtype == "int64"


@pytest.mark.parametrize("elementwise", [False, True])
def test_a_ufunc_of_numba_can_be_used(elementwise: bool):
    @vectorize
    def plus_one(x):
        return x + 1

    assert custom_op(plus_one, elementwise=elementwise)(data(1.0, 2.0)).numpy().tolist() == [2, 3]


# --- Registration ---


def test_an_operator_can_be_named():
    assert custom_op(lambda x: x, name="same").name == "same"
    assert custom_op("named")(lambda x: x).name == "named"
    assert custom_op(outputs="y")(lambda x: x).outputs == ("y",)


def test_an_input_that_is_missing():
    with pytest.raises(OperatorError, match=r"operator bounds .* needs its input 'w'; it takes \(x, w\)"):
        bounds(data(1.0))
