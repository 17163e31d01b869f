"""Python objects that would change whatever the Tensor of a branch or a loop is: an error, or a cache or a log."""

# ruff: noqa: SIM108 - an if is what is tested
from __future__ import annotations

import functools
import heapq
import logging
import warnings
from collections import deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import app
from app.errors import ProgramError
from app.jit import not_to_static, to_static

HERE = r"test_changes_elsewhere\.py:\d+"
LISTED: list[Any] = []
COUNTS: dict[str, int] = {"calls": 0}
EMPTY: dict[str, Any] = {}
SEEN: set[str] = set()
LAST: deque[int] = deque(maxlen=3)
NUMBERS = np.zeros(3)
STATE = SimpleNamespace(mode="small", best=None)
STORED = LISTED.append
ITERATORS = [iter(range(99)), enumerate([1] * 99), (k for k in range(99))]
TOTAL = 0


class Recorder:
    made: list[Any] = []  # noqa: RUF012 - what is tested

    def __init__(self) -> None:
        self.made.append(1)


def closure():
    count, held = 0, [0]

    def up() -> None:
        nonlocal count
        count += 1

    def hold() -> None:
        held[0] += 1

    return up, hold


COUNT_UP, HOLD = closure()


def appends(x):
    LISTED.append(1)
    return x


def counts():
    COUNTS["calls"] += 1


def counts_first():
    EMPTY["calls"] = EMPTY.get("calls", 0) + 1


def rebinds():
    global TOTAL
    TOTAL += 1


def sets_an_attribute():
    STATE.mode = "big"


def fills_an_attribute():
    STATE.best = 1


def changes_an_argument(held):
    held.append(1)


CHANGES = {
    "a list": lambda: appends(0),
    "a list, through a stored method": lambda: STORED(1),
    "a list, through its class": lambda: list.append(LISTED, 1),
    "a list, by a library": lambda: heapq.heappush(LISTED, 1),
    "a dict": counts,
    "a missing key": counts_first,
    "a set": lambda: SEEN.add("a"),
    "a deque": lambda: LAST.append(1),
    "an array": lambda: NUMBERS.fill(1.0),
    "an attribute": sets_an_attribute,
    "an attribute without a value": fills_an_attribute,
    "an attribute by setattr": lambda: setattr(STATE, "mode", "big"),
    "a global name": rebinds,
    "a name of a function around it": COUNT_UP,
    "a list of a function around it": HOLD,
    "a class, when an object is made": Recorder,
    "an iterator": lambda: next(ITERATORS[0]),
    "an iterator of another": lambda: next(ITERATORS[1]),
    "a generator": lambda: next(ITERATORS[2]),
    "a generator, to its end": lambda: list(ITERATORS[2]),
}
CHANGE = [CHANGES["a list"]]


def in_a_branch(x):
    if x.sum() > 0:
        CHANGE[0]()
        x = x * 2
    return x


def in_the_other_branch(x):
    if x.sum() > 0:
        x = x * 2
    else:
        CHANGE[0]()
    return x


def in_a_loop(x):
    while x.sum() < 10:
        CHANGE[0]()
        x = x * 2
    return x


def in_an_inner_branch(x):
    if x.sum() > 0:
        if x.max() > 3:
            CHANGE[0]()
        x = x * 2
    return x


@pytest.fixture(autouse=True)
def fresh():
    """Objects as they were."""
    yield
    ITERATORS[2] = (k for k in range(99))
    for changed in (LISTED, SEEN, LAST, EMPTY, Recorder.made):
        changed.clear()
    COUNTS["calls"] = 0
    NUMBERS[:] = 0
    STATE.mode, STATE.best = "small", None


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("function", [in_a_branch, in_the_other_branch, in_a_loop, in_an_inner_branch])
def test_a_change_by_a_called_function_is_an_error(function, what):
    CHANGE[0] = CHANGES[what]
    with pytest.raises(ProgramError, match=rf"changes.*{HERE}"):
        to_static(function, backend="reference")(app.ones([2]))


def in_an_and(x):
    return x * 2 if x.sum() > 0 and appends(x).sum() > 1 else x


def in_a_choice(x):
    return appends(x) * 2 if x.sum() > 0 else x


def directly(x):
    if x.sum() > 0:
        LISTED.append(1)
        x = x * 2
    return x


def to_a_list_of_its_own(x):
    found = []
    if x.sum() > 0:
        changes_an_argument(found)
        x = x * 2
    return x * len(found)


def by_setattr_of_its_own(x):
    held = SimpleNamespace(scale=1.0)
    if x.sum() > 0:
        setattr(held, "scale", 2.0)  # noqa: B010 - what is tested
    return x * held.scale


def by_a_stored_method(x):
    found: list[int] = []
    f = found.append
    if x.sum() > 0:
        f(1)
    return x * len(found)


@pytest.mark.parametrize(
    "function", [in_an_and, in_a_choice, directly, to_a_list_of_its_own, by_setattr_of_its_own, by_a_stored_method]
)
def test_a_change_in_an_expression_or_of_an_own_object_is_an_error(function):
    with pytest.raises(ProgramError, match=rf"changes.*{HERE}(.|\n)*not_to_static"):
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
    with pytest.raises(ProgramError, match=r"self\.inner.*\.calls changes"):
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

    assert to_static(function)(app.ones([2])).numpy().tolist() == [2.0, 2.0]


KEPT: dict[int, Any] = {}


def kept_by_test(n):
    if n not in KEPT:
        KEPT[n] = np.arange(n)
    return KEPT[n]


def kept_by_except(n):
    try:
        return KEPT[n]
    except KeyError:
        KEPT[n] = np.arange(n)
        return KEPT[n]


@functools.lru_cache
def kept_by_functools(n):
    return np.arange(n)


def kept_by_attribute(n):
    if STATE.best is None:
        STATE.best = np.arange(n)
    return STATE.best


class Lazy:
    def __init__(self, n):
        self.n = n

    @functools.cached_property
    def numbers(self):
        return np.arange(self.n)


LAZY = Lazy(2)


def kept_by_property(n):
    return LAZY.numbers


class Collects(logging.Handler):
    def emit(self, record):
        LISTED.append(record)


LOGGER = logging.getLogger("tracing")
LOGGER.addHandler(Collects())


def logged(n):
    LOGGER.warning("traced")
    return np.arange(n)


def warned(n):
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("default")
        warnings.warn(f"traced {len(KEPT)}", UserWarning, stacklevel=1)
    KEPT.setdefault(len(KEPT), n)
    return np.arange(n)


@not_to_static
def noted_once(n):
    LISTED.append("traced")
    return np.arange(n)


KEEP = [kept_by_test]


def made_inside(n):
    held, named = SimpleNamespace(found=[]), {}
    for k in range(n):
        held.found.append(k)
        named[k] = k
    held.found = np.array(held.found)
    return held.found


def uses_what_is_kept(x):
    if x.sum() > 0:
        y = x + KEEP[0](2)
    else:
        y = x - KEEP[0](2)
    while y.sum() < 10:
        y = y + 1 + KEEP[0](2)
    return y


@pytest.mark.parametrize(
    "keep",
    [
        kept_by_test, kept_by_except, kept_by_functools, kept_by_attribute, kept_by_property,
        logged, warned, noted_once, made_inside,
    ],
)  # fmt: skip
def test_caches_logs_and_objects_of_the_function_may_change(keep):
    KEPT.clear()
    KEEP[0] = keep
    for sign in (1.0, -1.0):
        x = app.to_tensor([sign, sign])
        assert np.array_equal(to_static(uses_what_is_kept)(x).numpy(), uses_what_is_kept(x).numpy())


def filled(x):
    found = []
    if x.sum() > 0:
        found.append(x)
        changes_an_argument(found)
        y = found[0] * len(found)
    else:
        found.append(x)
        found.append(2)
        y = x
    return y * len(found)


def test_a_list_that_a_branch_and_a_function_that_it_calls_change_follows_the_branch():
    for sign in (1.0, -1.0):
        x = app.to_tensor([sign, sign])
        assert np.array_equal(to_static(filled)(x).numpy(), filled(x).numpy())
