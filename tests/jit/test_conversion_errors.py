"""What cannot be traced is an error that names the line and another way to write it."""

from __future__ import annotations

import random
import re
from contextlib import suppress

import numpy as np
import pytest

import app
from app.data import Batches
from app.errors import AppError, ProgramError
from app.jit import not_to_static, to_static

HERE = r"test_conversion_errors\.py:\d+"
SCHEDULE = app.optimizer.lr.StepDecay(0.1, 2)
BATCHES = Batches(np.ones((6, 2), "float32"), np.zeros(6, "int64"), None, 2)
LEAF = app.to_tensor([1.0, 1.0], stop_gradient=False)
STREAM = np.random.default_rng(0)
CHOICES = {"sign": lambda x: x if x.sum() > 0 else -x}


def branches_of_two_kinds(x):
    if x.sum() > 0:
        return x, x
    return x


def variable_of_one_branch(x):
    if x.sum() > 0:
        y = x
    return y * 2


def number_or_none(x):
    factor = None
    if x.sum() > 0:
        factor = 3.0
    return x if factor is None else x * factor


def none_or_tensor(x):
    y = x
    if x.sum() > 0:
        y = None
    return x if y is None else y


def variable_of_a_loop_that_may_end(x):
    for k in [1, 2, 3]:
        name = [x] * k
        if x.sum() * k > 5:
            break
    return name[0]


def list_that_grows(x):
    out, i = [], x.sum() * 0
    while i < 3:
        out.append(x)
        i = i + 1
    return out


def set_of_one_branch(x):
    found = set()
    if x.sum() > 0:
        found.add(1)
    return x * len(found)


def array_of_one_branch(x):
    numbers = np.zeros(2, "float32")
    if x.sum() > 0:
        numbers[0] = 3.0
    return x * float(numbers[0])


def text_that_changes(x):
    name, i = "a", x.sum() * 0
    while i < 3:
        name = name + "b"
        i = i + 1
    return x, name


def none_before_a_loop(x):
    best = None
    for i in range(2):
        best = x[i].sum() if best is None else app.maximum(best, x[i].sum())
        if best > 2:
            break
    return best


def item_in_a_condition(x):
    return x * 2 if x.sum().item() > 3 else x


def condition_of_many_elements(x):
    if x > 0:
        x = -x
    return x


def chained(x):
    return x * 2 if 0 < x.sum() < 3 else x


def float_of_a_large_integer(x):
    return x * float(x.astype("int64").sum())


def random_of_python(x):
    return x * random.random()


def random_of_a_stream(x):
    return x * float(STREAM.normal())


def random_without_a_seed(x):
    return x * float(np.random.default_rng().normal())


def random_of_numpy(x):
    return x * float(np.random.rand())


def schedule(x):
    SCHEDULE.step()
    return x * 2


def batches(x):
    for rows, _ in BATCHES:
        x = x + app.to_tensor(rows).sum()
    return x


@not_to_static
def left_alone(x):
    return x if x.sum() > 0 else -x


def calls_what_is_left_alone(x):
    return left_alone(x)


def raises_in_a_branch(x):
    if x.sum() > 0:
        raise ValueError("too large")
    return x


def handles_what_a_branch_raises(x):
    try:
        raises_in_a_branch(x)
    except ValueError:
        return x * 5
    return x


def handles_the_error_of_a_number(x):
    try:
        number = float(np.asarray(x.sum()))
    except Exception:
        number = 0.0
    return x * number


def suppresses_the_error_of_a_truth_value(x):
    y = x
    with suppress(Exception):
        y = max(x[0].sum(), x[1].sum())
    return y


def reads_a_stale_view(x):
    y = x * 1
    first = y.reshape([2, 3]).transpose([1, 0])
    y += 1
    return first


def reads_a_view_from_before_a_branch(x):
    y = x * 1
    first = y[:1]
    if x.sum() > 0:
        y.add_(1.0)
    return first * 2


def changes_a_transposed_view(x):
    y = x.clone().reshape([2, 3])
    y.transpose([1, 0]).fill_(2.0)
    return y


def changes_in_a_function_of_cond(x):
    y = x * 1
    return app.static.nn.cond(x.sum() > 0, lambda: y.add_(1.0), lambda: y)


def changes_the_type(x):
    y = x.astype("int64")
    y.add_(x)
    return y


STALE = "take it again after the change"
ERRORS = {
    branches_of_two_kinds: rf"{HERE}: return values of the same kind",
    variable_of_one_branch: rf"y has no value here: it has a value in only one branch .*{HERE}; give it one before",
    number_or_none: rf"factor has no value here: it is 3.0 in one branch and None in the other .*{HERE}",
    none_or_tensor: rf"y has no value here: it is None in one branch and a Tensor of .* in the other .*{HERE}",
    variable_of_a_loop_that_may_end: rf"name has no value here: .* of the `if` over a Tensor at {HERE}",
    list_that_grows: r"out changes .* out\[i\] = x",
    set_of_one_branch: rf"found has no value here: it is a set of 1 and a set of 0 in the two branches .*{HERE}",
    array_of_one_branch: rf"numbers has no value here: .* of the `if` over a Tensor at {HERE}",
    text_that_changes: r"name changes from 'a' to 'ab' .* only Tensors and numbers",
    none_before_a_loop: "best changes from None to a Tensor",
    lambda x: x * np.asarray(x.sum()): rf"no value yet(.|\n)*{HERE}: lambda x: x \* np.asarray\(x.sum\(\)\)",
    item_in_a_condition: rf"`if x > 1`, not `if x.item(.|\n)*{HERE}",
    condition_of_many_elements: rf"{HERE}: .* is neither true nor false; use app.any or app.all",
    chained: rf"`a < b and b < c` instead(.|\n)*{HERE}",
    lambda x: max(x.sum(), 3): rf"app.maximum instead of max(.|\n)*{HERE}",
    float_of_a_large_integer: rf"write .astype\('float64'\)(.|\n)*{HERE}",
    lambda x: app.nn.Linear(2, 2)(x): "creates a parameter",
    schedule: "outside",
    batches: rf"{HERE}: a loop over batches .*train_from_dataset",
    calls_what_is_left_alone: rf"{HERE}: return x if",
    lambda x: CHOICES["sign"](x): "app.where",
    random_of_python: rf"random\(\) would draw .* use app.rand(.|\n)*{HERE}",
    random_of_a_stream: rf"normal\(\) would draw .* pass it as a Tensor(.|\n)*{HERE}",
    random_without_a_seed: rf"normal\(\) would draw .* pass it as a Tensor(.|\n)*{HERE}",
    random_of_numpy: rf"rand\(\) would draw .* pass it as a Tensor(.|\n)*{HERE}",
    handles_what_a_branch_raises: rf"ValueError: too large\nraised in the branch .* at {HERE}.* cannot be handled",
    handles_the_error_of_a_number: rf"no value yet(.|\n)*{HERE}: number = ",
    suppresses_the_error_of_a_truth_value: rf"app.maximum instead of max(.|\n)*{HERE}: y = max",
    reads_a_stale_view: STALE,
    reads_a_view_from_before_a_branch: STALE,
    changes_a_transposed_view: STALE,
    changes_in_a_function_of_cond: "given to cond or while_loop",
    changes_the_type: "use .astype",
    lambda x: (x * 1).add_(app.ones([2, 3, 2])): "cannot be changed in place to",
    lambda x: LEAF.add_(x[0]): "leaf Tensor with stop_gradient=False",
}


@pytest.mark.parametrize(("function", "message"), ERRORS.items(), ids=lambda part: getattr(part, "__name__", ""))
def test_what_cannot_be_traced_is_an_error_with_its_line_and_another_way(function, message):
    with pytest.raises(AppError, match=message):
        to_static(function, backend="reference")(app.ones([3, 2]))


def test_an_exception_of_a_branch_says_that_the_branch_is_always_traced():
    with pytest.raises(ValueError, match="too large") as raised:
        to_static(raises_in_a_branch, backend="reference")(-app.ones([3, 2]))
    (note,) = raised.value.__notes__
    assert re.search(rf"over a Tensor at {HERE}, which is traced whatever the Tensor is; `assert` raises", note)


def asserts(x):
    assert x.sum() > 0
    assert x.max() < 2, "too large"
    return x


@pytest.mark.parametrize(("number", "message"), [(-1.0, r"`x.sum\(\) > 0` is false"), (3.0, "too large")])
def test_an_assertion_that_fails_names_only_its_line(number, message):
    line = rf"^operator py_func.assertion \({HERE}\): its function assertion raised AssertionError: "
    with pytest.raises(AssertionError, match=line + message) as raised:
        to_static(asserts, backend="reference")(app.full([3, 2], number))
    assert "logic.py" not in str(raised.value)


def noisy(x):
    return x + float(np.random.default_rng(3).normal())


def by_size(x):
    try:
        y = x * 2 if x.shape[0] == 3 else x
    except ValueError:
        y = x * 5
    return y


@pytest.mark.parametrize("function", [noisy, by_size])
def test_seeded_streams_and_sizes_in_a_try_statement_are_traced(function):
    static = to_static(function, backend="reference")
    for size in (3, 4):
        x = app.ones([size, 2])
        assert static(x).tolist() == static(x).tolist() == function(x).tolist()


def test_an_unknown_backend_is_an_error():
    with pytest.raises(ProgramError, match=r"there are compiled, reference"):
        to_static(lambda x: x, backend="fast")
