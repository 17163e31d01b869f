"""Changes of Python objects in a branch or a loop over a Tensor: an error, unless the function has made the object."""

from __future__ import annotations

from textwrap import indent
from typing import Any

import numpy as np
import pytest
from modules_of_text import module_of_text

import app
from app.errors import ProgramError
from app.jit import to_static

OBJECTS = """
import functools, logging, warnings
from collections import deque
from types import SimpleNamespace
import numpy as np
import app

listed, counts, empty, seen, last, numbers = [], {"calls": 0}, {}, set(), deque(maxlen=3), np.zeros(3)
state, stored, total = SimpleNamespace(mode="small", best=None), listed.append, 0
iterator, enumerated, generator = iter(range(99)), enumerate([1] * 99), (k for k in range(99))

class Recorder:
    made = []

    def __init__(self):
        self.made.append(1)

def closure():
    count, held = 0, [0]

    def up():
        nonlocal count
        count += 1

    def hold():
        held[0] += 1

    return up, hold

count_up, hold = closure()

def appends(x):
    listed.append(1)
    return x

def append_to(held):
    held.append(1)
"""
CHANGES = [
    "listed.append(1)",
    "stored(1)",
    "list.append(listed, 1)",
    "counts['calls'] += 1",
    "empty['calls'] = empty.get('calls', 0) + 1",
    "seen.add('a')",
    "last.append(1)",
    "numbers.fill(1.0)",
    "state.mode = 'big'",
    "state.best = 1",
    "setattr(state, 'mode', 'big')",
    "global total; total += 1",
    "count_up()",
    "hold()",
    "Recorder()",
    "next(iterator)",
    "next(enumerated)",
    "next(generator)",
]
PLACES = [
    "if x.sum() > 0:\n    change()\n    x = x * 2\nreturn x",
    "if x.sum() > 0:\n    x = x * 2\nelse:\n    change()\nreturn x",
    "while x.sum() < 10:\n    change()\n    x = x * 2\nreturn x",
    "if x.sum() > 0:\n    if x.max() > 3:\n        change()\n    x = x * 2\nreturn x",
]
CHANGES_OF_ITS_OWN = [
    "if x.sum() > 0:\n    held = listed\n    held.append(1)\nreturn x",
    "while x.sum() < 9:\n    held = counts\n    held['calls'] = 2\n    x = x * 2\nreturn x",
    "return x * 2 if x.sum() > 0 and appends(x).sum() > 1 else x",
    "return appends(x) * 2 if x.sum() > 0 else x",
    "if x.sum() > 0:\n    listed.append(1)\n    x = x * 2\nreturn x",
    "held = SimpleNamespace(a=1.0)\nif x.sum() > 0:\n    setattr(held, 'a', 2.0)\nreturn x * held.a",
    "found = []\nf = found.append\nif x.sum() > 0:\n    f(1)\nreturn x * len(found)",
    "held = SimpleNamespace(a=1.0)\nif x.sum() > 0:\n    held.a = 2.0\nreturn x * held.a",
    "found = set()\nif x.sum() > 0:\n    found.add(1)\nreturn x * len(found)",
    "numbers = np.zeros(2)\nif x.sum() > 0:\n    numbers[0] = 3.0\nreturn x * float(numbers[0])",
    "if x.sum() > 0:\n    try:\n        listed.append(1)\n    except Exception:\n        pass\nreturn x",
    "if 2 not in empty:\n    if x.sum() > 0:\n        empty[2] = 1\nreturn x",
]


def function_with(body: str, helpers: str = "") -> Any:
    """A function of x with this body, among new objects."""
    text = f"{OBJECTS}\n{helpers}\ndef function(x):\n" + indent(body.strip("\n"), "    ") + "\n"
    return module_of_text(text).function


@pytest.mark.parametrize(
    ("body", "change"),
    [
        *((PLACES[0], change) for change in CHANGES),
        *((body, CHANGES[0]) for body in PLACES[1:]),
        *((body, "pass") for body in CHANGES_OF_ITS_OWN),
    ],
)
def test_a_change_whatever_the_tensor_is_is_an_error(body: str, change: str):
    function = function_with(body, f"def change():\n    {change}\n")
    with pytest.raises(
        ProgramError,
        match=rf"changes in the branch or loop.*(.|\n)*not_to_static.*\n  at {function.__code__.co_filename}:\d+: ",
    ):
        to_static(function, backend="reference")(app.ones([2]))


class Counting(app.nn.Layer):
    def __init__(self):
        super().__init__()
        self.inner = app.nn.Linear(2, 2)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.inner(x)


class Chooses(app.nn.Layer):
    def __init__(self):
        super().__init__()
        self.inner = app.nn.Sequential(Counting())

    def forward(self, x):
        return self.inner(x) if x.sum() > 0 else x


def test_an_attribute_changed_by_a_layer_of_a_branch_is_an_error():
    with pytest.raises(
        ProgramError, match=r"Counting\.calls changes(.|\n)*at test_changes_elsewhere.py:\d+: self.calls"
    ):
        to_static(Chooses())(app.ones([1, 2]))


# Programs that are traced


class Hostile(list):
    """Every method raises."""

    __slots__ = ("given", "missing")

    def refuse(self, *_: Any) -> Any:
        raise RuntimeError("called")

    __getattr__ = __iter__ = __len__ = __eq__ = __bool__ = refuse
    __hash__ = None


class HostileProxy:
    @property
    def __class__(self):
        raise RuntimeError("called")

    def __getattribute__(self, name):
        raise RuntimeError("called")


HOSTILE = [Hostile([1]), HostileProxy()]


def test_no_method_of_a_users_object_is_called():
    def function(x):
        return x * 2 if x.sum() > 0 else x

    assert to_static(function, backend="reference")(app.ones([2])).numpy().tolist() == [2.0, 2.0]


KEEPING = {
    "a cache that was filled before": """
def keep(n):
    if n not in empty:
        empty[n] = np.arange(n)
    return empty[n]

keep(2)
""",
    "functools": """
@functools.lru_cache
def keep(n):
    return np.arange(n)
""",
    "a property": """
class Lazy:
    @functools.cached_property
    def numbers(self):
        return np.arange(2)

lazy = Lazy()

def keep(n):
    return lazy.numbers
""",
    "a log": """
class Collects(logging.Handler):
    def emit(self, record):
        listed.append(record)

logger = logging.getLogger("tracing")
logger.handlers = [Collects()]

def keep(n):
    logger.warning("traced")
    return np.arange(n)
""",
    "a warning": """
def keep(n):
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("default")
        warnings.warn(f"traced {len(empty)}", UserWarning, stacklevel=1)
    return np.arange(n)
""",
    "a function that is not converted": """
@app.jit.not_to_static
def keep(n):
    listed.append("traced")
    return np.arange(n)
""",
    "objects made inside": """
class Held:
    def __init__(self, factor):
        self.factor = factor

    def double(self):
        self.factor *= 2

def keep(n):
    more = Held([1] * n)
    more.double()
    more.factor[0] = sorted({1: 2})
    held, named = SimpleNamespace(found=[]), {}
    for k in range(n):
        held.found.append(k)
        named[k] = k
    held.found = np.array(held.found)
    return held.found
""",
}
USES_WHAT_IS_KEPT = """
if x.sum() > 0:
    y = x + keep(2)
else:
    y = x - keep(2)
while y.sum() < 10:
    y = y + 1 + keep(2)
return y
"""
FILLS_A_LIST = """
found = []
if x.sum() > 0:
    found.append(x)
    append_to(found)
    y = found[0] * len(found)
else:
    found.append(x)
    found.append(2)
    y = x
return y * len(found)
"""


@pytest.mark.parametrize("case", [*KEEPING, "a list that each branch fills"])
def test_caches_logs_and_objects_of_the_function_may_change(case: str):
    body, helpers = (USES_WHAT_IS_KEPT, KEEPING[case]) if case in KEEPING else (FILLS_A_LIST, "")
    function = function_with(body, helpers)
    for sign in (1.0, -1.0):
        x = app.to_tensor([sign, sign])
        assert np.array_equal(to_static(function, backend="reference")(x).numpy(), function(x).numpy())
