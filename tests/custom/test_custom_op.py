"""`custom_op` on functions of arrays: parameters, settings, inferred shapes and types, and errors with their place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import data, layer, run, variable
from numba import njit, vectorize

import app
from app import custom_op, static
from app.errors import DtypeError, OperatorError, ShapeError
from app.static import InputSpec


@custom_op
def cube(x):
    """The third power."""
    return x**3


@cube.backward
def _(x, dy):
    return 3 * x**2 * dy


@custom_op
@njit
def half(x):
    return x * 0.5


@half.backward
@njit
def _(dy):
    return dy * 0.5


@pytest.mark.parametrize(
    ("operator", "built_in"), [(cube, lambda x: x * x * x), (half, lambda x: x / 2)], ids=["NumPy", "Numba"]
)
def test_values_and_gradients_are_those_of_built_in_operators(mode: Any, operator: Any, built_in: Any):
    x = mode.input([[0.5, -1], [2, 0]])
    actual, expected = operator(x), built_in(x)
    np.testing.assert_allclose(mode.values(actual), mode.values(expected), rtol=1e-6)
    np.testing.assert_allclose(mode.gradients(actual, [x]), mode.gradients(expected, [x]), rtol=1e-6)


def test_an_operator_in_a_program_is_printed_with_its_place_and_takes_any_batch_size():
    y = cube(variable("x", None, 2))
    assert y.spec == ((-1, 2), "float32")
    assert "cube(x)  // test_custom_op.py:" in str(y.program)
    assert run(y, x=np.full((3, 2), 2, "float32"))[0].tolist() == [[8, 8]] * 3


def test_an_operator_keeps_the_name_and_documentation_of_its_function():
    assert cube.__doc__ == "The third power."
    assert repr(cube) == "<operator cube>"
    assert custom_op(lambda x: x, name="same").name == "same"
    assert custom_op("named")(lambda x: x).name == "named"
    assert custom_op(outputs="y")(lambda x: x).outputs == ("y",)


@pytest.mark.parametrize("elementwise", [False, True])
def test_a_numba_ufunc_becomes_an_operator(elementwise: bool):
    @vectorize
    def plus_one(x):
        return x + 1

    assert custom_op(plus_one, elementwise=elementwise)(data(1.0, 2.0)).numpy().tolist() == [2, 3]


# --- Parameters of backward ---


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
def test_backward_gets_what_its_parameters_name(backward: Any, output: str):
    double = custom_op(lambda x: x * 2, name="double")
    double.backward(backward)
    assert double.outputs == (output,)
    x = data(3.0, 5.0)
    assert app.grad(double(x) * 10, x)[0].numpy().tolist() == [20, 20]


def test_inputs_and_settings_that_begin_with_d_are_not_gradients():
    step = custom_op(lambda position, dt, *, drag=0.5: position + dt * drag, name="step")
    step.backward(lambda dt, dnext, drag: (dnext, dnext * drag))
    assert step.outputs == ("next",)
    p, dt = data(1.0), data(2.0)
    assert [g.item() for g in app.grad(step(p, dt, drag=0.25), [p, dt])] == [1, 0.25]


def test_the_gradient_of_an_unused_output_is_zeros():
    bounds = custom_op(lambda x: (x.min(axis=1), x.max(axis=1)), name="bounds", outputs=("low", "high"))
    bounds.backward(lambda x, low, high, dlow, dhigh: (x == low) * dlow[:, None] + (x == high) * dhigh[:, None])
    x = data([1.0, 2.0])
    assert app.grad(bounds(x)[0], x)[0].numpy().tolist() == [[1, 0]]


# --- Shapes and types ---


def test_shapes_and_types_of_outputs_are_found_by_running_the_function():
    @custom_op(outputs=("flat", "count", "positive"))
    def facts(x):
        return x.ravel(), np.array(x.size), x > 0

    flat, count, positive = facts(variable("x", 2, 3))
    assert (flat.spec, count.spec, positive.spec) == (((6,), "float32"), ((), "int64"), ((2, 3), "bool"))
    assert count.stop_gradient
    flat, count, positive = facts(variable("z", None, 3))
    assert (flat.spec, count.spec, positive.spec) == (((-1,), "float32"), ((), "int64"), ((-1, 3), "bool"))
    assert [tensor.dtype for tensor in facts(data(1.0, dtype="float32"))] == ["float32", "int64", "bool"]


@pytest.mark.parametrize("rows", [lambda n: n // 8, lambda n: n // 100, lambda n: min(n, 10), lambda n: max(n - 9, 0)])
def test_a_number_of_rows_that_small_batches_do_not_tell_is_open(rows: Any):
    first = custom_op(lambda x: x[: rows(len(x))], name="first")
    y = first(variable("x", None, 3))
    assert y.spec == ((-1, 3), "float32")
    x = np.ones((320, 3), "float32")
    assert [len(run(one, x=x)[0]) for one in (y, app.sum(y, axis=1))] == [rows(320)] * 2
    assert first(variable("z", 320, 3)).shape == (rows(320), 3)


def test_a_function_that_cannot_run_on_ones_is_given_infer():
    y = custom_op(lambda x: np.linalg.inv(x), infer=lambda x: x)(variable("y", None, None))
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
def test_infer_gets_specs_and_settings_and_returns_specs(infer: Any):
    best = custom_op(lambda x, k=2: np.argsort(-x, axis=1)[:, :k], infer=infer)
    assert best(variable("x", None, 5), k=3).spec == ((-1, 3), "int64")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_number_of_python_has_the_type_of_the_other_inputs_in_both_modes(dtype: str):
    scaled = app.custom_op(lambda x, by: x * by)
    array = np.array([1.0, 2.0], dtype)
    for number in (0.1, np.float64(0.1)):
        now = scaled(app.to_tensor(array), number)
        y = scaled(static.data("x", [2], dtype), number)
        (later,) = static.Executor(engine="reference").run(feed={"x": array}, fetch_list=[y])
        assert (now.dtype, y.dtype, later.dtype.name) == (dtype, dtype, dtype)
        assert now.numpy().tolist() == later.tolist() == (array * np.array(0.1, dtype)).tolist()


def test_wider_floats_of_numba_are_converted_to_the_type_of_the_input():
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

    x, v = data(1.0, 3.0, dtype="float32"), variable("x", None)
    y, w = halved(x), halved(v)
    assert w.dtype == "float32"
    arrays = [y.numpy(), app.grad(y, x)[0].numpy(), *run(w, *static.gradients(w, v), x=np.ones(2, "float32"))]
    assert [array.dtype for array in arrays] == ["float32"] * 4


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
def test_settings_are_given_by_position_or_name(mode: Any, call: Any, value: float, slope: float):
    x = mode.input([3.0])
    y = call(x)
    assert (mode.values(y), mode.gradients(y, [x])) == ([value], [slope])


@pytest.mark.slow
@pytest.mark.parametrize("elementwise", [True, pytest.param(False, marks=pytest.mark.soak)])  # as custom.ema does
def test_both_engines_pass_settings_by_name(elementwise: bool):
    wrapped = (lambda f: f) if elementwise else njit
    operator = custom_op(elementwise=elementwise, name="line")(wrapped(lambda x, slope=2.0: x * slope))
    operator.backward(wrapped(lambda dy, slope: dy * slope))
    x = variable("x", None, 2)
    y = operator(x, 5.0)
    (g,) = static.gradients(y * y, x)
    for engine in ("reference", "compiled"):
        value, slope = static.Executor(engine=engine).run(feed={"x": np.ones((3, 2), "float32")}, fetch_list=[y, g])
        np.testing.assert_array_equal(value, np.full((3, 2), 5))
        np.testing.assert_array_equal(slope, np.full((3, 2), 50))


def test_every_hook_records_the_equivalent_operator():
    doubled = layer(lambda ctx, x: x * 2.0, lambda ctx, dy: dy * 2.0)
    doubled.like = "scale"
    x = static.data("x", [None, 3])
    custom_op(lambda x: x * 2, name="double", like="scale")(x)
    static.py_func(lambda x: x * 2, x, InputSpec([None, 3], "float32"), like="scale")
    doubled.apply(x)
    custom = [op.definition for op in x.block.ops if op.definition.custom]
    assert [definition.like for definition in custom] == ["scale"] * 3


# --- Errors ---

PLACE = r"\(test_custom_op\.py:\d+\)"
IT = rf"operator it {PLACE}"


def make(function: Any = lambda x: x, **options: Any) -> Any:
    return custom_op(function, name="it", **options)


def on_spec(**options: Any) -> Any:
    return make(**options)(variable("x", 1))


def line(x, factor=2.0, *, by):
    return x * factor + by


INFERRED = rf"{IT} of \(float32\[1\]\): infer returned .*, expected a Spec for each of out"
UNREADABLE = rf"{IT}: the parameters of .* cannot be read; call it in a function of your own"

WRONG = [
    *(
        (lambda what=what: custom_op(name="it")(what), rf"operator \w+ {PLACE}: what custom_op decorates must be a fun")
        for what in (3, "text", [1])
    ),
    (lambda: make().backward(3), rf"{IT}: backward must be a function, found 3 \(int\)"),
    (lambda: make(infer=[2]), rf"{IT}: infer must be a function, found \[2\] \(list\)"),
    (lambda: make(lambda *xs: xs), f"{IT}: its function must name its parameters; 'xs' takes any number"),
    (lambda: make(lambda x, **more: x), f"{IT}: its function must name its parameters; 'more' takes any number"),
    (lambda: make(lambda: 1), f"{IT}: its function takes no input; parameters with a default are settings"),
    (lambda: make(lambda k=3: k), f"{IT}: its function takes no input"),
    (lambda: make(np.tanh), UNREADABLE),
    (lambda: make(max), UNREADABLE),
    (lambda: make(njit(line)), f"{IT}: Numba has no keyword-only parameters; give 'by' a default instead"),
    (
        lambda: make().backward(lambda x, grad: grad),
        rf"{IT}: its backward \(test_custom_op.py:\d+\) has a parameter 'grad'; expected one of x, out, dout \(y",
    ),
    (
        lambda: make().backward(lambda x, dx: dx),
        rf"{IT}: its backward \(test_custom_op.py:\d+\) has a parameter 'dx'; expected one of x, out, dout",
    ),
    *(
        (
            lambda late=late: make(lambda x, k=2.0: x * k).backward(late),
            rf"{IT}: its backward .* takes 'dy' after a sett",
        )
        for late in (lambda x, k, dy: dy * k, lambda x, *, dy, k: dy * k)
    ),
    (lambda: make(lambda x, w: x)(data(1.0)), f"{IT} .*needs its input 'w'; it takes \\(x, w\\)"),
    (lambda: make(line)(data(1.0), b=2), f"{IT} .*has no parameter 'b'; it takes \\(x, factor, by\\)"),
    (lambda: make(line)(data(1.0)), f"{IT} .*needs by"),
    (
        lambda: make(lambda x: x if len(x) % 2 else x.sum(0))(static.data("x", [None, 3])),
        r"has shapes \(3,\) and \(3, 3\) and \(5, 3\) and \(67, 3\) for different batch sizes",
    ),
    (
        lambda: make(lambda x: np.linalg.inv(x))(variable("x", 2, 2)),
        rf"{IT} of .*LinAlgError.*custom_op\(infer=\.\.\.\) can",
    ),
    *(
        (lambda spec=spec: on_spec(infer=lambda x: spec), INFERRED)
        for spec in (3, [InputSpec([1]), InputSpec([1])], ([2, 3], "float32"), None)
    ),
]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_wrong_functions_arguments_and_specs_are_errors(call: Any, message: str):
    with pytest.raises(OperatorError, match=message):
        call()


RETURNED = "its function <lambda> returned "


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (lambda x: None, DtypeError, RETURNED + "None as output 0, expected an array.*a return may be missing"),
        (lambda x: (x, x), OperatorError, RETURNED + "2 values, expected 1"),
        (lambda x: "text", DtypeError, RETURNED + r"str \(<U4\) as output 0"),
        (lambda x: x * 1j, DtypeError, RETURNED + r"ndarray \(complex128\) as output 0"),
        (lambda x: {}["k"], OperatorError, rf"its function <lambda> raised KeyError: 'k' {PLACE}"),
        (lambda x: x if x > 0 else -x, OperatorError, "raised ValueError: .*ambiguous.*custom_op\\(elementwise=True"),
    ],
)
def test_wrong_results_of_the_function_are_errors(function: Any, kind: type, message: str):
    with pytest.raises(kind, match=f"{IT}: .*{message}"):
        make(function)(data(1.0, 2.0))


@pytest.mark.parametrize(
    ("backward", "kind", "message"),
    [
        (lambda x, dy: dy[:1], ShapeError, r"the gradient of x has shape \[1\], expected that of x, \[2\]"),
        (lambda x, dy: (dy, dy), OperatorError, RETURNED + "2 values, expected 1"),
        (lambda x, dy: "dx", DtypeError, RETURNED + "str"),
        (lambda x, dy: 1 / 0, OperatorError, "its function <lambda> raised ZeroDivisionError"),
    ],
)
def test_wrong_results_of_backward_are_errors(backward: Any, kind: type, message: str):
    operator = make(lambda x: x * 1)
    operator.backward(backward)
    with pytest.raises(kind, match=f"the gradient of {IT}: {message}"):
        operator(data(1.0, 2.0)).sum().backward()


def test_the_place_is_that_of_the_user_even_through_a_symbolic_link(tmp_path: Path):
    (tmp_path / "app").symlink_to(Path(app.__file__).parent)
    (tmp_path / "mine.py").write_text("import app\nprint(app.custom_op(lambda x: x).where)\n")
    done = subprocess.run([sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "mine.py:2", done.stderr


@pytest.mark.parametrize(
    ("word", "hint"),
    [("lik", r"; did you mean 'like'\?"), ("row_by_rows", "; did you mean 'row_by_row'"), ("x", "; it takes")],
)
def test_a_misspelt_argument_is_named_with_the_one_that_was_meant(word: str, hint: str):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{word}'{hint}"):
        app.custom_op(**{word: True})
