"""Traced functions: signatures and traces, Programs, and gradients."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import app
from app.errors import AppError, ProgramError, ShapeError
from app.graph.scope import Scope
from app.jit import ConcreteProgram, enable_to_static, to_static
from app.jit.running import Runner
from app.static import InputSpec


def tensor(*shape, grad=False, value=1.0):
    return app.to_tensor(np.full(shape, value, "float32"), stop_gradient=not grad)


def double(x):
    return x * 2


def static(function=double, **settings):
    return to_static(function, backend="reference", **settings)


# Signatures


def mean_by_hand(x):
    return x.sum() / x.shape[0]


def test_a_batch_of_another_size_is_traced_again_only_if_the_size_is_used():
    f, g = static(), static(mean_by_hand)
    for rows in (4, 2, 7):
        assert f(tensor(rows, 3)).shape == [rows, 3]
        assert float(g(tensor(rows, 3))) == 3.0
    assert (len(f.traces), len(g.traces)) == (1, 3)
    assert f.main_program.global_block().var("x").shape == (-1, 3)


def test_other_ranks_types_and_widths_are_traced_again_without_a_warning(recwarn):
    f = static()
    for x in (tensor(4), tensor(4, 3).astype("float64"), tensor(4, 3, grad=True), *(tensor(4, n) for n in range(3, 9))):
        f(x)
    assert len(f.traces) == 9
    assert not recwarn.list


def test_the_rows_of_a_matrix_are_not_the_size_of_the_batch():
    f = static(lambda x, w: x @ w)
    for rows in (3, 5, 2):
        np.testing.assert_allclose(f(tensor(rows, 3), tensor(3, 2)).numpy(), np.full((rows, 2), 3.0))


def test_arguments_and_results_may_be_nested():
    def nested(pair, *, scale=1.0, names=()):
        first, second = pair["a"]
        return {"sum": [first + second, scale], "names": names, "none": None, "same": first}

    x, y = tensor(2), tensor(2, value=3.0)
    result = static(nested)({"a": (x, y)}, scale=2.0, names=["p"])
    np.testing.assert_array_equal(result["sum"][0].numpy(), [4.0, 4.0])
    assert (result["sum"][1], result["names"], result["none"]) == (2.0, ["p"], None)
    assert result["same"] is x


def test_plain_arguments_are_part_of_the_signature_and_traces_are_bounded():
    f = static(lambda x, k: x * k)
    for k in range(40):
        with pytest.warns(UserWarning, match="should be a Tensor") if k == 7 else nullcontext():
            assert float(f(tensor(1), k)) == k
    assert len(f.traces) == 32


@pytest.mark.parametrize(
    ("first", "second", "traces"), [(1, True, 2), (1, 1.0, 2), (0.0, -0.0, 2), (float("nan"), float("nan"), 1)]
)
def test_plain_arguments_are_told_apart_exactly(first, second, traces):
    f = static(lambda x, k: x * k)
    for k in (first, second):
        expected = (tensor(1) * k).numpy()
        assert (f(tensor(1), k).numpy().dtype, f(tensor(1), k).numpy().tobytes()) == (
            expected.dtype,
            expected.tobytes(),
        )
    assert len(f.traces) == traces


def test_arguments_must_fit_the_input_specs():
    f = static(input_spec=[InputSpec([None, 3], "float32")])
    assert f.main_program.global_block().var("x").shape == (-1, 3)  # traced without a call
    assert f(tensor(2, 3)).shape == [2, 3]
    with pytest.raises(ShapeError, match="InputSpec"):
        f(tensor(2, 4))
    with pytest.raises(ProgramError, match="has 1 InputSpecs, but was called with 2 values"):
        to_static(lambda x, y: x + y, input_spec=[InputSpec([2, 3])])(tensor(2, 3), tensor(2, 3))


def test_tracing_can_be_switched_off():
    seen = []

    @to_static(backend="reference")
    def f(x):
        seen.append(type(x).__name__)
        return x

    enable_to_static(False)
    try:
        f(tensor(1))
    finally:
        enable_to_static(True)
    f(tensor(1))
    assert seen[0] == "Tensor"
    assert seen[1].startswith("Traced")


class Scaled:
    def __init__(self, by):
        self.by = by

    @to_static(backend="reference")
    def times(self, x):
        return x * self.by


def test_each_object_has_its_own_traces_of_a_method():
    assert [float(Scaled(by).times(tensor(1))) for by in (2, 3)] == [2.0, 3.0]


def test_a_layer_can_be_copied():
    layer = to_static(app.nn.Linear(2, 2), backend="reference")
    layer(tensor(1, 2))
    other = copy.deepcopy(layer)
    layer.weight.set_value(np.zeros((2, 2), "float32"))
    assert abs(other(tensor(1, 2)).numpy()).sum() > 0


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


# Gradients


def test_gradients_flow_through_a_traced_function():
    f = static(lambda x, y: (x * y, x + 1, x > 0))
    x, y = tensor(3, grad=True, value=2.0), tensor(3, grad=True, value=3.0)
    product, more, truth = f(x * 1, y)
    assert truth.stop_gradient
    (product * 2 + more).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [7.0] * 3)
    np.testing.assert_allclose(y.grad.numpy(), [4.0] * 3)


def test_unused_outputs_and_detached_values_have_no_gradient():
    def function(x):
        with app.no_grad():
            y = x * 5
        return (x * y * x.detach()).sum(), x * 3

    x = tensor(1, grad=True, value=2.0)
    static(function)(x)[0].backward()
    assert float(x.grad) == 20.0


def test_a_second_backward_pass_needs_the_first_to_keep_its_values():
    x = tensor(1, grad=True)
    y = static(lambda x: app.exp(x))(x)
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(AppError, match="second time"):
        y.backward()


def test_a_second_derivative_is_taken_in_the_function_and_refused_outside():
    def slope(x):
        (first,) = app.grad((x**3).sum(), x, create_graph=True)
        return first.sum()

    x = tensor(2, grad=True, value=2.0)
    static(slope)(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), [12.0, 12.0])
    with pytest.raises(AppError, match=r"cannot be differentiated twice from outside; take .* in the function"):
        app.grad(static(lambda x: (x**3).sum())(x), x, create_graph=True)


def test_a_captured_tensor_changed_before_the_backward_pass_is_an_error():
    w = app.create_parameter([2])
    loss = static(lambda x: (x * w).sum())(tensor(2, grad=True))
    w.set_value(np.zeros(2, "float32"))
    with pytest.raises(AppError, match="modified by an inplace operation"):
        loss.backward()


def test_random_operators_draw_the_same_numbers_as_eagerly():
    def function(x):
        return x + app.rand([3]) + app.nn.functional.dropout(app.ones([3]), 0.5)

    f, found = static(function), []
    for run in (function, f):
        app.seed(7)
        found.append([run(tensor(3)).numpy() for _ in range(3)])
    np.testing.assert_array_equal(found[0], found[1])


def test_a_misspelt_setting_is_an_error():
    with pytest.raises(TypeError, match="full_grph"):
        to_static(lambda x: x, full_grph=True)


def test_a_tensor_made_in_a_traced_function_is_new_at_each_call():
    def function(x):
        total = app.to_tensor([0.0, 0.0])
        total += x
        return total

    run = to_static(function, backend="reference")
    for _ in range(2):
        assert run(app.to_tensor([1.0, 2.0])).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("fits", [True, False])
def test_compiled_code_runs_if_it_fits_what_is_fed(fits: bool):
    f = static()
    f(tensor(2, 3))
    (trace,) = f.traces
    runner = Runner(trace.program, [trace.program.global_block().ops[-1].outputs[0]], "compiled")
    runner._native = SimpleNamespace(fits=lambda feed: fits, run_once=lambda feed, scope: ["by compiled code"])
    (found,) = runner.run({"x": np.ones((1, 3), "float32")}, Scope())
    assert found == "by compiled code" if fits else found.tolist() == [[2, 2, 2]]
