"""`PyLayer` on Tensors and, where `mode` is given, in a Program: arguments, results, gradients and the context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from layers import CusTanh, data, layer, run, variable

import app
from app import static
from app.autograd import Function, PyLayer
from app.custom.pylayer.pylayer import operator_of_layer

# --- Arguments ---


class WithFunctions(PyLayer):
    @staticmethod
    def forward(ctx, x1, func1, func2=app.square):
        ctx.func = func2
        y1 = func1(x1)
        ctx.save_for_backward(y1)
        return y1

    @staticmethod
    def backward(ctx, dy1):
        (y1,) = ctx.saved_tensor()
        return dy1 * (1 - ctx.func(y1))


@pytest.mark.parametrize(
    "apply",
    [
        lambda x: WithFunctions.apply(x, app.tanh),
        lambda x: WithFunctions.apply(x1=x, func1=app.tanh),
        lambda x: WithFunctions.apply(func2=lambda y: y * y, func1=app.tanh, x1=x),
    ],
)
def test_arguments_may_be_functions_and_keywords(apply: Callable[..., Any]):
    x = data(0.5, -1.0)
    apply(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 1 - np.tanh([0.5, -1.0]) ** 2)


@pytest.mark.parametrize("apply", [lambda cus, xs: cus.apply(xs, 3.0), lambda cus, xs: cus.apply(k=3.0, xs=xs)])
def test_tensors_in_a_list_are_inputs(mode: Any, apply: Callable[..., Any]):
    cus = layer(lambda ctx, xs, k: xs[0] * k + xs[1] * 10.0, lambda ctx, dy: (dy * 3.0, dy * 10.0))
    a, b = mode.input([1.0]), mode.input([2.0])
    y = apply(cus, [a, b])
    assert mode.values(y)[0] == 23
    assert mode.gradients(y, [a, b]) == [3, 10]
    assert mode.gradients(apply(cus, [a, a]), [a]) == [13]


# --- When forward and backward run ---


def test_backward_runs_only_for_recorded_calls_that_the_loss_depends_on():
    runs: list[Any] = []
    cus = layer(lambda ctx, x: x * 2.0, lambda ctx, dy: (runs.append(dy), dy)[1])
    x = data(1.0)
    cus.apply(x)
    with app.no_grad():
        assert cus.apply(x).stop_gradient
    (x * 3.0).backward()
    assert not runs
    cus.apply(x).backward()
    assert len(runs) == 1


def test_a_subclass_is_an_operator_of_its_own():
    class Scaled(CusTanh):
        @staticmethod
        def backward(ctx, dy):
            return CusTanh.backward(ctx, dy) * 100.0

    x = data(0.5)
    CusTanh.apply(x)
    Scaled.apply(x).backward()
    assert x.grad.item() == pytest.approx(100 * (1 - np.tanh(0.5) ** 2))


def test_functions_that_are_replaced_after_a_call_count_for_the_next_one():
    class Times(PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, dy):
            return dy * 2

    class Inherited(Times):
        pass

    for factor in (2.0, 3.0):
        Times.forward = staticmethod(lambda ctx, x, factor=factor: x * factor)
        Times.backward = staticmethod(lambda ctx, dy, factor=factor: dy * factor)
        for kind in (Times, Inherited):
            x = data(1.0)
            y = kind.apply(x)
            y.backward()
            assert (y.item(), x.grad.item()) == (factor, factor)


def test_attributes_that_are_replaced_after_a_call_count_for_the_next_one():
    class Times(Function):
        @staticmethod
        def forward(x, factor):
            return x * factor

        @staticmethod
        def backward(ctx, dy):
            return dy * ctx.factor, None

    for added in (0.0, 1.0):
        Times.setup_context = staticmethod(
            lambda ctx, inputs, output, added=added: setattr(ctx, "factor", inputs[1] + added)
        )
        x = data(1.0)
        Times.apply(x, 2.0).backward()
        assert x.grad.item() == 2.0 + added
    Times.surrogate = True
    assert operator_of_layer(Times).surrogate


# --- Results and their gradients ---


def total(ctx: Any, x1: Any, x2: Any) -> Any:
    return x1 + x2


def test_backward_returns_none_for_an_input_without_a_gradient(mode: Any):
    x, w = mode.input([1.0]), mode.input([1.0], stop_gradient=True)
    strict = layer(total, lambda ctx, dy: (dy, None)).apply(x, w)
    lenient = layer(total, lambda ctx, dy: (dy, dy), Function).apply(x, w)
    assert mode.gradients(strict + lenient, [x]) == [2]


def test_backward_gets_one_gradient_for_each_tensor_among_the_results():
    seen: list[Any] = []

    def backward(ctx, *douts):
        seen.extend(douts)
        return douts[0] + 10.0 * douts[1]

    x = data(1.0, 2.0)
    a, note, b = layer(lambda ctx, x: (x * 1.0, "note", x * 10.0), backward).apply(x)
    assert note == "note"
    (a + 2.0 * b).sum().backward()
    assert [d.numpy().tolist() for d in seen] == [[1, 1], [2, 2]]
    np.testing.assert_array_equal(x.grad.numpy(), [21, 21])


@pytest.mark.parametrize("materialize", [None, True, False])
def test_the_gradient_of_an_unused_output_is_zeros_or_on_request_none(mode: Any, materialize: bool | None):
    seen: list[Any] = []

    def forward(ctx, x):
        if materialize is not None:
            ctx.set_materialize_grads(materialize)
        return x * 1.0, app.sum(x)

    x = mode.input([1.0, 2.0])
    mode.gradients(layer(forward, lambda ctx, da, db: (seen.append(db), da)[1]).apply(x)[0], [x])
    if materialize is False:
        assert seen == [None]
    else:
        assert [(list(d.shape), d.dtype) for d in seen] == [([], "float32")]
        assert mode.values(seen[0])[0] == 0


def test_outputs_marked_as_not_differentiable_stop_gradients(mode: Any):
    seen: list[Any] = []

    def forward(ctx, x):
        order, step, largest = app.argmax(x), x * 0.0, app.max(x)
        ctx.mark_non_differentiable(order, step)
        return order, step, largest

    def backward(ctx, *douts):
        seen.extend(douts)
        return app.ones([2]) * douts[2]

    x = mode.input([1.0, 2.0])
    order, step, largest = layer(forward, backward).apply(x)
    assert (order.stop_gradient, step.stop_gradient, largest.stop_gradient) == (True, True, False)
    np.testing.assert_array_equal(mode.gradients(largest + step.sum(), [x])[0], [1, 1])
    assert not mode.values(seen[1])[0].any()


@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "float64", "uint8", "int32", "int64"])
def test_gradients_flow_through_outputs_of_every_type(dtype: str):
    x = app.ones([2, 3])
    x.stop_gradient = False
    z = layer(lambda ctx, x: x.astype(dtype), lambda ctx, dy: dy).apply(x)
    z.astype("float32").sum().backward()
    assert x.grad.dtype == "float32"
    assert x.grad.tolist() == [[1.0] * 3] * 2


@pytest.mark.parametrize("consistent", [True, False])
def test_gradients_arrive_in_the_type_of_the_output_unless_set_otherwise(consistent: bool):
    seen: list[str] = []

    def forward(ctx, x):
        ctx.set_grad_in_dtype_consistent(consistent)
        return x * 1.0

    lower = layer(forward, lambda ctx, dy: (seen.append(dy.dtype), dy)[1])
    upper = layer(lambda ctx, x: x * 1.0, lambda ctx, dy: dy.astype("float16"))
    x = data(1.0)
    upper.apply(lower.apply(x)).backward()
    assert seen == ["float64" if consistent else "float16"]
    assert x.grad.dtype == "float64"


def test_results_keep_their_list_tuple_or_named_tuple():
    class Pair(NamedTuple):
        first: Any
        second: Any

    x = data(1.0)
    for kind in (list, tuple, lambda pair: Pair(*pair)):
        result = layer(lambda ctx, x, kind=kind: kind((x * 1.0, x * 2.0)), lambda ctx, a, b: a + 2.0 * b).apply(x)
        assert type(result) is type(kind((1, 2)))
        assert not result[0].stop_gradient


# --- The context ---


@pytest.mark.parametrize("saved", [(), (None, "x")], ids=["nothing", "None and a Tensor"])
def test_backward_gets_what_forward_saved(saved: tuple[Any, ...]):
    seen: list[Any] = []

    def forward(ctx, x):
        if saved:
            ctx.save_for_backward(*(x if value == "x" else value for value in saved))
        return x * 1.0

    def backward(ctx, dy):
        seen.extend([ctx.saved_tensor(), ctx.saved_tensors])
        return dy

    layer(forward, backward).apply(data(2.0, 3.0)).sum().backward()
    actual = [tuple(value if value is None else value.tolist() for value in values) for values in seen]
    assert actual == [() if not saved else (None, [2, 3])] * 2


def test_what_was_saved_must_not_change_before_backward():
    x = data(2.0)

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    y = layer(forward, lambda ctx, dy: 2.0 * ctx.saved_tensor()[0] * dy).apply(x)
    with app.no_grad():
        x.multiply_(100.0)
    with pytest.raises(RuntimeError, match=r"Tensor 0 that forward saved.*modified by an inplace operation"):
        y.backward()


def test_each_call_has_a_context_of_its_own():
    cus = layer(
        lambda ctx, x, k: (setattr(ctx, "k", k), x * k)[1],
        lambda ctx, dy: dy * ctx.k,
    )
    x = data(1.0)
    (cus.apply(x, 2.0) + cus.apply(x, 30.0)).backward()
    assert x.grad.item() == 32


def test_forward_and_backward_know_which_arguments_need_a_gradient():
    seen: list[Any] = []

    def forward(ctx, x, k, w):
        seen.append(ctx.needs_input_grad)
        return x * w * k

    def backward(ctx, dy):
        seen.append(ctx.needs_input_grad)
        return [dy if needed else None for needed in (ctx.needs_input_grad[0], ctx.needs_input_grad[2])]

    cus = layer(forward, backward)
    cus.apply(data(1.0), 2.0, data(3.0, stop_gradient=True)).backward()
    cus.apply(data(1.0, stop_gradient=True), w=data(3.0), k=2.0).backward()
    assert seen == [(True, False, False)] * 2 + [(False, False, True)] * 2


def test_attributes_of_the_context_may_have_any_name():
    def forward(ctx, x):
        ctx.label, ctx.returned, ctx.close, ctx.among_results, ctx.lenient = 1, 2, 3, 4, 5
        ctx.inputs_on_tape, ctx.is_differentiable, ctx.definition, ctx.kind = 6, 7, 8, 9
        return x * 2.0

    def backward(ctx, dy):
        assert (ctx.label, ctx.returned, ctx.close, ctx.kind) == (1, 2, 3, 9)
        return dy * 2.0

    x = data(2.0, 3.0)
    layer(forward, backward).apply(x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 2])


# --- In a Program ---


def test_the_class_is_its_operators_and_one_that_holds_its_gradient_for_every_batch_size():
    x = variable("x", None, 3)
    y, z = CusTanh.apply(x), app.tanh(x)
    assert y.spec == ((-1, 3), "float32")
    assert "CusTanh(x, tanh.out_0)  // layers.py:" in str(y.program)
    gradients = static.gradients(y, x)
    kinds = ["tanh", "CusTanh", "tanh", "full_like", "square", "fill_constant", "subtract", "multiply"]
    assert [op.type for op in y.block.ops] == kinds
    fetched = [y, z, *gradients, *static.gradients(z, x)]
    for rows in (1, 4):
        actual, expected, slope, expected_slope = run(
            *fetched, x=np.linspace(-2, 2, rows * 3).reshape(rows, 3).astype("float32")
        )
        np.testing.assert_array_equal(actual, expected)
        np.testing.assert_allclose(slope, expected_slope, rtol=1e-6)


def test_forward_and_backward_are_called_while_the_program_is_built():
    calls: list[str] = []
    cus = layer(
        lambda ctx, x: (calls.append("forward"), x * 2.0)[1], lambda ctx, dy: (calls.append("backward"), dy * 2.0)[1]
    )
    x, fixed = variable("x", 2), static.data("fixed", [2])
    y, z = cus.apply(x), cus.apply(fixed)
    assert z.stop_gradient
    (g,) = static.gradients(y + z, x)
    assert calls == ["forward", "forward", "backward"]
    ones = np.ones(2, "float32")
    for _ in range(2):
        np.testing.assert_array_equal(run(g, x=ones, fixed=ones)[0], [2, 2])
    assert len(calls) == 3


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_results_that_are_no_variables_keep_their_places_in_a_program(engine: str):
    cus = layer(lambda ctx, x: ("word", x * 2.0, [x.shape]), lambda ctx, dy: dy * 3.0)
    x = variable("x", 2)
    word, y, shapes = cus.apply(x)
    assert (word, shapes) == ("word", [(2,)])
    results = static.Executor(engine=engine).run(
        feed={"x": np.ones(2, "float32")}, fetch_list=[y, *static.gradients(y, x)]
    )
    np.testing.assert_array_equal(results, [[2, 2], [3, 3]])


def test_random_numbers_of_forward_are_those_of_backward():
    def forward(ctx, x):
        ctx.parts = {"mask": [app.nn.functional.dropout(app.ones_like(x), 0.5)]}
        return x * ctx.parts["mask"][0]

    x = variable("x", 64)
    y = layer(forward, lambda ctx, dy: dy * ctx.parts["mask"][0]).apply(x)
    for _ in range(2):
        value, gradient = run(y, *static.gradients(y, x), x=np.ones(64, "float32"))
        assert {*value} == {0, 2}
        np.testing.assert_array_equal(value, gradient)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_an_input_that_forward_returns_is_a_result_of_its_own_with_the_gradient_of_the_class(engine: str):
    with static.program_guard(static.Program(), static.Program()):
        x = variable("x", 2)
        w = static.create_parameter([2], "float32", default_initializer=app.nn.initializer.Constant(1.0))
        cus = layer(lambda ctx, a, b: (a, b), lambda ctx, da, db: (5.0 * da, 7.0 * db))
        a, b = cus.apply(x, w)
        gradients = static.gradients([a + b], [x, w])
        executor = static.Executor(engine=engine)
        executor.run(static.default_startup_program())
        results = executor.run(feed={"x": np.ones(2, "float32")}, fetch_list=[a, b, *gradients])
    np.testing.assert_array_equal(results, [[1, 1], [1, 1], [5, 5], [7, 7]])


def test_integer_outputs_have_no_gradient():
    _, n = layer(lambda ctx, x: (x * 1.0, app.argmax(x)), lambda ctx, dy, dn: dy).apply(variable("x", 3))
    assert n.spec == ((), "int64")
    assert n.stop_gradient
    assert run(n, x=np.array([0, 5, 1], "float32"))[0] == 1


def test_a_gradient_is_converted_to_the_type_of_the_input():
    cus = layer(lambda ctx, x: x * 1.0, lambda ctx, dy: app.cast(dy, "float64"))
    x = variable("x", 1)
    assert run(*static.gradients(cus.apply(x), x), x=np.ones(1, "float32"))[0].dtype == "float32"
