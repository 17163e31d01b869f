"""`PyLayer` on Tensors: the rules of the documents, each as a right and a wrong example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from layers import CusTanh, Twice, data, layer

import app
from app.autograd import PyLayer
from app.errors import OperatorError, ShapeError

PLACE = r"\(layers\.py:\d+\)"


# --- The examples of the documents ---


def test_tanh_of_the_document():
    x = app.randn([2, 3], dtype="float32")
    x.stop_gradient = False
    z = CusTanh.apply(x)
    z.mean().backward()
    np.testing.assert_array_equal(z.numpy(), np.tanh(x.numpy()))
    np.testing.assert_allclose(x.grad.numpy(), (1 - np.tanh(x.numpy()) ** 2) / 6, rtol=1e-5)
    assert x.grad.dtype == "float32"


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
        lambda x: WithFunctions.apply(x, func1=app.tanh),
        lambda x: WithFunctions.apply(x1=x, func1=app.tanh),
        lambda x: WithFunctions.apply(func2=lambda y: y * y, func1=app.tanh, x1=x),
    ],
)
def test_arguments_that_are_no_tensors_and_keywords(apply: Callable[..., Any]):
    x = data(0.5, -1.0)
    apply(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 1 - np.tanh([0.5, -1.0]) ** 2)


def test_backward_is_not_run_for_what_the_loss_does_not_depend_on_or_what_was_not_recorded():
    Twice.runs = 0
    x = data(1.0)
    Twice.apply(x)
    with app.no_grad():
        y = Twice.apply(x)
    assert y.stop_gradient
    (x * 3.0).backward()
    assert Twice.runs == 0
    Twice.apply(x).backward()
    assert Twice.runs == 1


# --- Numbers and kinds of gradients ---


def added(ctx: Any, x1: Any, x2: Any) -> Any:
    return x1 + x2


FIXED = "backward returned a Tensor as gradient 1, expected None, as that input has stop_gradient=True"


@pytest.mark.parametrize(
    ("forward", "backward", "inputs", "message"),
    [
        (lambda ctx, x: x.shape, None, [data(1.0)], "forward must return at least one Tensor, found int"),
        (lambda ctx, x: None, None, [data(1.0)], "forward must return at least one Tensor, found NoneType"),
        (added, lambda ctx, dy: (dy, dy), [data(1.0), data(3.0, stop_gradient=True)], FIXED),
        (
            added,
            lambda ctx, dy: dy,
            [data(1.0)] * 2,
            "backward returned 1 gradient, but forward had 2 Tensors as input",
        ),
        (added, lambda ctx, dy: (dy,) * 3, [data(1.0)] * 2, "backward returned 3 gradients, but forward had 2 Tensors"),
        (
            lambda ctx, x: x * 1.0,
            lambda ctx, dy: dy.numpy(),
            [data(1.0)],
            "backward returned ndarray as gradient 0, expected a Tensor or None",
        ),
        (
            lambda ctx, x: x.sum(),
            lambda ctx, dy: dy,
            [data(1.0, 2.0)],
            r"backward returned shape \[\] as gradient 0, but expected shape \[2\], that of the input",
        ),
    ],
)
def test_what_forward_and_backward_return_is_checked(forward: Any, backward: Any, inputs: Any, message: str):
    with pytest.raises((OperatorError, ShapeError), match=rf"operator cus {PLACE}: {message}") as caught:
        layer(forward, backward).apply(*inputs).backward()
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(("wanted", "gradients"), [([True, False], (1, None)), ([True, True], (None, 1))])
def test_none_is_returned_for_an_input_without_a_gradient(wanted: list[bool], gradients: Any):
    xs = [data(1.0, stop_gradient=not one) for one in wanted]
    layer(added, lambda ctx, dy: tuple(None if g is None else dy for g in gradients)).apply(*xs).backward()
    assert [x.grad is None for x in xs] == [g is None for g in gradients]


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


# --- Outputs without gradient ---


@pytest.mark.parametrize("materialize", [None, True, False])
def test_the_gradient_of_an_unused_output_is_zeros_or_none_where_asked_for(materialize: bool | None):
    seen: list[Any] = []

    def forward(ctx, x):
        if materialize is not None:
            ctx.set_materialize_grads(materialize)
        return x * 1.0, app.sum(x)

    cus = layer(forward, lambda ctx, da, db: (seen.append(db), da)[1])
    cus.apply(data(1.0, 2.0))[0].sum().backward()
    if materialize is False:
        assert seen == [None]
    else:
        assert (seen[0].shape, seen[0].dtype, seen[0].item()) == ([], "float64", 0)


def test_outputs_marked_as_not_differentiable():
    def forward(ctx, x):
        order, step, largest = app.argmax(x), x * 0.0, app.max(x)
        ctx.mark_non_differentiable(order, step)
        return order, step, largest

    seen: list[Any] = []

    def backward(ctx, *douts):
        seen.extend(douts)
        return app.ones([2], "float64") * douts[2]

    x = data(1.0, 2.0)
    order, step, largest = layer(forward, backward).apply(x)
    assert (order.stop_gradient, step.stop_gradient, largest.stop_gradient) == (True, True, False)
    (largest + step.sum()).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 1])
    assert not seen[1].numpy().any()


@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "float64", "uint8", "int32", "int64"])
def test_gradients_flow_through_outputs_of_every_type(dtype: str):
    x = app.ones([2, 3])
    x.stop_gradient = False
    z = layer(lambda ctx, x: x.astype(dtype), lambda ctx, dy: dy).apply(x)
    z.astype("float32").sum().backward()
    assert x.grad.dtype == "float32"
    assert x.grad.tolist() == [[1.0] * 3] * 2


def test_an_input_that_is_handed_through_and_not_changed_is_a_result_of_its_own():
    x = data(1.0, 2.0)
    y = layer(lambda ctx, x: (ctx.mark_not_inplace(x), x)[1], lambda ctx, dy: dy * 5.0).apply(x)
    assert y is not x
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [5, 5])


def test_results_keep_their_list_tuple_or_named_tuple():
    class Pair(NamedTuple):
        first: Any
        second: Any

    x = data(1.0)
    for kind in (list, tuple, lambda pair: Pair(*pair)):
        result = layer(lambda ctx, x, kind=kind: kind((x * 1.0, x * 2.0)), lambda ctx, a, b: a + 2.0 * b).apply(x)
        assert type(result) is type(kind((1, 2)))
        assert not result[0].stop_gradient


def test_a_second_backward_without_retain_graph_says_so():
    x = data(0.5)
    y = CusTanh.apply(x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == pytest.approx(2 * (1 - np.tanh(0.5) ** 2))
    with pytest.raises(OperatorError, match=r"operator CusTanh .*were freed by an earlier backward.*retain_graph=True"):
        y.backward()


# --- Lists of Tensors as arguments ---


@pytest.mark.parametrize("by_keyword", [False, True])
def test_tensors_in_a_list_are_inputs_too(by_keyword: bool):
    cus = layer(lambda ctx, xs, k: xs[0] * k + xs[1] * 10.0, lambda ctx, dy: (dy * 3.0, dy * 10.0))
    a, b = data(1.0), data(2.0)
    y = cus.apply(xs=[a, b], k=3.0) if by_keyword else cus.apply([a, b], 3.0)
    y.backward()
    assert (a.grad.item(), b.grad.item()) == (3, 10)


def test_a_subclass_is_an_operator_of_its_own():
    class Scaled(CusTanh):
        @staticmethod
        def backward(ctx, dy):
            return CusTanh.backward(ctx, dy) * 100.0

    x = data(0.5)
    CusTanh.apply(x)
    Scaled.apply(x).backward()
    assert x.grad.item() == pytest.approx(100 * (1 - np.tanh(0.5) ** 2))
