"""Python numbers, shapes and gradients of Tensors in a traced function."""

from __future__ import annotations

import numpy as np
import pytest

import app
from app.errors import AppError
from app.jit import to_static
from app.static import InputSpec


def static(function, **settings):
    return to_static(function, backend="reference", **settings)


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


def test_no_gradient_flows_through_a_python_number():
    def function(x):
        return (x * float(x.sum()) + int(x.max())).sum()

    for run in (function, static(function)):
        x = app.to_tensor([1.0, 2.0], stop_gradient=False)
        run(x).backward()
        np.testing.assert_array_equal(x.grad.numpy(), [3.0, 3.0])


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

    def function(x):
        w.add_(1.0)
        return x * w.item(0)

    with pytest.raises(AppError, match="Python cannot read its numbers"):
        static(function)(app.ones([2]))


def test_float_keeps_every_digit():
    numbers, small = app.to_tensor([2.0**40 + 1, 0.1], "float64"), app.to_tensor(3, "uint8")

    def function(x, n):
        return x * float(x.sum()) + float(n)

    for run in (function, static(function)):
        np.testing.assert_array_equal(run(numbers, small).numpy(), function(numbers, small).numpy())


def by_none(x, other=None):
    if x.sum() > 100 or other is None or other > 1:
        return x * 2
    return x


def with_an_index(x):
    places = (x > 1).nonzero()
    if x.sum() > 3 and x[places[0]].max() > 1.5:
        return x * 2
    return x * 5


def empty_on_the_right(x):
    kept = x[x > 2]
    if (x > 2).any() and kept.max() > 2.5 and True:
        return x * kept.max()
    return x


@pytest.mark.parametrize("numbers", [[1.0, 2.0], [0.5, 0.25], [60.0, 3.0]], ids=str)
@pytest.mark.parametrize("function", [by_none, with_an_index, empty_on_the_right])
def test_and_and_or_skip_what_they_skip_in_python(function, numbers):
    found, expected = (run(app.to_tensor(numbers)).numpy() for run in (static(function), function))
    np.testing.assert_allclose(found, expected)


# to_tensor and grad


@pytest.mark.parametrize("dtype", [None, "float64", "int64"])
def test_to_tensor_of_a_traced_value_is_a_copy(dtype):
    w = app.to_tensor([3.0, 4.0], stop_gradient=False)

    def function(x):
        y = app.to_tensor(x, dtype=dtype)
        z = app.to_tensor(w, dtype=dtype)
        y[0] = 7
        rows = app.to_tensor([x.sum(), 1.0, w.max()])
        return x * 1, y, z, rows, app.to_tensor([1, 2])

    x = app.to_tensor([1.0, 2.0], stop_gradient=False)
    for found, expected in zip(static(function)(x), function(x), strict=True):
        assert (found.dtype, found.stop_gradient) == (expected.dtype, expected.stop_gradient)
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_grad_differentiates_with_respect_to_a_leaf_of_to_tensor():
    def function(x):
        y = app.to_tensor(x, stop_gradient=False)
        z = y * y * x
        return app.grad(z.sum(), y, retain_graph=True)[0], z.sum()

    x = app.to_tensor([2.0, 3.0], stop_gradient=False)
    for run in (function, static(function)):
        x.clear_grad()
        slope, total = run(x)
        np.testing.assert_array_equal(slope.numpy(), [8.0, 18.0])
        total.backward()
        np.testing.assert_array_equal(x.grad.numpy(), [4.0, 9.0])


def test_grad_works_in_a_traced_function():
    w = app.to_tensor([2.0, 3.0], stop_gradient=False)

    def function(x):
        y = (x * w).exp().sum() + w.sum()
        first = app.grad(y, [x, w], create_graph=True)
        plain = app.grad([y, first[0].sum()], x, grad_outputs=[x.sum(), None], retain_graph=True)[0]
        assert app.grad(y, [x.exp()], retain_graph=True, allow_unused=True) == [None]
        return (first[0] ** 2).sum() + first[1].sum() + (plain * x).sum()

    found = []
    for run in (function, static(function)):
        x = app.to_tensor([0.1, 0.2], stop_gradient=False)
        w.clear_grad()
        loss = run(x)
        loss.backward()
        found.append([loss.numpy(), x.grad.numpy(), w.grad.numpy()])
    for eager, traced in zip(*found, strict=True):
        np.testing.assert_allclose(traced, eager, rtol=1e-5)


def test_grad_of_an_unused_value_is_an_error():
    with pytest.raises(AppError, match="was not used for the outputs"):
        static(lambda x: app.grad((x * 2).sum(), x.exp()))(app.to_tensor([1.0], stop_gradient=False))


# Shapes that are values


SHAPE = app.to_tensor([6, 2])


@pytest.mark.parametrize("backend", ["reference", "compiled"])
def test_a_shape_may_be_a_value(backend):
    def function(x):
        rows, columns = app.shape(x)
        return (
            app.reshape(x * 2, app.shape(x)),
            app.reshape(x, [columns, app.to_tensor(2), -1]) * 3,
            x.reshape(SHAPE),
            app.full([rows], 2.0) + app.zeros([rows, 1]).sum() + app.full(app.shape(x)[:1], 1.0),
        )

    run = to_static(function, input_spec=[InputSpec([None, 3], "float32")], backend=backend)
    eager, traced = (app.to_tensor(np.arange(12.0).reshape(4, 3), "float32", stop_gradient=False) for _ in range(2))
    for found, expected in zip(run(traced), function(eager), strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
    for f, x in ((function, eager), (run, traced)):
        sum((part**2).sum() for part in f(x)).backward()
    np.testing.assert_allclose(traced.grad.numpy(), eager.grad.numpy())
