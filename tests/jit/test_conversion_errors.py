"""What cannot be traced is an error that names the line and another way to write it."""

from __future__ import annotations

import random
import re
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from modules_of_text import module_of_text

import app
from app.data import Batches
from app.errors import AppError
from app.jit import not_to_static, to_static


@not_to_static
def left_alone(x):
    return x if x.sum() > 0 else -x


def raises_in_a_branch(x):
    if x.sum() > 0:
        raise ValueError("too large")
    return x


def countdown(x):
    return x if x.sum() < 0 else countdown(x - 1)


KNOWN: dict[str, Any] = {
    "app": app,
    "np": np,
    "random": random,
    "suppress": suppress,
    "countdown": countdown,
    "left_alone": left_alone,
    "raises_in_a_branch": raises_in_a_branch,
    "schedule": app.optimizer.lr.StepDecay(0.1, 2),
    "batches": Batches(np.ones((6, 2), "float32"), np.zeros(6, "int64"), None, 2),
    "SimpleNamespace": SimpleNamespace,
    "frozen": app.to_tensor([[1.0, 1.0]]),
    "leaf": app.to_tensor([1.0, 1.0], stop_gradient=False),
    "stream": np.random.default_rng(0),
    "choices": {"sign": lambda x: x if x.sum() > 0 else -x},
}

# A message stands above the body of a function of x that raises it; HERE is the place of the marked line.
BODIES = r"""
HERE: return values of the same kind
    if x.sum() > 0:  # here
        return x, x
    return x

y has no value here: it has a value in only one branch .*HERE; give it one before
    if x.sum() > 0:  # here
        y = x
    return y * 2

y has no value here: it gets one only inside the loop over a Tensor at HERE; give it one before
    for k in range(x.sum().astype("int64")):  # here
        y = x * k
    return y

factor has no value here: it is 3.0 in one branch and None in the other .*HERE
    factor = None
    if x.sum() > 0:  # here
        factor = 3.0
    return x if factor is None else x * factor

y has no value here: it is None in one branch and a Tensor of .* in the other .*HERE; give it values of the same kind
    y = x
    if x.sum() > 0:  # here
        y = None
    return x if y is None else y

name has no value here: .* of the `if` over a Tensor at HERE
    for k in [1, 2, 3]:  # here
        name = [x] * k
        if x.sum() * k > 5:
            break
    return name[0]

out changes .* out\[i\] = x
    out, i = [], x.sum() * 0
    while i < 3:
        out.append(x)
        i = i + 1
    return out

(?s)best changes from None to a Tensor
    best, i = None, x.sum() * 0
    while i < 2:
        best = x[0].sum() if best is None else app.maximum(best, x[0].sum())
        i = i + 1
    return best

held, a dict of 2, becomes another object in the loop over a Tensor at HERE; change it
    held = {"sum": x, "count": x * 0}
    while held["sum"].sum() < 100:  # here
        held = {"sum": held["sum"] * 2 + 1, "count": held["count"] + 1}
    return held["sum"]

items has no value here: it is another list than before, or .*, in one branch only .*HERE; change that list itself
    items = [x]
    if x.sum() > 0:  # here
        items = [x * 5]
    return items[0]

other has no value here: it is another list than before, or than another variable, in one branch only
    if x.sum() > 0:
        items = other = [x]
    else:
        items, other = [x], [x * 2]
    items[0] = x * 3
    return other[0]

items has no value here: .*\[1\] in one branch .*\[3, 2\] in the other .*HERE; give it values of the same kind and shape
    items = []
    if x.sum() > 0:  # here
        items.append(app.ones([1]))
    else:
        items.append(x)
    return items[0]

found has no value here: it is a list of 2 in one branch and a list of 1 in the other .*HERE
    found = [x]
    if x.sum() > 0:  # here
        found.append(x * 2)
    return found[0]

y changes from a Tensor of shape \[3, 2\] to a Tensor of shape \[6, 2\] in the loop .*HERE.* with the same shape
    y = x
    while y.sum() < 100:  # here
        y = app.concat([y, y])
    return y

calls itself again and again in the branch or loop over a Tensor at .*; write it as a loop
    return countdown(x)

name changes from 'a' to 'ab' .* only Tensors and numbers
    name, i = "a", x.sum() * 0
    while i < 3:
        name = name + "b"
        i = i + 1
    return x, name

HERE: .* is neither true nor false; use opsmith.any or opsmith.all
    if x > 0:  # here
        x = -x
    return x

outside
    schedule.step()
    return x * 2

HERE: a loop over batches .*train_from_dataset
    for rows, _ in batches:  # here
        x = x + app.to_tensor(rows).sum()
    return x

ValueError: too large\nraised in the branch .* at test_conversion_errors.py:\d+.* cannot be handled
    try:
        raises_in_a_branch(x)
    except ValueError:
        return x * 5
    return x

no value yet(.|\n)*HERE: number =
    try:
        number = float(np.asarray(x.sum()))  # here
    except Exception:
        number = 0.0
    return x * number

opsmith.maximum instead of max(.|\n)*HERE: y = max
    y = x
    with suppress(Exception):
        y = max(x[0].sum(), x[1].sum())  # here
    return y

changed in place in the loop .* and shares memory with another value in the next iteration; change a copy
    held, y, i = {"k": x * 1}, x * 2, 0
    while i < 2 + 0 * x.sum():
        i = i + 1
        y.add_(x)
        y = held["k"]
        y[1] = x[0]
    return y + held["k"]

take it again after the change
    y = x * 1
    first = y.reshape([2, 3]).transpose([1, 0])
    y.add_(1)
    return first

take it again after the change
    y = x * 1
    first = y[:1]
    if x.sum() > 0:
        y.add_(1.0)
    return first * 2

shares memory with an argument .* change a copy
    y = x.reshape([2, 3])
    y[0, 1] = 5.0
    return y

shares memory with .* a Tensor from outside, .* change a copy
    row = frozen[0]
    row.add_(1.0)
    return x + row

shares memory with .* a Tensor from outside, .* change a copy
    w, i = frozen, x.sum() * 0
    while i < 2:
        w.add_(1.0)
        w = w * 2
        i = i + 1
    return w

take it again after the change
    first = frozen[0]
    frozen.add_(1.0)
    return x + first

take it again after the change
    y = x.clone().reshape([2, 3])
    y.transpose([1, 0]).fill_(2.0)
    return y

no variable of the function that this is in; return the new value
    y = x * 1
    return app.static.nn.cond(x.sum() > 0, lambda: y.add_(1.0), lambda: y)

use .astype
    y = x.astype("int64")
    y.add_(x)
    return y

bounds of a range must be whole numbers.* write x.astype\('int64'\)\n  at HERE: for
    for _ in range(x.sum()):  # here
        x = x + 1
    return x

step of a range must be a whole number other than 0 .*, found 1.5
    for _ in range(0, x.sum().astype("int64"), 1.5):
        x = x + 1
    return x

(?s)register one hook, while it is traced, .*; do it outside of the function.*HERE: leaf
    leaf.register_hook(lambda gradient: gradient * 2)  # here
    return x * leaf

take it again after the change, or change a copy
    (x * leaf).sum().backward()
    first = leaf.grad
    (x * leaf).sum().backward()
    return first * 1

was changed in place while its stop_gradient was True; change a copy
    y = x * leaf
    y.stop_gradient = True
    y.add_(1.0)
    y.stop_gradient = False
    return y

step of a range cannot be a Tensor; count in a `while` loop
    for _ in range(0, 10, x.sum().astype("int64")):
        x = x + 1
    return x

step of a range must be a whole number other than 0 .*, found 0
    for _ in range(0, x.sum().astype("int64"), 0):
        x = x + 1
    return x

(?s)requires a gradient and is changed in place inside no_grad.*\.add_\(1\.0\)
    y = x * leaf
    with app.no_grad():
        y.add_(1.0)
    return y

take it again after the change
    y = x * 1
    kept = y
    if x.sum() > 0:
        y = y * 2
    y.add_(1)
    return kept

changed in place in the loop .* shares memory with another value in the next iteration; change a copy
    y, z, i = x * 1, x * 2, 0
    while i < 2 + 0 * x.sum():
        y.add_(1.0)
        y = x * 3 + i
        z = y
        i += 1
    return y + z

no variable of the function that this is in; return the new value(.|\n)*HERE: box
    box = SimpleNamespace(value=x * 1)
    if x.sum() > 0:
        box.value.add_(1.0)  # here
    return box.value

take it again after the change
    y = x * 1
    kept = y
    if x.sum() > 0:
        if x.max() > 1:
            y = y * 2
        y.add_(1)
    return kept

take it again after the change
    y, kept = x * 1, [x * 2]
    kept.append(y)
    while y.sum() < 100:
        y.add_(1)
        y = y * 2
    return kept[1]

take it again after the change
    y, z, last, i = x * 1, x * 2, x * 3, 0
    third = last
    while i < 2 + 0 * x.sum():
        y, z, last = z, last, y
        i += 1
    y.add_(1)
    return third

shares memory with an argument .* change a copy
    y = x if x.sum() > 0 else x * 2
    y.add_(1)
    return y

`a or b` at HERE has the value of a or of b in Python.* Write `a if a else b`
    return x * (x.sum() or 2.0)  # here

`a and b` at HERE has the value of a or of b in Python.* Write `b if a else a`
    return x * (x.sum() > 0 and 5)  # here

(?s)creates a parameter.*HERE: net
    net = app.nn.Linear(2, 2)  # here
    return net(x)

(?s)stop_gradient of x, an argument .* cannot be set to False .*set it before the call.*HERE: x.stop
    x.stop_gradient = False  # here
    return x * 2

test_conversion_errors.py:\d+: return x if
    return left_alone(x)

test_conversion_errors.py:\d+: "choices": {"sign": lambda x: x if
    return choices["sign"](x)
"""
EXPRESSIONS = {
    "x * np.asarray(x.sum())": "no value yet",
    'f"{x.sum():.2f}"': r"A format needs its number, .*; print\(x\) shows it",
    "x * 2 if x.sum().item() > 3 else x": "`if x > 1`, not `if x.item",
    "x * 2 if 0 < x.sum() < 3 else x": "`a < b and b < c` instead",
    "max(x.sum(), 3)": "opsmith.maximum instead of max",
    'x * float(x.astype("int64").sum())': r"write .astype\('float64'\)",
    "x * random.random()": r"random\(\) would draw .* use opsmith.rand",
    "x * float(stream.normal())": r"normal\(\) would draw .* pass it as a Tensor",
    "x * float(np.random.default_rng().normal())": r"normal\(\) would draw .* pass it as a Tensor",
    "x * float(np.random.default_rng(3).normal())": r"normal\(\) would draw .* pass it as a Tensor",
    "x * float(np.random.rand())": r"rand\(\) would draw .* pass it as a Tensor",
    "(x * 1).add_(app.ones([2, 3, 2]))": "cannot be changed in place to",
    "leaf.add_(x[0])": "leaf Tensor with stop_gradient=False",
}
CASES = [case.partition("\n")[::2] for case in BODIES.strip().split("\n\n")]
CASES += [(rf"(?s){message}.*HERE", f"    return {expression}  # here") for expression, message in EXPRESSIONS.items()]


@pytest.mark.parametrize(("message", "body"), CASES, ids=[message for message, _ in CASES])
def test_what_cannot_be_traced_is_an_error_with_its_line_and_another_way(message: str, body: str):
    function = module_of_text(f"def function(x):\n{body}\n", **KNOWN).function
    marked = [number for number, line in enumerate(body.splitlines(), 2) if line.endswith("# here")]
    place = f"{function.__code__.co_filename}:{marked[0]}" if marked else ""
    with pytest.raises(AppError, match=message.replace("HERE", place)):
        to_static(function, backend="reference")(app.ones([3, 2]))


HERE = r"test_conversion_errors\.py:\d+"


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
    line = rf"^operator py_func.assertion \({HERE}\): in its function assertion: "
    with pytest.raises(AssertionError, match=line + message) as raised:
        to_static(asserts, backend="reference")(app.full([3, 2], number))
    assert "logic.py" not in str(raised.value)


def by_size(x):
    try:
        y = x * 2 if x.shape[0] == 3 else x
    except ValueError:
        y = x * 5
    return y


def test_a_size_in_a_try_statement_is_traced():
    static = to_static(by_size, backend="reference")
    for size in (3, 4):
        x = app.ones([size, 2])
        assert static(x).tolist() == by_size(x).tolist()
