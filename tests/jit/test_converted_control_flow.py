"""Control flow over Tensors: converted functions give what they give eagerly, with the same gradients."""

# ruff: noqa: SIM108 - an if is what is tested
from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import app
from app.errors import ProgramError
from app.jit import to_static

ONES = np.ones((3, 2), "float32")


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


def objects_inside_objects(x):
    order, outer, kept = [1.0, 2.0], SimpleNamespace(inner=SimpleNamespace(count=1)), np.ones(3, "float32")
    if x.sum() > 0:
        order.reverse()
        outer.inner.count = 5
        if order is None:
            kept = kept * 2
    return x * order[0] * outer.inner.count * float(kept[0])


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


def returns_out_of_two_loops(x):
    for i in range(3):
        for j in range(3):
            if (x * (i * 3 + j)).sum() > 20:
                return x * (i * 3 + j)
    return x * 100


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


def returns_from_some_branches_alike(x):
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
    def __init__(self):
        self.factor = 3.0

    def __call__(self, x):
        return x * self.factor if x.sum() > 0 else x


SCALED = Scaled()


def callable_object(x):
    return SCALED(x) + 1


def deleted_name(x):
    y = x
    if x.sum() > 0:
        z = y * 2
        y = z + 1
        del z
    return y


FUNCTIONS = [
    logic, lists_and_dicts, objects_inside_objects, rows_of_a_list, break_that_a_tensor_decides_later,
    returns_out_of_two_loops, recursive, comprehensions, returns_out_of_other_statements, jumps_from_some_branches,
    else_of_a_loop_that_jumps, names_in_a_condition, views_of_what_a_branch_changes, generator, callable_object,
    deleted_name,
]  # fmt: skip


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


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_converted_function_gives_what_it_gives_eagerly(function):
    static = check_traced(function)
    assert len(static.traces) == 1
    assert "_jit." in static.code


def test_a_value_that_is_no_tensor_may_be_returned_early():
    static = to_static(returns_from_some_branches_alike, backend="reference")
    for scale in (1.0, 3.0, -100.0):
        found, expected = (f(app.to_tensor(ONES * scale)) for f in (static, returns_from_some_branches_alike))
        np.testing.assert_allclose(found[0].numpy(), expected[0].numpy())
        assert found[1] == expected[1]


def powers(x, count):
    out = x
    for k in range(count):
        out = out * 2 + k
    return out


def test_a_range_to_a_tensor_is_a_loop_of_the_program():
    static = to_static(powers, backend="reference")
    for count in (0, 1, 5):
        found = static(app.to_tensor(ONES), app.to_tensor(count)).numpy()
        np.testing.assert_allclose(found, powers(app.to_tensor(ONES), count).numpy())
    assert len(static.traces) == 1
    assert [op.type for op in static.main_program.global_block().ops].count("while_loop") == 1


class Doubled(app.nn.Layer):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x * 5


class Hidden(Doubled):
    def __init__(self):
        super().__init__()
        self.__factor = 4.0

    def forward(self, x):
        y = super().forward(x)
        if y.sum() > 3:
            y = super().forward(y * self.__factor)
        return y


def test_super_and_private_names_are_those_of_the_class():
    static = to_static(Hidden(), backend="reference")
    for scale in (1.0, -1.0, 0.1):
        x = app.to_tensor(ONES * scale)
        np.testing.assert_allclose(static(x).numpy(), Hidden()(x).numpy())


class Counting(app.nn.Layer):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", app.to_tensor(0.0))
        self.low = app.to_tensor([1.0])

    def forward(self, x):
        if x.sum() > 0:
            self.count = self.count + 1
        return self.helper(x)

    def helper(self, x):
        return x * 2 if x.sum() > 0 else x * 3


def test_attributes_and_methods_of_layers_are_converted():
    layer = to_static(Counting(), backend="reference")
    for scale, count in ((1.0, 1), (-1.0, 1), (2.0, 2)):
        y = layer(app.to_tensor(ONES * scale))
        np.testing.assert_allclose(y.numpy(), ONES * scale * (2 if scale > 0 else 3))
        assert float(layer.count) == count
    assert isinstance(layer.count, app.Tensor)


def test_functions_of_python_take_tensors():
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


def test_a_traceback_shows_the_users_line():
    def function(x):
        if x.sum() > 0:
            y = x * 2
        else:
            y = x.nothing()  # this line
        return y

    with pytest.raises(AttributeError) as caught:
        to_static(function, backend="reference")(app.to_tensor(ONES))
    lines = [str(entry.statement) for entry in caught.traceback]
    assert any("# this line" in line for line in lines)


def chosen(c: Any, a: Any, b: Any) -> Any:
    if c:
        z = a
    else:
        z = b
    return z


def added(n: Any, x: Any, d: Any) -> Any:
    for _ in range(n):
        x = x + d
    return x


@pytest.mark.parametrize(
    ("function", "first", "x", "d", "dtype"),
    [
        (chosen, False, np.ones(1, "float32"), np.full(1, 1e300), "float64"),
        (chosen, False, np.ones(1, "int64"), np.full(1, 0.5, "float32"), "float32"),
        (added, 2, np.ones(1, "float32"), np.full(1, 1e300), "float64"),
        (added, 2, np.ones(1, "int64"), np.full(1, 0.5, "float32"), "float32"),
    ],
)
def test_a_value_of_two_types_has_the_wider_one(function: Any, first: Any, x: Any, d: Any, dtype: str):
    given = [app.to_tensor(first), app.to_tensor(x), app.to_tensor(d)]
    found = to_static(function, backend="reference")(*given)
    assert (found.dtype, found.tolist()) == (dtype, function(*given).tolist())


def test_a_number_too_large_for_the_tensor_of_the_other_branch_is_an_error():
    with pytest.raises(ProgramError, match=r"the number 1e\+300 is too large for float32"):
        to_static(chosen)(app.to_tensor(True), app.ones([1]), 1e300)


# Deep control flow

TICKS = [itertools.count()]
"""Counts runs of the innermost body; Python's own containers would be restored when a body is traced again."""


def written(lines: list[str]) -> Any:
    """The function `f` with this source, which can be read."""
    file, text = f"<{abs(hash(tuple(lines)))}>", [line + "\n" for line in lines]
    linecache.cache[file] = len(text), None, text, file
    known: dict[str, Any] = {"next_tick": lambda: next(TICKS[0])}
    exec(compile("".join(text), file, "exec"), known)
    return known["f"]


def guard_clauses(depth: int) -> list[str]:
    body = [
        [f"    if x.sum() > {100 - k}:", "        next_tick()", f"        return x * {k}", "    x = x + 1"]
        for k in range(depth)
    ]
    return ["def f(x):", *itertools.chain(*body), "    return x"]


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
    "guard clauses": (guard_clauses, 12),
    "nested returns": (nested("if x.sum() > {k}:", "if x.max() > 9:\n    return x * 100", RETURN_AFTER), 12),
    "nested ifs": (nested("if x.sum() > {k}:", "x = x * 2", "else:\n    x = x - {k} - 1"), 12),
    "nested whiles": (nested("i{k} = 0\nwhile i{k} < 2 + 0 * x.sum():\n    i{k} = i{k} + 1"), 6),
    "nested breaks": (
        nested("while x.sum() < 10 * {left}:\n    if x.max() > 50:\n        break\n    x = x + 1"),
        6,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_converted_source_grows_linearly_with_the_depth(form: str) -> None:
    make, deepest = FORMS[form]
    depths = range(2, deepest + 1)
    words = [len(to_static(written(make(depth))).code.split()) for depth in depths]
    steps = [after - before for before, after in itertools.pairwise(words)]
    assert max(steps) <= 2 * steps[0], (words, steps)


@pytest.mark.parametrize("form", FORMS)
def test_the_innermost_body_is_traced_a_number_of_times_linear_in_the_depth(form: str) -> None:
    make, deepest = FORMS[form]
    for depth in (2, min(deepest, 5)):
        TICKS[0] = itertools.count()
        f = to_static(written(make(depth)), backend="reference")
        f(app.to_tensor(np.ones(2, "float32")))
        assert 0 < next(TICKS[0]) <= 2 * depth + 2


@pytest.mark.parametrize("form", FORMS)
def test_a_deep_function_gives_what_it_gives_eagerly(form: str) -> None:
    check_traced(written(FORMS[form][0](3)))
