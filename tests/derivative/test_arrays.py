"""Gradients of functions on arrays with loops, derived from their source."""

from __future__ import annotations

import ast
import math
import re

import numpy as np
import pytest
from derivative.slopes_of_arrays import agrees, derived_of

from app.derivative.arrays import derive
from app.derivative.scope import UnderivableError
from app.functions import text_of_tree

RANDOM = np.random.default_rng(0)
X, M = RANDOM.uniform(0.4, 1.1, 5), RANDOM.uniform(0.2, 0.9, (4, 5))
PLACES = np.array([1, 3, 3, 0, 2])


def cumsum(x):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j]
            y[i, j] = total
    return y


def conv1d(x, w):
    n = x.shape[1] - w.shape[0] + 1
    y = np.empty((x.shape[0], n))
    for i in range(x.shape[0]):
        for k in range(n):
            acc = 0.0
            for t in range(w.shape[0]):
                acc += x[i, k + t] * w[t]
            y[i, k] = acc
    return y


def test_a_gradient_reads_as_if_it_was_written():
    assert derived_of(cumsum, M).source == (
        "def cumsum_gradient(x, dy):\n"
        "    dx = np.empty_like(x)\n"
        "    for i in range(x.shape[0]):\n"
        "        dtotal = 0.0\n"
        "        for j in range(x.shape[1] - 1, -1, -1):\n"
        "            dtotal += dy[i, j]\n"
        "            dx[i, j] = dtotal\n"
        "    return dx\n"
    )
    assert derived_of(conv1d, M, X[:3]).source == (
        "def conv1d_gradient(x, w, dy):\n"
        "    n = x.shape[1] - w.shape[0] + 1\n"
        "    dx = np.zeros_like(x)\n"
        "    dw = np.zeros_like(w)\n"
        "    for i in range(x.shape[0]):\n"
        "        for k in range(n):\n"
        "            dacc = dy[i, k]\n"
        "            for t in range(w.shape[0]):\n"
        "                dx[i, k + t] += dacc * w[t]\n"
        "                dw[t] += dacc * x[i, k + t]\n"
        "    return (dx, dw)\n"
    )


def recurrence(x):
    y = np.zeros_like(x)
    for t in range(1, x.shape[0]):
        y[t] = np.tanh(y[t - 1] + x[t])
    return y


def max_pool(x):
    y = np.empty((x.shape[0] // 2, x.shape[1] // 2))
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            best = -np.inf
            for p in range(2):
                for q in range(2):
                    best = max(best, x[2 * i + p, 2 * j + q])
            y[i, j] = best
    return y


def test_the_best_value_is_found_by_its_index():
    source = derived_of(max_pool, M).source
    assert "_at" not in source
    assert "dx[2 * i + best_p, 2 * j + best_q] += dy[i, j]" in source


def test_a_recurrence_has_no_record():
    assert "_at" not in derived_of(recurrence, X).source


def remarked(x):
    y = np.zeros(x.shape[0])  # a result is not needed
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):  # along the row
            total += x[i, j]  # a # in "text"
        y[i] = total * total
    return y


def test_comments_of_lines_that_are_kept_are_kept():
    source = derived_of(remarked, M).source
    assert '            total += x[i, j]  # a # in "text"\n' in source
    assert source.count("# along the row\n") == 1
    assert "a result" not in source


def best_dot(x, w):
    y = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        best = -np.inf
        for p in range(w.shape[0]):
            z = 0.0
            for j in range(x.shape[1]):
                z += x[i, j] * w[p, j]
            best = max(best, z)
        y[i] = best + 0.0 * z
    return y


def test_the_value_of_the_best_is_computed_again_after_the_search():
    source = derived_of(best_dot, M, M[::-1]).source
    assert "_at" not in source
    assert "dw[best_p, j] += " in source
    assert agrees(best_dot, M, M[::-1] * 0.7)


def weighted(x, w):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        for j in range(x.shape[1] - 5, x.shape[1] - 5 + i):
            y[i] += w[0] / w[1] * x[i, j]
    return y


def test_what_a_loop_does_not_change_is_computed_before_it_if_it_has_iterations():
    source = derived_of(weighted, M, X).source
    assert source.count("w[0] / w[1]") == 1
    assert agrees(weighted, M, X)
    zeros = derived_of(weighted, M, X).function(M[:1], np.zeros(2), np.ones(1))
    assert not any(gradient.any() for gradient in zeros)


def layers(x, w, v, a):
    y = np.zeros((x.shape[0], v.shape[0]))
    hidden = np.tanh(x @ w.T)
    y[:, :] = hidden @ v.T + v.T[0, 0]
    for i in range(x.shape[0]):
        part = a @ hidden
        y[i] += (w.T @ hidden[i] * part[0]).sum() + v @ hidden[i]
        hidden[i] = hidden[i] * a[i]
    return y


def test_products_of_matrices_stay_products():
    source = derived_of(layers, M, M[:2], M[:3, :2], X[: M.shape[0]]).source
    assert "dx += dt @ w\n" in source
    assert "dw += dt.T @ x\n" in source
    assert agrees(layers, M, M[:2], M[:3, :2], X[: M.shape[0]])


def softmax(x):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            y[i, j] = np.exp(x[i, j])
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] /= total
    return y


def reversed_products(x):
    return (x @ x.T)[::-1]


def first_rows(x):
    y = x * x
    return y[:2]


def a_row_of_products_that_changes(x):
    z = (x @ x.T)[1]
    z[0] = 2.0
    return z * z


def a_copy_of_the_first_rows(x):
    y = np.sin(x)
    z = y[:2].copy()
    z[0, 0] *= 3.0
    return z, y[1:]


@pytest.mark.parametrize(
    "function", [reversed_products, first_rows, a_row_of_products_that_changes, a_copy_of_the_first_rows]
)
def test_a_part_of_an_array_is_not_taken_for_the_whole(function):
    assert agrees(function, M)


def test_an_array_of_which_each_iteration_uses_a_row_has_the_size_of_a_row():
    source = derive(softmax, M).source
    assert re.findall(r"(\w+) = np\.(?:empty|zeros)\(\w+\.shape\[1\], ", source) == ["y", "dy_left"]
    assert re.findall(r"np\.(?:empty|zeros|copy)[a-z_]*\([^)]*\)", source)[2:] == ["np.empty_like(x)"]
    assert agrees(softmax, M)


def shifted(x):
    y, z = np.empty_like(x), np.zeros_like(x)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
    for i in range(x.shape[0] - 1):
        z[i] = y[i + 1] * y[i]
    for i in range(x.shape[0] - 1):
        z[i + 1] += z[i] * x[i]
    return z


def branched(x, w):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        if x[i] > w[0]:
            y[i] = x[i] * w[0]
        elif x[i] > w[1]:
            y[i] = x[i] + w[1]
        t = y[i] * w[2]
        if x[i] > w[0]:
            t = t * t
        y[i] += t
    return y


def rows_and_columns(x):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i] += x[i, j] * x[i, -1 - j]
    for j in range(x.shape[1]):
        for i in range(x.shape[0]):
            y[i] += x[i, j] ** 2 * x[i - 1, j]
    return y


@pytest.mark.parametrize(
    ("function", "arguments"),
    [(shifted, (X,)), (branched, (X, np.array([0.9, 0.6, 0.3]))), (rows_and_columns, (M,))],
)
def test_loops_and_branches_that_depend_on_each_other_stay_in_order(function, arguments):
    assert agrees(function, *arguments)


def scaled_sums(x, w, place):
    y = np.zeros(1)
    for i in range(x.shape[0]):
        y[0] += w[place] * w[place]
        for j in range(x.shape[1]):
            y[0] += x[i, j] * w[place]
    return y


def test_a_sum_in_a_number_counts_without_iterations_of_an_inner_loop_and_touches_nothing_without_any():
    gradient = derived_of(scaled_sums, M, X, 0).function
    _, dw = gradient(M[:, :0], X, np.ones(1), 2)
    assert dw.tolist() == [0, 0, pytest.approx(2 * len(M) * X[2]), 0, 0]
    dx, dw = gradient(M[:0], X, np.ones(1), 7)  # no element 7 exists
    assert not dw.any()
    assert dx.shape == (0, 5)


def compared(x):
    half, y = np.empty_like(x), np.zeros_like(x)
    for i in range(x.shape[0]):
        half[i] = x[i] / 3
        if half[i] == x[i] / 3:
            y[i] = x[i] * x[i]
        else:
            y[i] = x[i]
    return y


def counted_up(x):
    total, y = np.zeros(1, x.dtype), np.zeros_like(x)
    for i in range(x.shape[0]):
        total[0] += x[i] * 0.1
    for i in range(x.shape[0]):
        if total[0] * 1.0 > x[0]:
            y[i] = x[i] * x[i]
    return y


def test_a_sum_that_decides_is_rounded_as_its_array_was():
    x = np.full(10, 0.3, "float32")
    gradient = derived_of(counted_up, x).function
    for first in (np.nextafter(x[0], np.float32(0)), x[0], np.nextafter(x[0], np.float32(1))):
        x[0] = first
        assert np.array_equal(gradient(x, np.ones_like(x)) > 0, counted_up(x) > 0)


def test_a_number_that_decides_is_rounded_as_its_array_was():
    x = X.astype("float32")
    y = compared(x)
    gradient = derived_of(compared, x).function(x, np.ones_like(x))
    assert np.allclose(gradient, np.where(y == x, 1, 2 * x))


def test_values_that_nothing_reads_are_neither_stored_nor_recorded():
    source = derived_of(softmax, M).source
    assert "_at" not in source
    assert "/= total" not in source


def filled_in_part(x):
    y = np.zeros_like(x)
    buffer = np.ones(x.shape[1])
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            buffer[j] = buffer[j - 1] * np.sin(x[i, j]) + buffer[0]
        buffer[0] = buffer[x.shape[1] - 1] * x[i, 0]
        for j in range(x.shape[1]):
            y[i, j] = buffer[j] * buffer[j]
    return y


def filled_by_neighbours(x):
    y = np.zeros_like(x)
    buffer = np.ones(x.shape[1])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            buffer[j] = np.sin(x[i, j]) + 0.5 * buffer[j - 1]
        for j in range(x.shape[1]):
            y[i, j] = buffer[j] ** 2
    return y


def best_of_what_is_changed(x):
    y = np.zeros(x.shape[0])
    buffer = np.empty(x.shape[1])
    for i in range(x.shape[0]):
        best = -np.inf
        for j in range(x.shape[1]):
            buffer[j] = np.sin(x[i, j])
            best = max(best, buffer[j])
            buffer[j] *= 0.5
        for j in range(x.shape[1]):
            y[i] += buffer[j] * best
    return y


def wraps_around(x):
    y = x.copy()
    for t in range(x.shape[0]):
        y[t] = np.sin(y[t - 1])
    return y


def unknown_places(x, p):
    y = x.copy()
    for k in range(p.shape[0]):
        y[p[k]] = y[p[k]] * y[p[k] - 1]
    return y


def reads_itself_while_adding(x, p):
    y = x * 0.5
    y[p[0]] += np.sin(y[p[1]]) * y[p[0]]
    return y


def carries_a_number(x):
    s = 1.0
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(i + 1):
            s = s * np.cos(x[j]) + x[i]
            if s > 1.5:
                s = s * 0.5
        y[i] = s * s
    return y


def reuses_a_buffer(x):
    t = np.empty(x.shape[1])
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            t[j] = np.sin(x[i, j])
        for j in range(1, x.shape[1]):
            t[j] = t[j] * t[j - 1]
        for j in range(x.shape[1]):
            y[i] += t[j] * t[j]
    return y


def fills_an_array_in_each_iteration(x):
    state = x * 1.0
    for _ in range(3):
        step = np.zeros_like(x)
        for i in range(x.shape[0]):
            before = state[i]
            state[i] = 0.0
            state[i] += before * 0.5 + x[i]
            step[i] += state[i]
        for i in range(x.shape[0]):
            state[i] += step[i] * step[0]
    return state


def view_is_written_to(x):
    y = x.copy()
    row = y[0]
    y[0] = y[1] * y[1]
    row[1] = row[2] * 3.0
    y[2] = row * row
    return y


def another_name_is_written_to(x):
    y = x.copy()
    z = y
    z[0] = z[1] * z[2]
    return y * y


def moves_a_section(x):
    y = x.copy()
    y[1:] = y[:-1] * y[1:]
    return y


def last_of_a_descending_loop(x):
    e = 0.0
    for i in range(2, -1, -1):
        e = x[i]
    y = np.zeros(2)
    y[0] = e * e
    y[1] = e * x[3]
    return y


def counts_first(x):
    a = x[0]
    y = x.copy()
    n = 0
    while a < 2.5 and n < 9:
        a = a * 1.3 + 0.1 * y[n % 3]
        y[n % 3] = np.sin(y[n % 3]) * a
        n += 1
    return y * a


def stores_while_it_counts(x):
    z = x * 0.4
    a = 0.3
    y = np.full((5, 5), 0.3)
    for i in range(3):
        y[i, 1] = np.sin(z[2] - x[i])
    for _ in range(2):
        q = 0
        while q < 2 and a < 1.7:
            z[2] = x[1] * z[2]
            q += 1
    return y * z


def multiplies_rows_while_it_counts(x):
    y = x.copy()
    q = 0
    while q < 2:
        y = y * np.sin(x[:, 1])[:, None]
        q += 1
    return y


def sigmoid(v):
    if v >= 0:
        return 1 / (1 + math.exp(-v))
    e = math.exp(v)
    return e / (1 + e)


def fill(row, value):
    for j in range(row.shape[0]):
        row[j] = value * row[j] * j


def calls_helpers(x):
    y = x.copy()
    for i in range(x.shape[0]):
        fill(y[i], sigmoid(x[i, 0]))
    return y


def two_results(x, w):
    low = np.empty_like(x)
    best = 0.0
    for i in range(x.shape[0]):
        low[i] = np.tanh(x[i] * w[i])
        best += low[i] ** 2
    return low, best


def whole_arrays(x, w):
    centred = x - x.mean(axis=0)
    e = np.exp(centred - centred.max(axis=1)[:, None])
    y = e / e.sum(axis=1, keepdims=True)
    return y * w @ np.outer(w, w)


def gathers_and_scatters(x, p):
    y = np.zeros(4)
    rows = x[p]
    for i in range(p.shape[0]):
        y[p[i]] += rows[i] * rows[i]
    return y


def strides(x, by=2):
    y = np.zeros(x.shape[0])
    for i in range(1, x.shape[0], by):
        y[i] = x[i] * y[i - 1] + x[i - 1] ** 2
    for i in range(x.shape[0] - 1, 0, -2):
        y[i] *= y[i - 1] + x[i]
    return y


def reverses_sums(x):
    totals = x.sum(axis=0)[::-1]
    return x * totals


def sections_of_new_arrays(x):
    return (x * x).sum(axis=0)[1:], x.max(axis=1)[::-1]


def keeps_axes(x):
    total = x.sum(axis=1, keepdims=True)
    return x / total


VECTORS = [
    recurrence,
    wraps_around,
    carries_a_number,
    fills_an_array_in_each_iteration,
    another_name_is_written_to,
    moves_a_section,
    last_of_a_descending_loop,
    counts_first,
    stores_while_it_counts,
    strides,
]
MATRICES = [
    reverses_sums,
    sections_of_new_arrays,
    keeps_axes,
    filled_in_part,
    filled_by_neighbours,
    best_of_what_is_changed,
    reuses_a_buffer,
    view_is_written_to,
    multiplies_rows_while_it_counts,
    calls_helpers,
    max_pool,
]


TWICE = [
    recurrence,
    strides,
    carries_a_number,
    stores_while_it_counts,
    best_of_what_is_changed,
    reuses_a_buffer,
    max_pool,
]


@pytest.mark.parametrize("function", [*VECTORS, *MATRICES])
def test_gradients_are_right(function):
    assert agrees(function, X if function in VECTORS else M, orders=1)


@pytest.mark.parametrize(
    "function", [pytest.param(f, marks=() if f in TWICE else pytest.mark.soak) for f in (*VECTORS, *MATRICES)]
)
def test_gradients_are_right_to_second_order(function):
    assert agrees(function, X if function in VECTORS else M)


@pytest.mark.parametrize("function", [unknown_places, reads_itself_while_adding, gathers_and_scatters])
def test_indices_from_an_array_are_right(function):
    assert agrees(function, X, PLACES)


def counts_along_rows(x):
    numbers = np.square(x > 0.5)
    numbers *= 3
    return x * (x > 0.5).sum(axis=1)[:, None] * np.prod(x > 0.1, axis=1, keepdims=True) * numbers


def weighs_by_integers(x, p):
    mean, first, least = p.mean(keepdims=True), p[0].argmax(keepdims=True), p[::-1, 0].argmin()
    return x * p.mean(axis=1)[:, None] + x * p.sum(axis=1)[:, None] * mean + x[:, first[0]][:, None] + x[least]


def outer_of_integers(x, p):
    t = np.outer(p, x)
    t[0] *= 0.5
    return t * t


def stores_floats_as_truth_values(x):
    y = np.zeros(x.shape[0], np.bool_)
    y[:] = (x > 0.7) / 2
    return x * y


def test_a_float_in_an_array_of_truth_values_is_whether_it_differs_from_zero():
    assert agrees(stores_floats_as_truth_values, X)


def test_an_outer_product_with_integers_is_of_floats():
    assert agrees(outer_of_integers, X, PLACES)


def test_reductions_of_truth_values_and_integers_have_the_types_of_numpy():
    assert agrees(counts_along_rows, M)
    p = np.arange(20).reshape(4, 5)
    assert agrees(weighs_by_integers, M, p)
    assert agrees(weighs_by_integers, M, (p << 20).astype(np.int32))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint64"])
def test_integers_that_numba_makes_wider_are_refused(dtype):
    with pytest.raises(UnderivableError, match=f"{dtype}; numbers are floats"):
        derive(weighs_by_integers, M, np.zeros((4, 5), dtype))


def test_several_inputs_and_results_are_right():
    assert agrees(two_results, X, X[::-1].copy())
    assert agrees(whole_arrays, M, X)


SIGMOIDS = [
    lambda x: 1 / (1 + np.exp(-x)),
    lambda x: x / (1 + np.exp(-x)),
    lambda x: np.log(1 + np.exp(x)),
    lambda x: np.log1p(np.exp(x)),
    lambda x: 2 / (1 + np.exp(-2 * x)) - 1,
    lambda x: 1 - 2 / (np.exp(2 * x) + 1),
    lambda x: 1 / (np.exp(-x) + 1) ** 2,
    lambda x: x * np.tanh(np.log1p(np.exp(x))),
]


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value", "ignore:divide")
@pytest.mark.parametrize("function", SIGMOIDS)
def test_the_gradient_of_an_exponential_that_overflows_is_a_number(function):
    x = np.array([-1000.0, -3.0, 0.5, 3.0, 1000.0])
    first = derived_of(function, x)
    second = derived_of(first.function, x, x)
    gradient = first.function(x, np.ones(5))
    assert {*gradient[[0, -1]]} <= {0.0, 1.0}
    along_x, along_weight = second.function(x, np.ones(5), np.ones(5))
    assert along_x[[0, -1]].tolist() == [0.0, 0.0]
    assert np.array_equal(along_weight[[0, -1]], gradient[[0, -1]])
    assert agrees(function, x[1:-1])


def of_the_smaller(x):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        y[i] = 1 / (1 + np.exp(-min(x[i], 0.4)))
    return y


def test_an_exponent_may_call_a_function_of_numbers():
    assert agrees(of_the_smaller, X)


BELOW_ZERO = -0.42


def test_a_power_of_a_negative_number_is_written_with_parentheses():
    assert agrees(lambda x: x * (-0.42) ** 2 + x.sum(), X)
    assert agrees(lambda x: x * BELOW_ZERO**2 + x.sum(), X)
    assert text_of_tree(ast.BinOp(ast.Constant(-0.0), ast.Pow(), ast.Constant(2))) == "(-0.0) ** 2"


def changed_between(x):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        a = x[i]
        for _ in range(2):
            t = np.exp(a)
            a = a * 0.5
            y[i] += a / (1.0 + t)
        s = np.exp(y[i])
        y[i] = s / (2.0 - s * x[i])
    return y


def test_an_exponent_that_changes_counts_as_it_was():
    assert agrees(changed_between, X)


def test_a_size_of_one_where_more_is_expected_is_an_error_of_the_gradient():
    gradient = derived_of(lambda x, w: x * w, X, X).function
    assert np.array_equal(gradient(X, X, np.ones(5))[0], X)
    with pytest.raises(ValueError, match=r"test_arrays\.py:\d+: the sizes .* differ"):
        gradient(X, X[:1], np.ones(5))


def test_a_slice_beyond_the_end_is_an_error_of_the_gradient():
    gradient = derived_of(lambda x, k=3: x[:k] * 2.0, X, 3).function
    assert gradient(X, np.ones(3), 3).sum() == 6.0
    with pytest.raises(ValueError, match=r"test_arrays\.py:\d+: a slice lies outside"):
        gradient(X, np.ones(5), 7)


def test_a_setting_whose_integer_is_recorded_has_to_be_one():
    def function(x, a=1):
        y = np.zeros_like(x)
        s = a
        for i in range(x.shape[0]):
            y[i] = x[i] ** s
            s = s + a
        return y

    gradient = derived_of(function, X, 1).function
    assert agrees(function, X, 2, orders=1)
    with pytest.raises(ValueError, match="a is expected to be an integer"):
        gradient(X, np.ones(5), 0.5)


def changes_an_input(x):
    x[0] = 1.0
    return x * 2


def changes_an_input_in_a_helper(x):
    fill(x, 2.0)
    return x * 2


def sorts(x):
    return np.sort(x)


def returns_from_a_loop(x):
    for i in range(3):
        if x[i] > 0:
            return x * 2
    return x


def becomes_another_name(x):
    a = np.zeros_like(x)
    b = x.copy()
    for _ in range(3):
        a = b
        b[0] = a[0] * a[1]
    return a


def reads_a_variable_of_a_loop_after_it(x):
    y = x.copy()
    for i in range(3):
        y[i] = 0.0
    y[0] = x[i]
    return y


def makes_an_array_in_a_branch(x):
    if x[0] > 0:
        t = x * 2
    return t


def hides_a_function(x):
    max = 0.0
    return x * max


def adds_truth_values(x):
    return x * ((x > 0) + (x > 1))


def adds_products_of_truth_values(x):
    return x * ((x > 0) * (x > 1) + (x > 0) * (x < 2))


def adds_lists_of_truth_values(x):
    both = np.array([x[0] > 0, x[1] > 0])
    return x[:2] * (both + both)


def adds_a_truth_value_to_others(x):
    count = x > 0
    count += x > 1
    return x * count


def multiplies_truth_values(x):
    return x * ((x > 0) @ (x > 1))


REFUSED = {
    adds_truth_values: "NumPy and Numba do differently",
    adds_products_of_truth_values: "NumPy and Numba do differently",
    adds_lists_of_truth_values: "NumPy and Numba do differently",
    adds_a_truth_value_to_others: "NumPy and Numba do differently",
    multiplies_truth_values: "NumPy and Numba do differently",
    changes_an_input: "write to a copy",
    changes_an_input_in_a_helper: "write to a copy",
    sorts: "write a loop",
    returns_from_a_loop: "return it at the end",
    becomes_another_name: r"write `\.copy\(\)`",
    reads_a_variable_of_a_loop_after_it: "variable of a loop before",
    makes_an_array_in_a_branch: "assigned in a branch",
    hides_a_function: "rename it",
}


@pytest.mark.parametrize("function", REFUSED)
def test_what_cannot_be_derived_is_refused_with_its_line_and_what_to_write(function):
    with pytest.raises(UnderivableError, match=REFUSED[function]) as caught:
        derive(function, X)
    assert re.match(r".*test_arrays\.py:\d+: `", str(caught.value))


def test_integers_alone_have_no_gradient():
    with pytest.raises(UnderivableError, match="no array of floating-point numbers"):
        derive(lambda p: p * 2, PLACES)


def makes_an_array_again(w, v):
    u = np.sin(w)
    for _ in range(3):
        for _ in range(len(v)):
            new = np.empty_like(u)
            for k in range(len(w)):
                new[k] = np.sin(u[k - 1] + np.min(np.tanh(v)))
            u = new * 0.9
    return u


def test_a_gradient_is_the_same_each_time_it_is_derived():
    arguments = [np.linspace(0.3, 1.0, 4), np.linspace(0.3, 1.0, 3)]
    sources, held = set(), []
    for count in range(5):
        held.append([object() for _ in range(37 * count)])  # so that statements lie elsewhere in memory
        sources.add(derive(makes_an_array_again, *arguments).source)
    assert len(sources) == 1
    assert agrees(makes_an_array_again, *arguments)
