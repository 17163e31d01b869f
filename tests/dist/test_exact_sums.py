"""A sum is the same, to the last bit, in whichever order and by however many its terms are added."""

from __future__ import annotations

from math import fsum

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

import app
from app.dist.exact import add_exactly
from app.engine import Executor, Scope
from app.graph import Program, names, static_mode

NUMBERS = st.lists(st.floats(-(2.0**18), 2.0**18, width=32), min_size=1, max_size=12)


def added_up(numbers: list[float]) -> np.ndarray:
    both = np.zeros(2)
    for number in numbers:
        both = np.array(add_exactly.kernel(*both, np.float32(number)))
    return both


@given(NUMBERS, st.randoms(), st.integers(0, 12))
@example([-3.013084888458252, 1e-20, -1.4129602909088135, 9e-16], None, 2)
def test_neither_order_nor_grouping_matters(numbers: list[float], random: object, cut: int):
    whole = added_up(numbers)
    if random is not None:
        random.shuffle(numbers)  # type: ignore[attr-defined]
    parts = added_up(numbers[cut:]) + added_up(numbers[:cut])
    assert parts.tolist() == whole.tolist()
    assert abs(whole.sum() - fsum(np.float32(numbers).tolist())) <= 12 * 2.0**-69 + abs(whole.sum()) * 2.0**-52


def test_compiled_code_splits_numbers_as_numpy_does():
    main = Program()
    with names.guard(), app.static.program_guard(main, Program()), static_mode():
        given = [app.static.data("high", [None], "float64"), app.static.data("low", [None], "float64")]
        results = main.global_block().append_op(add_exactly, [*given, app.static.data("x", [None])])
    random = np.random.default_rng(0)
    x = (random.standard_normal(1000) * 2.0 ** random.integers(-90, 18, 1000)).astype(np.float32)
    feed = {"high": np.full(1000, 3 * 2.0**-30), "low": np.full(1000, 5 * 2.0**-68), "x": x}
    found = [Executor(engine=engine).run(main, feed, results, scope=Scope()) for engine in ("reference", "compiled")]
    for reference, compiled in zip(*found, strict=True):
        assert reference.tolist() == compiled.tolist()


def test_what_is_not_finite_is_told():
    for number in (np.inf, -np.inf, np.nan):
        with np.errstate(invalid="ignore"):
            assert not np.isfinite(added_up([1.0, number]).sum())
