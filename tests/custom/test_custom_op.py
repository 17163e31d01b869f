"""`custom_op` on functions of arrays: what is passed by name, what is inferred, plain and Numba functions, errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit, vectorize

import app
from app import custom_op, static
from app.autograd import gradcheck
from app.errors import DtypeError, OperatorError, ShapeError
from app.static import InputSpec

PLACE = r"\(test_custom_op\.py:\d+\)"


def data(*numbers: Any, dtype: str = "float64") -> app.Tensor:
    return app.to_tensor(numbers, dtype, stop_gradient=False)


def variable(name: str, *shape: Any, dtype: str = "float32") -> static.Variable:
    made = static.data(name, shape, dtype)
    made.stop_gradient = False
    return made


def run(*fetched: Any, **feed: Any) -> list[np.ndarray]:
    return static.Executor().run(feed=feed, fetch_list=fetched)


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


def test_it_works_on_plain_arrays_too():
    np.testing.assert_array_equal(cube(np.array([2.0])), [8])


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


@pytest.mark.parametrize("operator", [cube, swish])
def test_its_gradient_is_right(operator: Any):
    assert gradcheck(operator, [data([0.3, -1.2, 2.0])])


def test_several_inputs_and_outputs():
    x, w = data([1.0, -2.0, 3.0], [4.0, 0.5, -6.0]), data([2.0, 1.0, 3.0], [1.0, 1.0, 2.0])
    low, high = bounds(x, w)
    np.testing.assert_array_equal(low.numpy(), [-2, -12])
    np.testing.assert_array_equal(high.numpy(), [9, 4])
    assert gradcheck(bounds, [x, w])


def test_several_outputs_in_a_program():
    x, w = variable("x", None, 3), variable("w", None, 3)
    low, high = bounds(x, w)
    assert (low.spec, high.spec) == (((-1,), "float32"),) * 2
    (g,) = static.gradients(high, x)
    assert run(g, x=np.eye(2, 3, dtype="float32"), w=np.ones((2, 3), "float32"))[0].sum() == 2


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

    with pytest.raises(OperatorError, match=r"operator half.*: its gradient asks for 'grad'; it can have x, out, dout"):
        half.backward(lambda x, grad: grad)


def test_none_is_returned_for_an_input_without_gradient():
    @custom_op
    def pick(x, index):
        return x[index]

    @pick.backward
    def _(x, index, dy):
        dx = np.zeros_like(x)
        np.add.at(dx, index, dy)
        return dx, None

    x = data(1.0, 2.0, 3.0)
    y = pick(x, app.to_tensor([2, 2, 0]))
    y.sum().backward()
    assert x.grad.numpy().tolist() == [1, 0, 2]


# --- Settings ---


@custom_op
def scaled(x, factor=2.0, *, power=1):
    return factor * x**power


@scaled.backward
def _(x, dy, power, factor):
    return dy * factor * power * x ** (power - 1)


@pytest.mark.parametrize(
    ("call", "value", "slope"),
    [
        (lambda x: scaled(x), 6, 2),
        (lambda x: scaled(x, 5.0), 15, 5),
        (lambda x: scaled(x, 1.0, 2), 9, 6),
        (lambda x: scaled(x, power=2, factor=3.0), 27, 18),
        (lambda x: scaled(x=x, factor=-1.0), -3, -1),
    ],
)
def test_settings_are_given_by_place_or_name(call: Any, value: float, slope: float):
    x = data(3.0)
    y = call(x)
    y.backward()
    assert (y.item(), x.grad.item()) == (value, slope)
    v = variable("x", 1, dtype="float64")
    y = call(v)
    found = run(y, *static.gradients(y, v), x=np.array([3.0]))
    assert [f.item() for f in found] == [value, slope]


def test_settings_are_printed_where_they_are_not_the_usual_ones():
    v = variable("x", 1)
    scaled(v)
    scaled(v, power=3)
    assert [str(op) for op in v.block.ops] == ["scaled.y_0 = scaled(x)", "scaled.y_1 = scaled(x, power=3)"]


def test_parameters_of_a_numba_backward_may_stand_in_any_order():
    @custom_op
    @njit
    def line(x, slope=2.0):
        return x * slope

    @line.backward
    @njit
    def _(slope, dy):
        return dy * slope

    x = data(1.0, 2.0)
    np.testing.assert_array_equal(app.grad(line(x, 5.0), x)[0].numpy(), [5, 5])


@pytest.mark.parametrize("elementwise", [True, False])
def test_engines_give_parameters_by_name_too(elementwise: bool):
    wrapped = (lambda f: f) if elementwise else njit
    operator = custom_op(elementwise=elementwise, name="line")(wrapped(lambda x, slope=2.0: x * slope))
    operator.backward(wrapped(lambda slope, dy, x: dy * slope + x * 0))
    x = variable("x", None, 2)
    y = operator(x, 5.0)
    (g,) = static.gradients(y * y, x)
    feed = {"x": np.ones((3, 2), "float32")}
    for engine in ("reference", "compiled"):
        value, slope = static.Executor(engine=engine).run(feed=feed, fetch_list=[y, g])
        np.testing.assert_array_equal(value, np.full((3, 2), 5))
        np.testing.assert_array_equal(slope, np.full((3, 2), 50))


def test_a_numba_function_has_no_parameters_by_keyword_only():
    message = rf"operator line {PLACE}: Numba knows no parameters by keyword only; give 'slope' a default instead"
    with pytest.raises(OperatorError, match=message):

        @custom_op
        @njit
        def line(x, *, slope=2.0):
            return x * slope


def test_an_unknown_setting_is_an_error():
    with pytest.raises(
        OperatorError, match=r"operator scaled .* has no parameter 'facto'; it takes \(x, factor, power\)"
    ):
        scaled(data(1.0), facto=2)


def test_a_setting_without_a_default_is_required():
    @custom_op
    def shifted(x, *, by):
        return x + by

    assert shifted(data(1.0), by=2.0).item() == 3
    with pytest.raises(OperatorError, match=r"operator shifted .* needs by"):
        shifted(data(1.0))


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


def test_the_function_gets_arrays():
    seen: list[type] = []

    @custom_op
    def look(x):
        seen.append(type(x))
        return x * 1

    run(look(app.mean(variable("x", 2))), x=np.ones(2, "float32"))
    assert set(seen) == {np.ndarray}


def test_a_ufunc_of_numba_can_be_used():
    @vectorize
    def plus_one(x):
        return x + 1

    assert custom_op(plus_one)(data(1.0, 2.0)).numpy().tolist() == [2, 3]


# --- Registration ---


def test_an_operator_can_be_named():
    assert custom_op(lambda x: x, name="same").name == "same"
    assert custom_op("named")(lambda x: x).name == "named"
    assert custom_op(outputs="y")(lambda x: x).outputs == ("y",)


@pytest.mark.parametrize("what", [3, "text", [1]])
def test_what_is_no_function_is_refused(what: Any):
    with pytest.raises(
        OperatorError, match=rf"operator \w+ {PLACE}: what custom_op decorates must be a function, found"
    ):
        custom_op(name="it")(what)


def test_a_backward_or_infer_that_is_no_function_is_refused():
    with pytest.raises(OperatorError, match=rf"operator same {PLACE}: backward must be a function, found 3 \(int\)"):
        custom_op(lambda x: x, name="same").backward(3)
    with pytest.raises(OperatorError, match=rf"operator same {PLACE}: infer must be a function, found \[2\] \(list\)"):
        custom_op(lambda x: x, name="same", infer=[2])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda *xs: xs, "its function must name its parameters; 'xs' takes any number"),
        (lambda x, **settings: x, "its function must name its parameters; 'settings' takes any number"),
        (lambda: 1, "its function takes no input; parameters with a default are settings"),
        (lambda k=3: k, "its function takes no input"),
        (np.tanh, "the parameters of <ufunc 'tanh'> cannot be read; call it in a function of your own"),
        (max, "the parameters of <built-in function max> cannot be read"),
    ],
)
def test_a_function_must_say_its_parameters(function: Any, message: str):
    with pytest.raises(OperatorError, match=rf"operator it {PLACE}: {message}"):
        custom_op(function, name="it")


def test_the_place_is_the_users_even_where_the_package_is_reached_through_a_link(tmp_path: Path):
    (tmp_path / "app").symlink_to(Path(app.__file__).parent)
    (tmp_path / "mine.py").write_text("import app\nprint(app.custom_op(lambda x: x).where)\n")
    done = subprocess.run([sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "mine.py:2", done.stderr


# --- Errors while running ---


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (lambda x: None, DtypeError, "its function <lambda> returned None as output 0, expected an array"),
        (lambda x: (x, x), OperatorError, "its function <lambda> returned 2 values, expected 1"),
        (lambda x: "text", DtypeError, r"its function <lambda> returned str \(<U4\) as output 0"),
        (lambda x: x * 1j, DtypeError, r"its function <lambda> returned ndarray \(complex128\) as output 0"),
        (lambda x: {}["k"], OperatorError, "its function <lambda> raised KeyError: 'k'"),
        (
            lambda x: x if x > 0 else -x,
            OperatorError,
            r".* raised ValueError: .*ambiguous.*custom_op\(elementwise=True\)",
        ),
    ],
)
def test_what_the_function_returns_is_checked(function: Any, kind: type, message: str):
    with pytest.raises(kind, match=rf"operator it {PLACE}: {message}"):
        custom_op(function, name="it")(data(1.0, 2.0))


@pytest.mark.parametrize(
    ("backward", "kind", "message"),
    [
        (lambda x, dy: dy[:1], ShapeError, r"the gradient of x has shape \[1\], expected that of x, \[2\]"),
        (lambda x, dy: (dy, dy), OperatorError, "its function <lambda> returned 2 values, expected 1"),
        (lambda x, dy: "dx", DtypeError, r"its function <lambda> returned str"),
        (lambda x, dy: 1 / 0, OperatorError, "its function <lambda> raised ZeroDivisionError"),
    ],
)
def test_what_the_backward_function_returns_is_checked(backward: Any, kind: type, message: str):
    operator = custom_op(lambda x: x * 1, name="it")
    operator.backward(backward)
    with pytest.raises(kind, match=rf"the gradient of operator it {PLACE}: {message}"):
        operator(data(1.0, 2.0)).sum().backward()


def test_an_input_that_is_missing():
    with pytest.raises(OperatorError, match=r"operator bounds .* needs its input 'w'; it takes \(x, w\)"):
        bounds(data(1.0))


def test_without_backward_gradients_stop():
    x = data(2.0)
    y = custom_op(lambda x: x * 3, name="stop")(x)
    assert y.stop_gradient
    with pytest.warns(UserWarning, match="backward from a Tensor with stop_gradient=True does nothing"):
        y.backward()


def test_a_second_derivative_is_refused():
    x = data(2.0)
    (g,) = app.grad(cube(x), x, create_graph=True)
    with pytest.raises(
        OperatorError, match=rf"operator cube {PLACE} cannot be differentiated twice: .*\(a PyLayer on Te"
    ):
        g.backward()
    v = variable("x", 1)
    (g,) = static.gradients(cube(v), v)
    with pytest.raises(OperatorError, match="cannot be differentiated twice"):
        static.gradients(g * v, v)
