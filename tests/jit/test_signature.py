"""When a function is traced again: the kinds of its arguments, and the global and outer values that it reads."""

from __future__ import annotations

import functools
from collections import defaultdict, deque
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from jit.traces import static, tensor
from modules_of_text import module_of_text

import app
from app.errors import ProgramError, ShapeError
from app.jit import to_static
from app.static import InputSpec


def times(x, factor):
    return x * factor


def test_there_is_a_trace_for_each_shape_unless_an_input_spec_leaves_a_size_open():
    f, g = static(), static(input_spec=[InputSpec([None, 3])])
    for rows in (4, 2, 7, 4):
        for each in (f, g):
            assert each(tensor(rows, 3)).shape == [rows, 3]
    assert [len(each.traces) for each in (f, g)] == [3, 1]
    assert g.main_program.global_block().var("x").shape == (-1, 3)


def mean_of_rows(x):
    return x.sum() / x.shape[0]


def times_rows(x):
    return x * 2 if x.shape[0] == 1 else x * 3


@pytest.mark.parametrize("function", [mean_of_rows, times_rows])
def test_an_open_size_cannot_be_used_as_a_number(function):
    for rows in (1, 3):
        x = tensor(rows, 3)
        assert static(function)(x).tolist() == function(x).tolist()
    with pytest.raises(ShapeError, match=r"known only when the Program runs.*\n  at test_signature.py:\d+"):
        static(function, input_spec=[InputSpec([None, 3])])(x)


def with_numbers_of_rows(x):
    for number, row in enumerate(x):
        x = x + row * number
    return x


def test_an_open_length_is_an_error_that_says_what_to_write():
    with pytest.raises(
        ShapeError, match=r"use opsmith.shape\(x\)\[0\].*`for row in x`\n  at test_signature.py:\d+: for"
    ):
        static(with_numbers_of_rows, input_spec=[InputSpec([None, 3])])(tensor(2, 3))


def test_the_number_of_elements_is_a_number_or_a_value():
    def function(x):
        return x * x.numel() if x.size > 4 else x

    assert len(static(function)(tensor(2, 3)).shape) == 2
    traced = static(function, input_spec=[InputSpec([None, 3])])
    for rows in (1, 2, 3):
        x = tensor(rows, 3)
        assert traced(x).tolist() == static(function)(x).tolist() == function(x).tolist()
    assert len(traced.traces) == 1


def test_arguments_and_results_may_be_nested():
    def nested(pair, *, scale=1.0, names=()):
        first, second = pair["a"]
        return {"sum": [first + second, scale], "names": names, "none": None, "same": first}

    x, y = tensor(2), tensor(2, value=3.0)
    result = static(nested)({"a": (x, y)}, scale=2.0, names=["p"])
    np.testing.assert_array_equal(result["sum"][0].numpy(), [4.0, 4.0])
    assert (result["sum"][1], result["names"], result["none"]) == (2.0, ["p"], None)
    assert result["same"] is x


def test_traces_are_bounded_and_many_of_them_are_a_warning():
    f = static(lambda x, k: x * k)
    for k in range(40):
        with pytest.warns(UserWarning, match="traced for the 8th time") if k == 7 else nullcontext() as warned:
            assert float(f(tensor(1), k)) == k
        if warned:
            assert warned[0].filename == __file__
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


def times_keys(numbers):
    (pair,) = numbers.items()
    return pair[0] * pair[1]


@pytest.mark.parametrize(("first", "second"), [(1, True), (1, 1.0), (0.0, -0.0)])
def test_keys_of_dicts_are_told_apart_exactly(first, second):
    f = static(times_keys)
    for k in (first, second):
        result, expected = (run({k: app.ones([1], "int64") * 3}).numpy() for run in (f, times_keys))
        assert (result.dtype, result.tobytes()) == (expected.dtype, expected.tobytes())


@pytest.mark.parametrize("value", [{1}, frozenset({1}), bytearray(b"a")], ids=lambda value: type(value).__name__)
def test_other_containers_are_refused(value):
    with pytest.raises(app.errors.ProgramError, match=f"found a {type(value).__name__} "):
        static(lambda value: tensor(1))(value=value)


class Level(int):
    """A number with an attribute."""

    def __new__(cls, factor):
        level = super().__new__(cls, 1)
        level.factor = factor
        return level


class Listed(list):
    pass


def test_a_number_of_a_class_of_its_own_is_an_object_with_its_class_and_its_attributes():
    f, twice = static(lambda x, held: x * held.factor), Level(3.0)
    assert [float(f(tensor(1), held)) for held in (Level(2.0), twice, twice)] == [2.0, 3.0, 3.0]
    assert len(f.traces) == 2


@pytest.mark.parametrize("held", [np.ones(1), deque([1]), Listed([1]), defaultdict(int), [deque([tensor(1)])]])
def test_arrays_and_containers_that_are_no_lists_tuples_and_dicts_are_refused_as_arguments(held):
    with pytest.raises(ProgramError, match=r"found a (ndarray|deque|Listed|defaultdict) \(argument 0\); pass a Tensor"):
        static()(held)


def test_a_wrapper_gets_its_keyword_arguments_by_keyword():
    @functools.wraps(times)
    def scaled(*args, **kwargs):
        return times(*args, **{name: 3 * value for name, value in kwargs.items()})

    for function in (scaled, static(scaled)):
        assert [float(function(tensor(1), factor=tensor(1))), float(function(tensor(1), tensor(1)))] == [3.0, 1.0]


def test_the_default_type_is_part_of_the_signature():
    f = static(lambda x: (x * 2, app.ones([2])))
    assert f(tensor(1))[1].dtype == "float32"
    app.set_default_dtype("float64")
    try:
        assert f(tensor(1))[1].dtype == "float64"
    finally:
        app.set_default_dtype("float32")


def test_arguments_must_fit_the_input_specs():
    f = static(input_spec=[InputSpec([None, 3], "float32")])
    assert f.main_program.global_block().var("x").shape == (-1, 3)  # traced without a call
    assert f(tensor(2, 3)).shape == [2, 3]
    for wrong in (tensor(2, 4), tensor(2, 3).astype("float64")):
        with pytest.raises(ShapeError, match="InputSpec"):
            f(wrong)
    g = static(input_spec=[InputSpec([None, None], "float32")])
    assert [g(tensor(*sizes)).shape for sizes in ((2, 3), (4, 5), (2, 3))] == [[2, 3], [4, 5], [2, 3]]
    assert len(g.traces) == 1
    with pytest.raises(ProgramError, match="has 1 InputSpecs, but was called with 2 values"):
        to_static(lambda x, y: x + y, input_spec=[InputSpec([2, 3])])(tensor(2, 3), tensor(2, 3))


READING = """
import app

weight, net, table, number = app.to_tensor([2.0]), app.nn.ReLU(), {"a": app.to_tensor([1.0])}, 1.0

def scaled(x):
    return x * weight

class Doubled(app.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return x * 2

def step(x):
    return Doubled.apply(net(scaled(x))) * table["a"] * number

def outer(k):
    def inner(x):
        return x * k + scaled(x)

    def change(other):
        nonlocal k
        k = other

    return inner, change
"""
"""A module whose names are given other values, as by a cell of a notebook that is run again."""


def test_a_name_that_stands_for_something_else_is_traced_again():
    module = module_of_text(READING)
    other = SimpleNamespace(apply=lambda x: x * 3)
    step, x = static(module.step), app.to_tensor([-1.0, 1.0])
    (inner, change) = module.outer(app.to_tensor([1.0]))
    inner = static(inner)
    assert (step(x).tolist(), inner(x).tolist()) == ([0, 4], [-3, 3])
    for name, value, result in (
        ("weight", app.to_tensor([5.0]), [0, 10]),
        ("net", app.nn.LeakyReLU(1.0), [-10, 10]),
        ("scaled", lambda x: x * 7, [-14, 14]),
        ("Doubled", other, [-21, 21]),
        ("table", {"a": app.to_tensor([2.0])}, [-42, 42]),
    ):
        setattr(module, name, value)
        assert step(x).tolist() == module.step(x).tolist() == result
    module.number = 5.0  # a constant of the trace
    assert (step(x).tolist(), len(step.traces)) == ([-42, 42], 6)
    change(app.to_tensor([2.0]))
    assert inner(x).tolist() == [-9, 9]
    module.scaled.__code__ = (lambda x: x * 9).__code__  # as %autoreload does
    assert inner(x).tolist() == [-11, 11]
    before = len(inner.traces)
    assert (inner(x).tolist(), len(inner.traces)) == ([-11, 11], before)


# Tensors that are replaced


class Holder:
    """A plain object, which may have slots."""

    def __init__(self, w):
        self.w, self.parts = w, {"a": [w]}


class Slotted:
    __slots__ = ("w",)

    def __init__(self, w):
        self.w = w


class OfClass:
    w = app.to_tensor([1.0])


HOLDER, SLOTTED, LISTED, TABLE, PAIR = (make(app.to_tensor([1.0])) for make in (
    Holder, Slotted, lambda w: [w, w * 10], lambda w: {"a": {"b": w}}, lambda w: [(w, 1)]
))  # fmt: skip


PARTIAL = functools.partial(lambda x, held: x * held[0], held=[app.to_tensor([1.0])])


def summed(x):
    for w in LISTED:
        x = x + w
    return x + sum([w * 100 for w in LISTED])


def read_by_name(x):
    return x * getattr(HOLDER, "w")  # noqa: B009


def put(holder, key, value):
    holder[key] = value


@pytest.mark.parametrize(
    ("function", "change"),
    [
        (lambda x: x * LISTED[0], lambda w: put(LISTED, 0, w)),
        (summed, lambda w: put(LISTED, 1, w)),
        (summed, LISTED.append),
        (lambda x: x * TABLE["a"]["b"], lambda w: put(TABLE["a"], "b", w)),
        (lambda x: x * TABLE["a"]["b"], lambda w: put(TABLE, "a", {"b": w})),
        (lambda x: x * PAIR[0][0], lambda w: put(PAIR, 0, (w, 2))),
        (lambda x: x * HOLDER.w, lambda w: setattr(HOLDER, "w", w)),
        (lambda x: x * HOLDER.parts["a"][0], lambda w: put(HOLDER.parts["a"], 0, w)),
        (lambda x: x * SLOTTED.w, lambda w: setattr(SLOTTED, "w", w)),
        (lambda x: x * OfClass.w, lambda w: setattr(OfClass, "w", w)),
        (read_by_name, lambda w: setattr(HOLDER, "w", w)),
        (lambda x, holder=HOLDER: x * holder.w, lambda w: setattr(HOLDER, "w", w)),
        (functools.partial(times, factor=HOLDER.w), lambda w: HOLDER.w.set_value(w)),
        (PARTIAL, lambda w: put(PARTIAL.keywords["held"], 0, w)),
    ],
)
def test_a_tensor_that_was_replaced_wherever_it_is_held_is_read_anew(function, change):
    run, x = static(function), app.to_tensor([1.0])
    for number in (3.0, 5.0):
        assert float(run(x)) == float(function(x))
        change(app.to_tensor([number]))
    assert float(run(x)) == float(run(x)) == float(function(x))


def test_a_tensor_that_was_replaced_in_an_object_that_is_an_argument_is_read_anew():
    run, holder = static(lambda x, holder: x * holder.w), Holder(app.to_tensor([2.0]))
    assert float(run(tensor(1), holder)) == 2.0
    holder.w = app.to_tensor([3.0])
    assert float(run(tensor(1), holder)) == 3.0


def test_python_values_are_constants_until_the_function_is_retraced():
    settings = {"factor": 2.0}
    run = static(lambda x: x * settings["factor"])
    assert float(run(tensor(1))) == 2.0
    settings["factor"] = 3.0
    assert (float(run(tensor(1))), len(run.traces)) == (2.0, 1)
    run.retrace()
    assert (float(run(tensor(1))), len(run.traces)) == (3.0, 1)


# Modes, and the same Tensor twice


def by_mode(x):
    return x * 2 if app.autograd.is_grad_enabled() else x * 3


def test_there_is_a_trace_with_gradients_and_one_without():
    run = static(by_mode)
    for _ in range(2):
        assert float(run(tensor(1))) == 2.0
        with app.no_grad():
            assert float(run(tensor(1))) == 3.0
    assert len(run.traces) == 2


W = app.to_tensor([1.0])


def with_another_argument(x, y):
    return x * 2 if x is y else x


def with_a_captured_tensor(x):
    return x * 2 if x is W else x


def with_a_view(x):
    y = x.reshape([1])
    return x * 2 if y is x else x


def with_a_branch(x):
    y = x if x.sum() > 0 else x * 2
    return x * 2 if y is x else x


def with_the_last_iteration(x):
    y, z = x * 1, x * 2
    while y.sum() < 9:
        y = y * 2 if y is z else z  # another Tensor in each iteration
    return y


def with_the_last_iteration_after_a_branch(x):
    y, z, i = x * 1, x * 2, x.sum() * 0
    while i < 2:
        if x.sum() > 9:
            y = y + 1
        y = y * 2 if y is z else z
        i = i + 1
    return y


def with_the_last_iteration_after_a_loop(x):
    y, z, i = x * 1, x * 2, x.sum() * 0
    while i < 2:
        while y.sum() > 99:
            y = y - 1
        y = y * 2 if y is z else z
        i = i + 1
    return y


def with_other_iterations(x):
    y, z, last, i = x * 1, x * 2, x * 3, x.sum() * 0
    third = last
    while i < 2:
        y, z, last = z, last, y  # y is the third one after two iterations
        i = i + 1
    return y * 2 if y is third else y


@pytest.mark.parametrize(
    "function",
    [
        with_another_argument,
        with_a_captured_tensor,
        with_a_view,
        with_a_branch,
        with_the_last_iteration,
        with_the_last_iteration_after_a_branch,
        with_the_last_iteration_after_a_loop,
        with_other_iterations,
    ],
)
def test_whether_two_tensors_are_one_is_refused_where_it_depends_on_the_call(function):
    arguments = [tensor(1)] * function.__code__.co_argcount
    with pytest.raises(ProgramError, match=r"whether two Tensors are one is not .*\n  at test_signature.py:\d+"):
        static(function)(*arguments)


def by_identity(x):
    y = z = x * 2
    return y * 2 if y is z and y is not x and x is not None else y


def of_kind(x):
    return x * 3 if type(x) is app.Tensor and not isinstance(x, np.ndarray) else app.to_tensor(x) * 4


@pytest.mark.parametrize("function", [by_identity, of_kind])
def test_identity_and_the_class_of_a_tensor_are_those_of_eager_code(function):
    assert static(function)(tensor(1)).tolist() == function(tensor(1)).tolist()
