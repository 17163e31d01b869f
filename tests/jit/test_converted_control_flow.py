"""Control flow and changes in place: converted functions give what they give eagerly, with the same gradients."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from modules_of_text import module_of_text

import app
from app.errors import ProgramError
from app.jit import to_static

ONES = np.ones((3, 2), "float32")
FUNCTIONS = """
from contextlib import suppress
from types import SimpleNamespace
import sys
import numpy as np
import app

def logic(x):
    if (x.sum() > 0 and not x.max() > 100) or x.min() < -50:
        y = x
    else:
        y = -x
    return y if y.sum() > 0 and y.sum() < 5 else y * 2

def lists_and_dicts(x):
    found = {"low": x, "all": [x, x]}
    if x.sum() > 0:
        found["low"] = x * 2
        found["all"].append(x * 3)
    else:
        found["all"].append(x * 4)
    return found["low"] + found["all"][2]

def lists_and_arrays(x):
    order, kept = [1.0, 2.0], np.ones(3, "float32")
    if x.sum() > 0:
        order.reverse()
        if order is None:
            kept = kept * 2
    return x * order[0] * float(kept[0])

def lists_that_a_branch_of_a_branch_makes(x):
    y = x
    if x.sum() > -50:
        if x.max() > 1:
            parts, named = [x, x], {"a": [x]}
        else:
            parts, named = [x, x * 2], {"a": [x * 3]}
        parts.append(x * 3)
        parts[0] = x * 5
        named["a"].append(parts[1])
        y = parts[0] + parts[1] + parts[2] + named["a"][1]
    return y

def first_by_none(x):
    best = None
    for i in range(2):
        best = x[i].sum() if best is None else app.maximum(best, x[i].sum())
        if best > 2:
            break
    return best * x

def exceptions_around_a_break(x):
    root = x * 0 + 2.0
    with suppress(Exception):
        for _ in range(9):
            if (root * root - 2.0).max() < 1e-6:
                break
            root = 0.5 * (root + 2.0 / root)
    try:
        for k in range(1, 5):
            if (x * k).sum() > 5:
                break
            root = root + k
    except Exception:
        root = root * 0
    return root * x

def numbers_that_do_not_change(x):
    count, kept, total = 0, {"n": 2, "sum": x * 0}, 0
    while count < x.max():
        kept["sum"] = kept["sum"] + x
        total = total + x * count
        count += 1
    return (kept["sum"] + total) * sum(range(kept["n"]))

def rows_of_a_list(x):
    s, n = x * 0, 0
    while n < 2:
        n += 1
    for k in [1.0, 2.0, 3.0]:
        s = s + x * k * n
        if s.sum() > 14:
            break
    return s

def break_that_a_tensor_decides_later(x):
    for k in range(4):
        if k > 0 and (x * k).sum() > 9:
            break
        x = x + k
    return x

def recursive(x, n=3):
    if n == 0:
        return x
    return recursive(x * n, n - 1) if x.sum() > -1e9 else x

def comprehensions(x):
    parts = [x * k if x.sum() > k else x for k in range(3)]
    return sum({k: (v if v.sum() > 0 else -v) for k, v in enumerate(parts)}.values())

def returns_out_of_other_statements(x):
    try:
        if x.sum() > 7:
            return x
        with app.no_grad():
            if x.max() > 2:
                return x * 2
    finally:
        x = x + 1
    match 1:
        case 1 if True:
            if x.sum() < 0:
                return -x
    return x * 3

def jumps_from_some_branches(x):
    total = x * 0
    for k in range(4):
        if x.sum() > -50:
            if (x * k).sum() > 14:
                break
            if (x * k).sum() < -5:
                continue
            y = x * k
        else:
            y = x - 1
        total = total + y
    else:
        total = total * 2
    return total

def else_of_a_loop_that_jumps(x):
    total = x * 0
    for k in range(3):
        for j in range(3):
            if (x * j).sum() > 100:
                total = total + 1
            else:
                total = total + 2
        else:
            if x.sum() * k > 5:
                break
            total = total * 2
    return total

def names_in_a_condition(x):
    i = 0
    while (y := x * 0 + i).sum() < 19:
        i += 1
        x = x * 1.5 + y
    return x * i + y

def views_of_what_a_branch_changes(x):
    y = x * 1
    if x.sum() > 0:
        y.add_(1.0)
        first = y[:1]
    else:
        first = y[:1] * 2
    return first + y

def generator(x):
    def parts():
        for k in range(4):
            if k == 1:
                continue
            yield x * k
            if k > 1:
                return

    return sum(parts()) if x.sum() > 0 else x

class Scaled:
    factor = 3.0

    def __call__(self, x):
        return x * self.factor if x.sum() > 0 else x

scaled = Scaled()

def callable_object(x):
    return scaled(x) + 1

def deleted_name(x):
    y = x
    if x.sum() > 0:
        z = y * 2
        y = z + 1
        del z
    return y

def by_none(x, other=None):
    if x.sum() > 100 or other is None or other > 1:
        return x * 2
    return x

def breaks_and_returns(x):
    for k in [1.0, 2.0, 3.0]:
        if x.sum() > 100 and k:
            break
        if not (x.sum() > -1 or k > 1):
            return x * 7
        x = x * k
    known = x.sum() > 5 and x.max() < 200
    return x * known + (None or x)

def names_of_patterns(x):
    n, first, others, rest, kept = 0.0, None, None, None, 0.0
    if x.shape[1] == 2:
        match [{"a": 2.0, "b": 3.0}, 4.0, 5.0]:
            case [{"a": n, **rest}, first, *others] as whole if n:
                kept = len(whole)
    if x.sum() > 0:
        match n:
            case float() as n:
                n = n + 1.0
    return x * n * kept + first * rest["b"] + others[0]

def with_an_index(x):
    large = x[x > 1]
    if x.sum() > 10 and large[0] > 1.5:
        return x * 2
    return x * 5

def empty_on_the_right(x):
    kept = x[x > 2]
    if (x > 2).any() and kept.max() > 2.5 and True:
        return x * kept.max()
    return x

def returns_a_text_early(x):
    def twice_or_thrice(x):
        if x.sum() > -50:
            if x.max() > 2:
                return x, "low"
            y = x * 2
            name = "low"
        else:
            y = x * 3
            name = "low"
        if name == "low":
            y = y + 1
        return y, name

    y, name = twice_or_thrice(x)
    return y * len(name)

# Changes in place

def set_first(values, number=7.0):
    values[0] = number

def changes_in_a_helper_in_a_branch(x):
    y = x * 2
    z = y
    if x.sum() > 0:
        set_first(y)
        w = z * 3
    else:
        w = z
    return y + z + w

def changes_in_a_loop(x):
    y, k, kept = x * 1, x.sum() * 0, x * 0
    alike = y
    while k < 3:
        alike.add_(x)
        kept[0] = kept[0] + y[1]
        k += 1
    return y * kept + k

def changes_of_a_value_that_a_branch_of_a_branch_sets(x):
    y = x * 1
    if x.sum() > 0:
        if x.max() > 1:
            y = y * 3
        y.add_(x)
    else:
        y = y - 1
    y.multiply_(2)
    return y

def changes_in_a_loop_under_a_branch(x):
    y = x * 1
    for k in range(3):
        if (x * k).sum() > 2:
            set_first(y, k)
            break
        y.multiply_(2)
    return y

def two_names_of_one_value(x):
    y = z = x * 1
    if x.sum() > 0:
        y = x * 2
        z = y
    y.add_(1)
    return z

def lists_with_two_names(x):
    items = other = [x, x * 2]
    if x.sum() > 0:
        items[0] = x * 3
        items = both = [x * 5, x * 7]
    else:
        items = both = [x, x * 3]
    first = other[0] + both[1]
    both[1] = items[0]
    while items[0].sum() < 50:
        other[1] = items[0] * 2
        items[:] = [items[0] * 2 + 50, items[1]]
    return items[0] + items[1] + other[0] + other[1] + first

class Fixed(tuple):
    def __new__(cls, *items):
        return super().__new__(cls, items)

def tuples_of_other_classes(x):
    version, fixed, pair = sys.version_info, Fixed(2.0, 3.0), (1.0, 2.0)
    same = pair
    if x.sum() > 0:
        x = x * fixed[1] * (version[0] > 2) * (same is pair)
    while x.sum() < 50:
        x = x * fixed[0] + 1 + (same is pair)
    return x

def returns_a_list_in_a_loop(x):
    def doubled(x):
        while x.sum() < 100:
            if x.max() > 5:
                return [x, {"a": x + 1}]
            x = x * 2 + 5
        return [x * 3, {"a": x}]

    first, second = doubled(x)
    return first + second["a"]

def numbers_that_widen_late(x):
    a, b = 0, 0
    while a < x.sum():
        b = a
        a = a + 0.5
    return x * b

def changes_of_a_list_in_a_dict_in_a_loop(x):
    held, count = {"a": x * 1, "b": [x * 2]}, 0
    inner = held["b"]
    while count < 2 + 0 * x.sum():
        held["a"] = held["a"] + 1
        inner[0] = inner[0] + held["a"]
        count += 1
    return held["a"] + held["b"][0] + inner[0]

def changes_of_an_item_of_a_tuple_with_two_names(x):
    pair = (x * 1, x * 2)
    kept = pair
    if x.sum() > 0:
        pair[0].add_(1.0)
        pair = (pair[1], pair[0])
    return pair[0] * 3 + pair[1] + kept[0] * 5 + kept[1]

def changes_that_an_inner_function_reads(x):
    def doubled():
        return y * 2
    y = x * 1
    if x.sum() > 0:
        y.add_(1.0)
        z = doubled()
    else:
        z = y
    return z + y

def changes_of_what_was_an_item(x):
    items = [x * 1]
    first = items[0]
    if x.sum() > 0:
        items[0] = first * 2
        first.add_(1.0)
    return items[0] + first

def changes_in_loops_of_loops(x):
    y, i = x * 1, 0
    while i < 3 + 0 * x.sum():
        j = 0
        while j < 2 + 0 * x.sum():
            y[j] = y[j] + i
            j += 1
        i += 1
    return y + i

def changes_of_parts(x):
    y = (x * 1).reshape([1, 6])  # nothing else is a view of this memory
    y[0, 1] = 5.0
    y[0] += 2.0
    y[0, 0] = x.sum()
    y.multiply_(2)
    return y

def changes_of_items_of_containers(x):
    parts = {"a": [x * 1, x * 2]}
    parts["a"][0][1] = 3.0
    if x.sum() > 0:
        parts["a"][1][0] = 4.0
    return parts["a"][0] + parts["a"][1]

def names_with_annotations(x):
    total: "Tensor" = x
    box = SimpleNamespace()
    steps: int
    if x.sum() > 0:
        steps: int = 2
        factor: float = 3.0
    else:
        steps: int = 1
        factor: float = 4.0
    while total.max() < 20 and total.max() > -20:
        total: "Tensor" = total * factor
    box.value: float = factor
    return total * steps + box.value

def a_function_named_super(x):
    def super():
        return SimpleNamespace(scaled=lambda x: x * 2)

    def inner(y):
        return super().scaled(y) if y.sum() > 0 else y
    return super().scaled(x) + inner(x)

def changes_of_an_attribute(x):
    box = SimpleNamespace(value=x * 1, count=0)
    box.value[0] = 2.0
    box.count += 2
    return box.value * box.count
"""
NAMES = re.findall(r"^def (\w+)\(x", FUNCTIONS, re.MULTILINE)


def values_and_gradients(function, array):
    x = app.to_tensor(array, stop_gradient=False)
    y = function(x)
    y.sum().backward()
    return y.numpy(), x.gradient()


def check_traced(function):
    """Traced, a function gives the values and gradients that it gives eagerly."""
    static = to_static(function, backend="reference")
    for scale in (1.0, -1.0, 3.0, 10.0, 200.0):
        pairs = (values_and_gradients(f, ONES * scale) for f in (function, static))
        for eager, traced in zip(*pairs, strict=True):
            np.testing.assert_allclose(traced, eager, rtol=1e-6)
    return static


@pytest.fixture(scope="module")
def functions() -> Any:
    return module_of_text(FUNCTIONS)


@pytest.mark.parametrize("name", NAMES)
def test_a_converted_function_gives_what_it_gives_eagerly(name: str, functions: Any):
    static = check_traced(getattr(functions, name))
    assert len(static.traces) == 1
    assert "_jit." in static.code


def test_a_range_to_a_tensor_is_a_loop_of_the_program():
    def powers(x, count):
        for k in range(count):
            x = x * 2 + k
        return x

    static = to_static(powers, backend="reference")
    for count in (0, 1, 5):
        result = static(app.to_tensor(ONES), app.to_tensor(count)).numpy()
        np.testing.assert_allclose(result, powers(app.to_tensor(ONES), count).numpy())
    assert len(static.traces) == 1
    assert [op.type for op in static.main_program.global_block().ops].count("while_loop") == 1


def test_names_of_arguments_and_parameters_may_look_generated():
    weight = app.create_parameter([3, 2], attr=app.ParamAttr(name="x_1", initializer=app.nn.initializer.Constant(2.0)))

    def grown(x, x_0):
        while x.sum() < 100:
            x = x * weight + x_0
        return x

    x, more = app.to_tensor(ONES), app.to_tensor(ONES * 5)
    result = to_static(grown, backend="reference")(x, more).numpy()
    np.testing.assert_array_equal(result, grown(x, more).numpy())


class Doubled(app.nn.Layer):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x * 5


class Counting(Doubled):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", app.to_tensor(0.0))
        self.__factor = 4.0

    def forward(self, x):
        self.count.add_(1 if x.sum() > 0 else 0)
        y = super().forward(x)
        if y.sum() > 3:
            y = super().forward(y * self.__factor)
        return self.helper(y)

    def helper(self, x):
        return x + 1 if x.sum() > 0 else x * 3


def test_attributes_methods_super_and_private_names_of_layers_are_converted():
    layer, static = Counting(), to_static(Counting(), backend="reference")
    for scale in (1.0, -1.0, 0.1):
        x = app.to_tensor(ONES * scale)
        np.testing.assert_allclose(static(x).numpy(), layer(x).numpy())
        assert float(static.count) == float(layer.count) > 0
    assert isinstance(static.count, app.Tensor)


def test_functions_of_python_take_traced_tensors():
    def function(x):
        whole = int(x.mean() * 10)
        assert isinstance(x, app.Tensor)
        return whole + float(x.sum()) + bool(x.max()) + abs(x).sum()

    static = to_static(function, backend="reference")
    x = app.to_tensor(ONES * 1.25)
    assert float(static(x)) == function(x)


def test_print_prints_at_each_call(capsys):
    def function(x):
        print("sum", x.sum())
        return x

    static = to_static(function, backend="reference")
    static(app.to_tensor(ONES))
    static(app.to_tensor(ONES * 2))
    assert capsys.readouterr().out.count("sum Tensor") == 2


def test_print_shows_the_values_in_lists_as_they_were(capsys):
    def function(x):
        held = [x.sum(), {"a": (x.detach().max(), 1)}]
        print(held, [2])
        held[0] = x
        return x

    for run in (to_static(function, backend="reference"), function):
        run(app.to_tensor(ONES, stop_gradient=False))
    traced, eager = capsys.readouterr().out.split("[2]\n")[:2]
    assert traced == eager


def test_a_traceback_shows_the_users_line():
    def function(x):
        if x.sum() > 0:
            x = x.nothing()  # this line
        return x

    with pytest.raises(AttributeError) as caught:
        to_static(function, backend="reference")(app.to_tensor(ONES))
    lines = [str(entry.statement) for entry in caught.traceback]
    assert any("# this line" in line for line in lines)


def chosen(c: Any, a: Any, b: Any) -> Any:
    if c:
        b = a
    return b


def added(n: Any, x: Any, d: Any) -> Any:
    for _ in range(n):
        x = x + d
    return x


@pytest.mark.parametrize(("function", "first"), [(chosen, False), (added, 2)])
@pytest.mark.parametrize(("narrow", "number", "dtype"), [("float32", 1e300, "float64"), ("int64", 0.5, "float32")])
def test_a_value_of_two_types_has_the_wider_one(function: Any, first: Any, narrow: str, number: float, dtype: str):
    arguments = [app.to_tensor(first), app.ones([1], narrow), app.full([1], number, dtype)]
    result = to_static(function, backend="reference")(*arguments)
    assert (result.dtype, result.tolist()) == (dtype, function(*arguments).tolist())


def chosen_number(x):
    return x * (0.1 if x.sum() > 0 else 1e-300)


def added_numbers(x):
    total = 0.0
    while x.max() < 100:
        x, total = x * 2, total + 0.1
    return x * total


@pytest.mark.parametrize("function", [chosen_number, added_numbers])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_numbers_keep_their_digits_with_tensors_of_float64(function, sign):
    x = app.to_tensor([1.0, 3.0 * sign], dtype="float64")
    result, expected = (run(x).numpy() for run in (to_static(function, backend="reference"), function))
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("number", [1e300, 2**24 + 1])
def test_a_number_too_large_for_the_tensor_of_the_other_branch_is_an_error(number):
    with pytest.raises(ProgramError, match=rf"the number {re.escape(str(number))} is too large for float32"):
        to_static(chosen)(app.to_tensor(True), app.ones([1]), number)


# Deep control flow

TICKS = [itertools.count()]
"""Counts runs of the innermost body; Python's own containers would be restored when a body is traced again."""


def written(lines: list[str]) -> Any:
    """The function `f` with this source."""
    return module_of_text("\n".join(lines) + "\n", next_tick=lambda: next(TICKS[0])).f


def guard_clauses(depth: int) -> list[str]:
    clause = "    if x.sum() > {}:\n        next_tick()\n        return x * {}\n    x = x + 1"
    return ["def f(x):", *(clause.format(100 - k, k) for k in range(depth)), "    return x"]


def nested(opening: str, inside: str = "x = x + 1", closing: str = "") -> Callable[[int], list[str]]:
    """A function with one statement inside another; what is written after the body may begin an `else`, too."""

    def indented(text: str, k: int, depth: int) -> list[str]:
        return ["    " * (k + 1) + line.format(k=k, left=depth - k) for line in text.splitlines()]

    def lines(depth: int) -> list[str]:
        opened = [indented(opening, k, depth) for k in range(depth)]
        closed = [indented(closing, k, depth) for k in reversed(range(depth))]
        innermost = indented(f"next_tick()\n{inside}", depth, depth)
        return ["def f(x):", *itertools.chain(*opened, innermost, *closed), "    return x"]

    return lines


RETURN_AFTER = "    x = x + {k}\n    if x.max() > {k} + 20:\n        return x * {k}"
FORMS = {
    "nested ranges": (nested("for i{k} in range(3):\n    if x.max() > 50 - {k}:\n        break"), 6),
    "guard clauses": (guard_clauses, 8),
    "nested returns": (nested("if x.sum() > {k}:", "if x.max() > 9:\n    return x * 100", RETURN_AFTER), 8),
    "nested ifs": (nested("if x.sum() > {k}:", "x = x * 2", "else:\n    x = x - {k} - 1"), 8),
    "nested whiles": (nested("i{k} = 0\nwhile i{k} < 2 + 0 * x.sum():\n    i{k} = i{k} + 1"), 6),
    "nested breaks": (nested("while x.sum() < 10 * {left}:\n    if x.max() > 50:\n        break\n    x = x + 1"), 6),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_converted_source_grows_linearly_with_the_depth(form: str) -> None:
    make, deepest = FORMS[form]
    sizes = [len(to_static(written(make(depth))).code.split()) for depth in (2, 3, deepest - 1, deepest)]
    assert sizes[3] - sizes[2] <= 2 * (sizes[1] - sizes[0]), sizes


@pytest.mark.parametrize("form", FORMS)
def test_a_body_is_traced_once_and_at_most_twice_for_each_range_around_it(form: str) -> None:
    depth = 3
    TICKS[0] = itertools.count()
    f = to_static(written(FORMS[form][0](depth)), backend="reference")
    f(app.to_tensor(np.ones(2, "float32")))
    assert next(TICKS[0]) == {"nested ranges": 2**depth, "guard clauses": depth}.get(form, 1)


@pytest.mark.parametrize("form", FORMS)
def test_a_deep_function_gives_what_it_gives_eagerly(form: str) -> None:
    check_traced(written(FORMS[form][0](3)))
