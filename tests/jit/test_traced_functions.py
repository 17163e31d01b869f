"""Traced functions: their Programs, gradients, numbers, shapes, and changes of Tensors and Python objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from jit.traces import double, static, tensor

import app
from app.errors import AppError, InPlaceError, ProgramError
from app.graph.scope import Scope
from app.jit import ConcreteProgram, enable_to_static, to_static
from app.jit.running import Runner
from app.static import InputSpec


def results_and_gradients(function: Callable[..., Any], inputs: Sequence[Any], captured: Sequence[Any]) -> list[Any]:
    """What a function gives for new leaves, and the gradients of the sum of its results but the last of several."""
    leaves = [app.to_tensor(np.asarray(numbers), stop_gradient=False) for numbers in inputs]
    app.seed(7)
    results = function(*leaves)
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    sum(y.sum() for y in results[: max(1, len(results) - 1)] if not y.stop_gradient).backward()
    grads = [leaf.gradient() for leaf in [*leaves, *captured]]
    for each in captured:
        each.grad = None
    return [*(y.numpy() for y in results), [y.stop_gradient for y in results], *grads]


def check(function: Callable[..., Any], *inputs: Any, captured: Sequence[Any] = (), **settings: Any) -> list[Any]:
    """A function gives the same eagerly and traced, in two calls: results, which of them have gradients, and these."""
    run = to_static(function, **{"backend": "reference", **settings})
    expected = results_and_gradients(function, inputs, captured)
    for _ in range(2):
        for actual, right in zip(results_and_gradients(run, inputs, captured), expected, strict=True):
            assert getattr(actual, "dtype", None) == getattr(right, "dtype", None)
            if right is None:  # no gradient
                assert actual is None
            else:
                np.testing.assert_allclose(actual, right, rtol=1e-6)
    return expected


# Programs and settings


def test_tracing_can_be_switched_off():
    seen = []

    @to_static(backend="reference")
    def f(x):
        seen.append(x.__class__.__name__)
        return x

    enable_to_static(False)
    try:
        f(tensor(1))
    finally:
        enable_to_static(True)
    f(tensor(1))
    assert seen[0] == "Tensor"
    assert seen[1].startswith("Traced")


def test_static_functions_call_each_other():
    inner = static()
    outer = static(lambda x: inner(x) + 1)
    assert float(outer(tensor(1))) == 3.0
    assert inner.traces == []


def test_the_program_has_the_operators_of_the_function():
    f = static(lambda x: app.tanh(x * 2))
    f(tensor(2))
    assert [op.type for op in f.main_program.global_block().ops] == ["fill_constant", "multiply", "tanh"]
    assert isinstance(f.concrete_program, ConcreteProgram)


@pytest.mark.parametrize("fits", [True, False])
def test_compiled_code_runs_if_it_fits_what_is_fed(fits: bool):
    f = static()
    f(tensor(2, 3))
    (trace,) = f.traces
    runner = Runner(trace.program, [trace.program.global_block().ops[-1].outputs[0]], "compiled")
    runner._native = SimpleNamespace(fits=lambda feed: fits, run_once=lambda feed, scope: ["by compiled code"])
    (value,) = runner.run({"x": np.ones((1, 3), "float32")}, Scope())
    assert value == "by compiled code" if fits else value.tolist() == [[2, 2, 2]]


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        ({"full_grph": True}, TypeError, "full_grph"),
        ({"backend": "fast"}, ProgramError, "there are compiled, reference"),
    ],
)
def test_a_wrong_setting_is_an_error(settings: dict[str, Any], kind: type[Exception], message: str):
    with pytest.raises(kind, match=message):
        to_static(double, **settings)


# Gradients

W = app.to_tensor([2.0, 3.0], "float64", stop_gradient=False)


def several_outputs_with_and_without_gradients(x, y):
    with app.no_grad():
        z = x * 5
    return (x * 1) * y * W, x * z * x.detach(), x > 0, z, x * 3


def random_numbers(x):
    return x + app.rand([2], "float64") + app.nn.functional.dropout(x, 0.5)


def python_numbers(x):
    return x * float(x.sum()) + int(x.max()) + float(app.to_tensor(3, "uint8")) * 100


def leaf_of_a_detached_value(x):
    y = x.detach()
    y.stop_gradient = False
    gradient = app.grad((y**3).sum(), y, create_graph=True)[0]
    return (gradient * y * x).sum()


def leaf_of_a_value_without_a_gradient(x):
    with app.no_grad():
        y = x * W
    setattr(y, "stop_gradient", False)  # noqa: B010
    return (y * y * x).sum()


def stopped_for_a_while(x):
    y = x * 2
    first = (y**3).sum() + y.reshape([2, 1]).sum()
    y.stop_gradient = True
    z = y * x
    y.stop_gradient = False
    return (z + y * y).sum() + first


def one_element_set(x, y):
    z = x * 1
    z[1] = y * 5
    return z


def second_derivative(x):
    return app.grad((x**3).sum(), x, create_graph=True)[0]


def derivative_by_a_copy(x):
    y = app.to_tensor(x, stop_gradient=False)
    z = y * y * x
    return z.sum(), app.grad(z.sum(), y, retain_graph=True)[0]


def derivatives(x):
    y = (x * W).exp().sum() + W.sum()
    first = app.grad(y, [x, W], create_graph=True)
    plain = app.grad([y, first[0].sum()], x, grad_outputs=[x.sum(), None], retain_graph=True)[0]
    assert app.grad(y, [x.exp()], retain_graph=True, allow_unused=True) == [None]
    return (first[0] ** 2).sum() + first[1].sum() + (plain * x).sum()


@pytest.mark.parametrize(
    ("function", "inputs", "gradient"),
    [
        (several_outputs_with_and_without_gradients, [[2.0, 2.0], [3.0, 5.0]], [26.0, 35.0]),
        (random_numbers, [[1.0, 2.0]], None),
        (python_numbers, [[1.0, 2.0]], [3.0, 3.0]),
        (python_numbers, [[2.0**40 + 1, 0.1]], None),  # of which float32 would lose digits
        (second_derivative, [[1.0, 2.0]], [6.0, 12.0]),
        (one_element_set, [[1.0, 2.0], [3.0]], [1.0, 0.0]),
        (leaf_of_a_detached_value, [[1.0, 2.0]], [3.0, 24.0]),
        (leaf_of_a_value_without_a_gradient, [[1.0, 2.0]], [4.0, 36.0]),
        (stopped_for_a_while, [[1.0, 2.0]], None),
        (derivative_by_a_copy, [[2.0, 3.0]], [4.0, 9.0]),
        (derivatives, [[0.1, 0.2]], None),
    ],
)
def test_results_and_gradients_are_those_of_the_eager_function(function: Any, inputs: Any, gradient: Any):
    actual = check(function, *inputs, captured=[W])[-1 - len(inputs)]
    assert gradient is None or actual.tolist() == gradient


def test_a_second_backward_pass_needs_the_first_to_keep_its_values():
    x = tensor(1, grad=True)
    y = static(lambda x: app.exp(x))(x)
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(AppError, match="second time"):
        y.backward()


def test_what_cannot_be_differentiated_is_an_error():
    x = tensor(2, grad=True)
    with pytest.raises(AppError, match=r"cannot be differentiated twice from outside; take .* in the function"):
        app.grad(static(lambda x: (x**3).sum())(x), x, create_graph=True)
    with pytest.raises(AppError, match="was not used for the outputs"):
        static(lambda x: app.grad((x * 2).sum(), x.exp()))(x)
    w = app.create_parameter([2])
    loss = static(lambda x: (x * w).sum())(x)
    w.set_value(np.zeros(2, "float32"))
    with pytest.raises(AppError, match="modified by an inplace operation"):
        loss.backward()


def test_leaves_are_those_of_eager_code():
    def function(x):
        zeros, computed, detached, stopped = app.zeros([1]), x * 2, x.detach(), x * 2
        stopped.stop_gradient = True
        started = x.detach()
        started.stop_gradient = False
        with app.no_grad():
            unrecorded = x * 2
        return [v.is_leaf for v in (x, W, zeros, computed, detached, stopped, started, unrecorded)]

    x = app.to_tensor([1.0], stop_gradient=False)
    assert static(function)(x) == function(x)


def test_an_argument_that_requires_a_gradient_stays_so():
    def function(x):
        x.stop_gradient = False
        return x * 2

    x = tensor(1, grad=True)
    static(function)(x).backward()
    assert x.grad.item() == 2.0
    with pytest.raises(ProgramError, match=r"stop_gradient of x, .* cannot be set to True there, .* use x.detach\(\)"):
        static(lambda x: setattr(x, "stop_gradient", True))(x)


# Numbers and shapes


def in_a_range(x):
    for _ in range(x):
        x = x + 1
    return x


@pytest.mark.parametrize("use", [float, int, bool, in_a_range])
@pytest.mark.parametrize("spec", [None, [InputSpec([None, None], "float32")]], ids=["called", "open"])
def test_a_number_of_several_elements_is_an_error(use, spec):
    def function(x):
        return x * use(x)

    for run in (function, static(function, input_spec=spec)):
        with pytest.raises(AppError, match=r"one element|is ambiguous"):
            run(app.ones([2, 2]))


READERS = {
    "item": lambda w: w.item(1),
    "numpy": lambda w: w.numpy()[1],
    "tolist": lambda w: w.tolist()[1],
    "array": lambda w: float(np.asarray(w)[1]),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_changed_number_of_a_captured_tensor_is_traced_again(read):
    w = app.to_tensor([1.0, 2.0])
    run = static(lambda x: x * read(w))
    x = app.ones([2])
    assert [run(x).numpy()[0], run(x).numpy()[0], len(run.traces)] == [2.0, 2.0, 1]
    w[1] = 5.0
    assert [run(x).numpy()[0], len(run.traces)] == [5.0, 2]


def test_numbers_of_a_tensor_that_the_function_changes_are_an_error():
    w = app.to_tensor([1.0, 2.0])
    with pytest.raises(AppError, match="Python cannot read its numbers"):
        static(lambda x: x * w.add_(1.0).item(0))(app.ones([2]))


@pytest.mark.parametrize("dtype", [None, "float64", "int64"])
def test_to_tensor_of_a_traced_value_is_a_copy(dtype):
    def function(x):
        y = app.to_tensor(x, dtype=dtype)
        z = app.to_tensor(W, dtype=dtype)
        y[0] = 7
        rows = app.to_tensor([x.sum(), 1.0, W.max()])
        return x * 1, y, z, rows, app.to_tensor([1, 2])

    check(function, np.array([1.0, 2.0], "float32"), captured=[W])


@pytest.mark.parametrize("backend", ["reference", "compiled"])
def test_a_shape_may_be_a_value(backend):
    fixed = app.to_tensor([6, 2])

    def function(x):
        rows, columns = app.shape(x)
        return (
            app.reshape(x * 2, app.shape(x)),
            app.reshape(x, [columns, app.to_tensor(2), -1]) * 3,
            x.reshape(fixed) ** 2,
            app.full([rows], 2.0) + app.zeros([rows, 1]).sum() + app.full(app.shape(x)[:1], 1.0),
        )

    numbers = np.arange(12.0, dtype="float32").reshape(4, 3)
    check(function, numbers, input_spec=[InputSpec([None, 3], "float32")], backend=backend)


# Changes in place, and of Python's own objects


def test_an_array_or_a_set_made_in_a_traced_function_is_new_at_each_call():
    f = static(lambda x: (x, np.zeros(2), {1}))
    for _ in range(2):
        _, array, held = f(tensor(1))
        assert (array.tolist(), held) == ([0.0, 0.0], {1})
        array += 1
        held.add(2)


def test_a_tensor_made_in_a_traced_function_is_new_at_each_call():
    def function(x):
        total = app.to_tensor([0.0, 0.0])
        total += x
        return total

    check(function, [1.0, 2.0])


@pytest.mark.parametrize("backend", ["compiled", "reference"])
@pytest.mark.parametrize("size", [2, None])
def test_each_result_of_each_call_has_memory_of_its_own(backend: str, size: int | None):
    @app.jit.to_static(input_spec=[InputSpec([size, 3])], backend=backend)
    def function(x: Any) -> Any:
        doubled = x * 2.0
        return x, doubled, doubled.reshape([-1]), doubled

    x = app.to_tensor(np.ones((2, 3), "float32"))
    results = [t for _ in range(2) for t in function(x)]
    arrays = [t.detach().numpy() for t in results if t is not x]
    first, again = arrays[: len(arrays) // 2], arrays[len(arrays) // 2 :]
    assert not any(np.shares_memory(a, b) for a in first for b in again)


def test_a_changed_argument_is_changed_for_the_caller():
    w = app.to_tensor([2.0, 3.0], stop_gradient=False)

    def function(x, y):
        x[0] = w[1] * 5
        if y.sum() > 0:
            y.add_(x)
        return x

    for run in (function, static(function)):
        w.clear_grad()
        x, y = app.to_tensor([1.0, 1.0]), app.to_tensor([1.0, 2.0])
        assert run(x, y) is x
        np.testing.assert_array_equal(x.numpy(), [15.0, 1.0])
        np.testing.assert_array_equal(y.numpy(), [16.0, 3.0])
        (x * y).sum().backward()
        np.testing.assert_array_equal(w.grad.numpy(), [0.0, 5 * 16 + 5 * 15.0])


@pytest.mark.parametrize("shared", ["a view", "a captured argument", "a captured view"])
def test_a_change_of_memory_that_two_values_share_is_an_error(shared):
    w, other = app.to_tensor([1.0, 2.0]), app.to_tensor([3.0, 4.0])
    captured = w if shared == "a captured argument" else w.reshape([2, 1]) if shared == "a captured view" else other

    @to_static(backend="reference")
    def function(x, y):
        x.add_(1.0)
        return x + y.sum() + captured.sum()

    total = 7.0 + captured.numpy().sum()
    np.testing.assert_array_equal(function(app.to_tensor([1.0, 2.0]), other).numpy(), [2.0 + total, 3.0 + total])
    y = w.reshape([1, 2])[0] if shared == "a view" else other
    with pytest.raises(InPlaceError, match=r"changes x in place, and .* shares its memory, .* use a copy of either"):
        function(w, y)
    np.testing.assert_array_equal(w.numpy(), [1.0, 2.0])


def test_a_tensor_that_is_given_twice_cannot_be_changed_in_place():
    @to_static(backend="reference")
    def function(x, y):
        x.add_(1.0)
        return y

    function(app.to_tensor([1.0]), w := app.to_tensor([1.0]))
    with pytest.raises(InPlaceError, match="changes x in place, and y shares its memory"):
        function(w, w)


def test_an_argument_that_an_operator_writes_to_is_changed_for_the_caller():
    def function(x, y):
        total = x + y
        app.assign(total * 2, output=x)
        return x + y

    for run in (function, static(function)):
        x, y = app.to_tensor([1.0]), app.to_tensor([5.0])
        assert [float(run(x, y)), float(x)] == [17.0, 12.0]


def test_a_captured_tensor_is_changed_in_place():
    w = app.to_tensor([[1.0, 2.0], [3.0, 4.0]])

    def function(x):
        w[0] = w[0] + x
        w[1, 0] = 9.0
        return w.sum()

    run = static(function)
    assert [float(run(app.to_tensor([1.0, 1.0]))) for _ in range(2)] == [18.0, 20.0]
    np.testing.assert_array_equal(w.numpy(), [[3.0, 4.0], [9.0, 4.0]])


TOTAL = 0
TABLE: dict[str, int] = {}


class ReadOnly:
    """Has a table that cannot be replaced by another one."""

    __slots__ = ("_table",)

    def __init__(self):
        self._table = {}

    @property
    def table(self):
        return self._table


def test_items_are_set_once_in_objects_from_outside():
    holder, array, listed = ReadOnly(), np.zeros(3), []

    def add(name):
        TABLE[name] = TABLE.get(name, 0) + 1
        listed.append(name)

    def function(x):
        TABLE["outer"] = 1
        TABLE["outer"] += 1
        add("helper")
        add("other")
        del TABLE["helper"]
        holder.table["a"] = 1
        array[1] = 2.0
        array[0] += 3.0
        return x * 2

    TABLE.clear()
    static(function)(app.to_tensor([1.0]))
    assert (TABLE, listed) == ({"outer": 2, "other": 1}, ["helper", "other"])
    assert (holder.table, array.tolist()) == ({"a": 1}, [3.0, 2.0, 0.0])


def with_globals(x):
    global TOTAL
    TOTAL = TOTAL + 1
    number = 1

    def inner(y):
        nonlocal number
        number += 1
        return y * number if y.sum() > 0 else y - number

    z = inner(x)
    if x.sum() > 0:
        z = z * 1
        z.tag = "seen"
    return inner(z) + TOTAL


def test_global_and_nonlocal_names_are_assigned():
    global TOTAL
    TOTAL = 0
    result = static(with_globals)(app.to_tensor([1.0]))
    assert (float(result), TOTAL) == (7.0, 1)
