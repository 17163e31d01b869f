"""Changes in place in traced functions: aliases, views, arguments, helpers and branches see them as they do eagerly."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import app
from app.jit import to_static


def set_first(values, number=7.0):
    values[0] = number


def in_a_helper_in_a_branch(x):
    y = x * 2
    z = y
    if x.sum() > 0:
        set_first(y)
        w = z * 3
    else:
        w = z
    return y + z + w


def in_a_loop(x):
    y, k, kept = x * 1, x.sum() * 0, x * 0
    alike = y
    while k < 3:
        alike += x
        kept[0] = kept[0] + y[1]
        k += 1
    return y * kept + k


def in_a_loop_under_a_branch(x):
    y = x * 1
    for k in range(3):
        if (x * k).sum() > 2:
            set_first(y, k)
            break
        y *= 2
    return y


def of_a_view(x):
    y = (x * 1).reshape([1, 2])
    row = y[0]
    row[1] = 5.0
    y[0] += 2.0
    y[0][0] = x.sum()
    flat = y.flatten()
    flat *= 2
    return y


def of_items_of_containers(x):
    parts = {"a": [x * 1, x * 2]}
    parts["a"][0][1] = 3.0
    if x.sum() > 0:
        parts["a"][1][0] = 4.0
    return parts["a"][0] + parts["a"][1]


def of_an_attribute(x):
    box = SimpleNamespace(value=x * 1, count=0)
    box.value[0] = 2.0
    if x.sum() > 0:
        box.value += 1
        box.count += 1
    return box.value * box.count


FUNCTIONS = [
    in_a_helper_in_a_branch, in_a_loop, in_a_loop_under_a_branch, of_a_view, of_items_of_containers, of_an_attribute,
]  # fmt: skip


def values_and_gradients(function, numbers):
    x = app.to_tensor(numbers, stop_gradient=False)
    y = function(x)
    y.sum().backward()
    return y.numpy(), x.grad.numpy()


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_changes_in_place_have_the_effects_that_they_have_eagerly(function):
    for numbers in ([1.0, 2.0], [-1.0, -2.0], [-7.0, -8.0]):
        pairs = (values_and_gradients(f, numbers) for f in (to_static(function, backend="reference"), function))
        for traced, eager in zip(*pairs, strict=True):
            np.testing.assert_allclose(traced, eager, rtol=1e-6)


def test_a_changed_argument_is_changed_for_the_caller():
    w = app.to_tensor([2.0, 3.0], stop_gradient=False)

    def function(x, y):
        x[0] = w[1] * 5
        if y.sum() > 0:
            y += x
        return x

    for run in (function, to_static(function, backend="reference")):
        w.clear_grad()
        x, y = app.to_tensor([1.0, 1.0]), app.to_tensor([1.0, 2.0])
        assert run(x, y) is x
        np.testing.assert_array_equal(x.numpy(), [15.0, 1.0])
        np.testing.assert_array_equal(y.numpy(), [16.0, 3.0])
        (x * y).sum().backward()
        np.testing.assert_array_equal(w.grad.numpy(), [0.0, 5 * 16 + 5 * 15.0])


def test_a_captured_tensor_is_changed_through_a_view():
    w = app.to_tensor([[1.0, 2.0], [3.0, 4.0]])

    def function(x):
        row = w[0]
        row += x
        w[1][0] = 9.0
        return w.sum()

    run = to_static(function, backend="reference")
    assert [float(run(app.to_tensor([1.0, 1.0]))) for _ in range(2)] == [18.0, 20.0]
    np.testing.assert_array_equal(w.numpy(), [[3.0, 4.0], [9.0, 4.0]])


# Python's own containers and names


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
    to_static(function, backend="reference")(app.to_tensor([1.0]))
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
    found = to_static(with_globals, backend="reference")(app.to_tensor([1.0]))
    assert (float(found), TOTAL) == (7.0, 1)


def test_changes_by_a_failed_trace_for_any_batch_size_are_undone():
    seen, box = [], SimpleNamespace(count=0)

    def mean(x):
        seen.append(1)
        box.count += 1
        return x.sum() / x.shape[0]  # the size is needed, so the function is traced again for this size

    assert float(to_static(mean, backend="reference")(app.ones([3]))) == 1.0
    assert (seen, box.count) == ([1], 1)
