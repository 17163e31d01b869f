"""A PyLayer in a Program: the same class, appended as one operator and differentiated by its own backward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layers import CusTanh, layer
from layers import run as run_arrays
from layers import variable as data

import app
from app import static
from app.autograd import Function, PyLayer
from app.errors import OperatorError, ShapeError

F32 = "float32"


def run(*fetched: Any, **feed: Any) -> list[np.ndarray]:
    return run_arrays(*fetched, **{name: np.asarray(value, F32) for name, value in feed.items()})


def test_the_class_is_one_operator_with_one_for_its_gradient():
    x = data("x", None, 3)
    y = CusTanh.apply(x)
    assert y.spec == ((-1, 3), F32)
    static.gradients(y, x)
    assert [op.type for op in y.block.ops] == ["CusTanh", "full_like", "CusTanh_grad"]
    assert "CusTanh(x)  // layers.py:" in str(y.program)


@pytest.mark.parametrize("rows", [1, 4])
def test_values_and_gradients_are_those_of_the_built_in_operator(rows: int):
    x = data("x", None, 3)
    y, z = CusTanh.apply(x), app.tanh(x)
    fetched = [y, z, *static.gradients(y, x), *static.gradients(z, x)]
    y, z, gy, gz = run(*fetched, x=np.linspace(-2, 2, rows * 3).reshape(rows, 3))
    np.testing.assert_array_equal(y, z)
    np.testing.assert_allclose(gy, gz, rtol=1e-6)


def test_forward_runs_at_every_run_and_backward_where_it_is_needed():
    calls: list[str] = []
    cus = layer(
        lambda ctx, x: (calls.append("forward"), x * 2.0)[1], lambda ctx, dy: (calls.append("backward"), dy * 2.0)[1]
    )
    x, fixed = data("x", 2), static.data("fixed", [2])
    y, z = cus.apply(x), cus.apply(fixed)
    assert z.stop_gradient
    (g,) = static.gradients(y + z, x)
    calls.clear()
    for _ in range(2):
        np.testing.assert_array_equal(run(g, x=[1, 2], fixed=[1, 2])[0], [2, 2])
    assert calls == ["forward", "forward", "backward"] * 2


def test_the_same_variable_twice_and_variables_in_a_list():
    cus = layer(lambda ctx, xs, k: xs[0] * xs[1] * k, lambda ctx, dy: (dy, dy * 10.0))
    x = data("x", 1)
    y = cus.apply([x, x], k=2.0)
    assert [v.item() for v in run(y, *static.gradients(y, x), x=[3])] == [18, 11]


def test_zeros_or_none_for_an_output_without_gradient():
    seen: list[Any] = []

    def hooked(materialize: bool) -> type[PyLayer]:
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 1.0, app.sum(x)

        return layer(forward, lambda ctx, da, db: (seen.append(db), da)[1])

    x = data("x", 2)
    slopes = [static.gradients(hooked(materialize).apply(x)[0], x)[0] for materialize in (True, False)]
    run(*slopes, x=[1, 2])
    assert seen[0].item() == 0
    assert seen[1] is None


def test_outputs_marked_as_not_differentiable_stop_gradients():
    def forward(ctx, x):
        step = app.cast(x > 0, F32)
        ctx.mark_non_differentiable(step)
        return x * step, step

    y, step = layer(forward, lambda ctx, dy, dstep: dy * 7.0).apply(data("x", 2))
    assert step.stop_gradient
    assert not y.stop_gradient
    (g,) = static.gradients(y * step + step, y.block.var("x"))
    np.testing.assert_array_equal(run(g, x=[1, -1])[0], [7, 0])


def test_whole_numbers_among_the_outputs():
    _, n = layer(lambda ctx, x: (x * 1.0, app.argmax(x)), lambda ctx, dy, dn: dy).apply(data("x", 3))
    assert n.spec == ((), "int64")
    assert n.stop_gradient
    assert run(n, x=[0, 5, 1])[0] == 1


def test_what_needs_no_gradient_gets_none_in_both_manners():
    x, w = data("x", 1), static.data("w", [1])
    strict = layer(lambda ctx, x, w: x * w, lambda ctx, dy: (dy, None)).apply(x, w)
    lenient = layer(lambda ctx, x, w: x * w, lambda ctx, dy: (dy, dy), Function).apply(x, w)
    (g,) = static.gradients(strict + lenient, x)
    assert run(g, x=[1], w=[1])[0] == 2


def test_a_type_is_kept_where_backward_returns_another():
    cus = layer(lambda ctx, x: x * 1.0, lambda ctx, dy: app.cast(dy, "float64"))
    x = data("x", 1)
    assert run(*static.gradients(cus.apply(x), x), x=[1])[0].dtype == F32


# --- Errors ---


@pytest.mark.parametrize(
    ("backward", "kind", "message"),
    [
        (lambda ctx, dy: dy[0], ShapeError, r"backward returned shape \[\] as gradient 0, but expected shape \[2\]"),
        (lambda ctx, dy: 1 / 0, OperatorError, "raised ZeroDivisionError"),
    ],
)
def test_what_backward_returns_is_checked_when_it_runs(backward: Any, kind: type, message: str):
    x = data("x", 2)
    (g,) = static.gradients(layer(lambda ctx, x: x * 1.0, backward).apply(x), x)
    with pytest.raises(kind, match=rf"operator cus \(layers\.py:\d+\): .*{message}"):
        run(g, x=[1, 2])


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (lambda ctx, x: None, "forward must return at least one Tensor, found NoneType"),
        (lambda ctx, x: (x * 1.0, x.shape), "in a Program, forward can return Tensors only"),
        (lambda ctx, x: 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_forward_is_tried_while_the_program_is_built(forward: Any, message: str):
    tried = r"run on arrays of ones, to learn what it returns, it failed: operator cus \(layers"
    with pytest.raises(OperatorError, match=rf"{tried}.*{message}"):
        layer(forward, lambda ctx, dy: dy).apply(data("x", 2))


def test_a_tensor_and_a_variable_cannot_be_mixed():
    cus = layer(lambda ctx, x, w: x * w, lambda ctx, dy: (dy, dy))
    with pytest.raises(OperatorError, match=r"operator cus .*a Tensor and a Variable were mixed in one apply"):
        cus.apply(data("x", 1), app.ones([1]))


def test_a_second_derivative_is_refused_rather_than_left_out():
    x = data("x", 2)
    cus = layer(lambda ctx, x: app.to_tensor(np.tanh(x.numpy())), lambda ctx, dy: dy)
    (g,) = static.gradients(cus.apply(x), x)
    with pytest.raises(OperatorError, match=r"operator cus .* cannot be differentiated twice in a Program"):
        static.gradients(g + x * x, x)
