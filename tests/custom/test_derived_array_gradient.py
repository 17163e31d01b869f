"""Operators on arrays whose gradient is derived from their source: in every mode and engine, to second order."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from as_python import as_python, uncompiled
from numba import njit

import app
from app import custom_op, static
from app.autograd import gradcheck, gradgradcheck
from app.checking.checks import examine
from app.checking.examples import inputs_for
from app.checking.operators import user_operator
from app.custom.references import OperatorTable, read_operators
from app.engine.compiled.explain import explain
from app.errors import GradientError, OperatorError
from app.ops.spec import Spec
from app.static import InputSpec, py_func

__all__ = ["uncompiled"]

pytestmark = pytest.mark.slow


def softmax(x):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        largest = np.max(x[i])
        total = 0.0
        for j in range(x.shape[1]):
            y[i, j] = math.exp(x[i, j] - largest)
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] /= total
    return y


def sum_and_square(x):
    return x.sum(axis=0), x * x


def test_a_function_with_more_results_than_outputs_has_no_derived_gradient():
    with pytest.raises(GradientError, match=r"returns 2 results, expected 1, .*outputs="):
        custom_op(sum_and_square).derived_for([Spec((3, 4), "float64")])


def scaled(x, w, index, by=2.0):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * x[i, j] * w[index[j]] * by
    return y


def doubled(x):
    return x * 2.0


def ordered(x):
    return np.sort(x)


def product(x, w):
    return x * w


REFERRED = custom_op(product)


def points(*shape: int, dtype: str = "float64") -> app.Tensor:
    numbers = np.random.default_rng(0).uniform(0.5, 1.5, shape)
    return app.to_tensor(numbers, dtype, stop_gradient=False)


INDEX = app.to_tensor(np.array([0, 2, 1, 1]))


@pytest.mark.usefixtures("uncompiled")
def test_the_gradient_and_its_derivative_agree_with_finite_differences():
    assert gradcheck(custom_op(softmax), points(3, 4))
    assert gradgradcheck(custom_op(softmax), points(3, 4))
    operator = custom_op(scaled)
    assert gradcheck(lambda x, w: operator(x, w, INDEX, by=3.0), (points(3, 4), points(3)))
    assert gradgradcheck(lambda x, w: operator(x, w, INDEX), (points(3, 4), points(3)))


def program_of(operator: Any) -> tuple[static.Program, list[Any]]:
    program = static.Program()
    with static.program_guard(program, static.Program()):
        x, w, index = static.data("x", [None, 4]), static.data("w", [3]), static.data("index", [4], "int64")
        x.stop_gradient = w.stop_gradient = False
        y = operator(x, w, index)
        first = static.gradients(y * y, [x, w])
        second = static.gradients(first[0] * first[0], [x, w])
    return program, [y, *first, *second]


def test_both_engines_and_tensors_agree_whether_numba_compiles_a_function_or_not():
    operator = custom_op(row_by_row=True)(njit(scaled))
    x, w = points(5, 4, dtype="float32"), points(3, dtype="float32")
    feed = {"x": x.numpy(), "w": w.numpy(), "index": INDEX.numpy()}

    def run(engine: str, operator: Any) -> list[np.ndarray]:
        program, fetched = program_of(operator)
        return static.Executor(engine=engine).run(program, feed=feed, fetch_list=fetched)

    with as_python():
        reference = run("reference", custom_op(scaled))
    y = operator(x, w, INDEX)
    eager = [value.numpy() for value in (y, *app.grad(y * y, [x, w]))]
    compiled = run("compiled", operator)
    for one, two in [*zip(reference, compiled, strict=True), *zip(reference, eager, strict=False)]:
        np.testing.assert_allclose(two, one, rtol=1e-5)
        assert one.dtype == two.dtype == "float32"


def test_threads_share_the_rows_of_a_gradient_unless_a_weight_has_one():
    @njit
    def running(x):
        y = np.empty_like(x)
        for i in range(x.shape[0]):
            total = 0.0
            for j in range(x.shape[1]):
                total += x[i, j] * x[i, j]
                y[i, j] = total
        return y

    def call(operator: Any, *more: Any) -> str:
        program = static.Program()
        with static.program_guard(program, static.Program()):
            data = [static.data("x", [None, 4]), *(static.data(*one) for one in more)]
            for one in data:
                one.stop_gradient = False
            gradients = static.gradients(operator(*data), data)
        text = explain(program, [g.name for g in gradients if g is not None], source=True)
        (line,) = re.findall(r"\w+_gradient\(.*\)$", text, re.MULTILINE)
        return line

    assert "x[lo:hi]" in call(custom_op(row_by_row=True)(running))
    assert "lo:hi" not in call(custom_op(running))
    assert "lo:hi" not in call(custom_op(row_by_row=True)(njit(scaled)), ("w", [3]), ("index", [4], "int64"))


@pytest.mark.usefixtures("uncompiled")
def test_gradients_have_the_types_of_their_inputs_and_integers_have_none():
    x, w = points(2, 4, dtype="float32"), points(3)
    gradients = app.grad(custom_op(scaled)(x, w, INDEX).sum(), [x, w])
    assert [g.dtype for g in gradients] == ["float32", "float64"]
    index = app.to_tensor(INDEX.numpy(), stop_gradient=False)
    assert app.grad(custom_op(scaled)(x, w, index).sum(), [x, index], allow_unused=True)[1] is None


@pytest.mark.usefixtures("uncompiled")
def test_a_gradient_is_derived_for_each_number_of_axes():
    operator = custom_op(lambda x: x * x)
    for shape in ((3,), (2, 3), (3,)):
        x = points(*shape)
        np.testing.assert_allclose(app.grad(operator(x).sum(), x)[0].numpy(), 2 * x.numpy())


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("shapes", [((4, 3), (1, 3)), ((4, 1), (1, 3)), ((1,), (2, 3)), ((4, 3), (4, 3)), ((1, 3), ())])
def test_a_gradient_is_summed_along_the_axes_that_broadcasting_stretches(shapes: Any):
    operator, (x, w) = custom_op(product), (points(*shape) for shape in shapes)
    dx, dw = app.grad(operator(x, w).sum(), [x, w])
    for gradient, one, other in ((dx, x, w), (dw, w, x)):
        whole = np.broadcast_to(other.numpy(), np.broadcast_shapes(*shapes))
        ahead = whole.sum(axis=tuple(range(whole.ndim - one.ndim)))
        axes = tuple(axis for axis in range(one.ndim) if one.shape[axis] == 1)
        np.testing.assert_allclose(gradient.numpy(), ahead.sum(axis=axes, keepdims=True), rtol=1e-12)
    assert gradgradcheck(operator, [x, w])


def test_a_program_of_any_batch_stretches_a_row_of_weights_in_compiled_code():
    program = static.Program()
    with static.program_guard(program, static.Program()):
        x, w = static.data("x", [None, 3]), static.data("w", [1, 3])
        x.stop_gradient = w.stop_gradient = False
        fetched = static.gradients(custom_op(product)(x, w), [x, w])
    for rows, engine in ((5, "compiled"), (2, "compiled"), (2, "reference")):
        feed = {"x": points(rows, 3, dtype="float32").numpy(), "w": points(1, 3, dtype="float32").numpy()}
        with as_python(engine == "reference"):
            dx, dw = static.Executor(engine=engine).run(program, feed=feed, fetch_list=fetched)
        np.testing.assert_allclose(dx, np.repeat(feed["w"], rows, axis=0))
        np.testing.assert_allclose(dw, feed["x"].sum(axis=0, keepdims=True), rtol=1e-6)
    lines = explain(program, [g.name for g in fetched]).splitlines()
    assert any("product_grad" in line and "compiled: calls a Numba function" in line for line in lines)


def test_the_source_can_be_read_after_the_first_call():
    operator = custom_op(doubled)
    with pytest.raises(OperatorError, match=r"doubled .*the number of axes.*: call it once, or run `opsmith derive"):
        operator.gradient_source  # noqa: B018
    operator(points(3))
    assert operator.gradient_source.startswith("def doubled_grad(x, d")


def rectified(x, slope=0.1):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] if x[i, j] > 0 else slope * x[i, j]
    return y


def hard_swish(x):
    return x * np.clip(x + 3, 0, 6) / 6


def huber(x, delta=0.5):
    size = np.abs(x)
    return np.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))


def logistic(x):
    scale = 2.0
    return scale / (1 + np.exp(-x)), scale * x


@pytest.mark.parametrize("function", [rectified, hard_swish, huber, logistic])
def test_the_gradient_of_an_elementwise_function_is_one_of_single_numbers(function):
    operator = custom_op(function, outputs=["y", "z"] if function is logistic else ["y"])
    subject = inputs_for(user_operator(operator, function.__name__))
    assert {v.state for v in examine(subject, ["gradient", "second", "inlined"])} == {"ok"}
    assert "for i in" not in operator.gradient_source


def test_the_gradient_follows_a_variable_that_makes_a_function_not_elementwise(monkeypatch):
    monkeypatch.setitem(globals(), "FACTOR", 3.0)

    def scaled(x):
        return x * FACTOR  # noqa: F821

    operator, x = custom_op(scaled), points(2, 3)
    operator(x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full((2, 3), 3.0))
    monkeypatch.setitem(globals(), "FACTOR", np.arange(3.0))
    with pytest.raises(GradientError, match=r"scaled .*not elementwise any more .define it again"):
        operator(x).sum().backward()


def test_the_source_can_be_read_after_inference():
    operator = custom_op(doubled)
    operator(static.data("x", [None, 4]))
    assert operator.gradient_source.startswith("def doubled_grad(x, d")


def adjusted(x, factors=(2.0, 3), power=None, kind="even"):
    if power is None:
        power = 2
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        y[i] = x[i] ** power * factors[0] + (factors[1] if kind == "even" else 0.0)
    return y


@pytest.mark.usefixtures("uncompiled")
def test_a_gradient_is_derived_for_the_defaults_of_settings_that_are_no_numbers():
    operator, x = custom_op(adjusted), points(3)
    operator(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 4 * x.numpy())
    assert {v.state for v in examine(inputs_for(user_operator(operator, "adjusted")), ["gradient", "second"])} == {"ok"}


@pytest.mark.parametrize("on", [True, pytest.param(False, marks=pytest.mark.soak)], ids=["as Python", "by Numba"])
@pytest.mark.parametrize("setting", [{"factors": (2.0, 4)}, {"power": 3}, {"kind": "odd"}])
def test_a_gradient_that_is_derived_for_the_default_of_a_setting_refuses_another_value(
    setting: dict[str, Any], on: bool
):
    with as_python(on), pytest.raises(OperatorError, match=r"is expected to be .*, its default, for which this was"):
        custom_op(adjusted)(points(3), **setting).sum().backward()


def test_an_array_as_a_default_is_refused():
    def weighted(x, w=np.ones(3)):  # noqa: B008
        return x * w

    with pytest.raises(GradientError, match=r"def weighted.* has an array as the default of 'w'"):
        custom_op(weighted)(points(3)).sum().backward()


@pytest.mark.usefixtures("uncompiled")
def test_checks_of_other_numbers_of_axes_pass_where_none_can_be_derived():
    def summed(x):
        y = np.empty_like(x)
        for i in range(x.shape[0]):
            y[i, 0] = x[i, 0]
            state = y[i, 0]
            for t in range(1, x.shape[1]):
                state = state + x[i, t]
                y[i, t] = state
        return y

    subject = inputs_for(user_operator(custom_op(summed), "summed"))
    assert {v.state for v in examine(subject, ["gradient", "axes"])} == {"ok"}
    x = points(2, 3, 4)
    with pytest.raises(GradientError, match=r"`state` gets another array"):
        custom_op(summed)(x).sum().backward()


@pytest.mark.usefixtures("uncompiled")
def test_py_func_derives_a_gradient_if_it_is_told_to(mode: Any):
    x = mode.input(np.array([[1.0, 2.0]]))
    y = py_func(softmax, x, InputSpec.from_tensor(x), backward_func="derive")
    (gradient,) = mode.gradients(y * y, [x])
    p = 1 / (1 + math.e)
    assert gradient == pytest.approx(np.array([[-1, 1]]) * 2 * p * (1 - p) * (1 - 2 * p))
    without = py_func(softmax, x, InputSpec.from_tensor(x))
    assert without.stop_gradient


@pytest.mark.usefixtures("uncompiled")
def test_what_py_func_derives_has_a_second_derivative_with_the_defaults_of_the_function():
    def cubed(x: Any, factor: float = 0.5) -> Any:
        y = np.empty_like(x)
        for i in range(len(x)):
            y[i] = factor * x[i] ** 3
        return y

    x = points(3)
    y = py_func(cubed, x, InputSpec.from_tensor(x), "derive")
    (first,) = app.grad(y.sum(), x, create_graph=True)
    (second,) = app.grad(first.sum(), x)
    assert second.numpy() == pytest.approx(3 * x.numpy())


@pytest.mark.parametrize(
    ("apply", "message"),
    [
        (lambda x: custom_op(ordered)(x), r"operator ordered \(.*no backward, and none can be derived: "
         r"test_derived_array_gradient.py:\d+: `np.sort\(x\)` .*; write one with @ordered.backward"),
        (lambda x: py_func(ordered, x, InputSpec.from_tensor(x), backward_func="derive"),
         r"operator py_func.ordered .*: `np.sort\(x\)` .*; write one, and give it as backward_func"),
        (lambda x: py_func(np.sort, x, InputSpec.from_tensor(x), backward_func="derive"),
         r"operator py_func.sort .*sort is not a Python function with a source"),
    ],
)  # fmt: skip
def test_what_cannot_be_derived_is_an_error_that_names_the_line(apply: Any, message: str):
    with pytest.raises(GradientError, match=message):
        apply(points(3)).sum().backward()


def test_py_func_refuses_to_skip_what_a_derived_gradient_takes():
    x = points(3)
    with pytest.raises(OperatorError, match="skip_vars_in_backward_input is for a backward_func of your own"):
        py_func(doubled, x, InputSpec.from_tensor(x), "derive", skip_vars_in_backward_input=x)


def test_derived_gradients_are_found_again_from_a_file():
    program = static.Program()
    with static.program_guard(program, static.Program()):
        x = static.data("x", [None, 4])
        x.stop_gradient = False
        first = static.gradients(REFERRED(x, np.ones((1, 4), "float32")) * x, x)[0]
        static.gradients(first * first, x)
    gradients = {o.definition for o in program.global_block().ops if getattr(o.definition, "source", "")}
    table = OperatorTable()
    numbers = {definition: table.number_of(definition) for definition in gradients}
    find = read_operators(table.entries, "file", REFERRED, (), "load(")
    assert any("axis 0 of w is expected to have size 1" in definition.source for definition in gradients)
    assert all(find(number) is definition for definition, number in numbers.items())
