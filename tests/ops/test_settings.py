"""Settings of operators as keys, and as they are printed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.ops.settings import format_setting, key_of, key_of_settings

LONG = np.zeros(2000, "float32")
OTHER = LONG.copy()
OTHER[1000] = 1


@pytest.mark.parametrize(
    ("some", "others"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ((1, 2), (1, 2.0)),
        (LONG, OTHER),
        ((LONG,), (OTHER,)),
        ({"a": LONG}, {"a": OTHER}),
        (np.zeros(2, "float32"), np.zeros(2, "int32")),
        (np.zeros([2, 1]), np.zeros([1, 2])),
        (slice(1), slice(2)),
        (object(), object()),
        ([], ()),
        (np.array(["a", None], object), np.array(["b", None], object)),
    ],
)
def test_settings_that_differ_have_different_keys(some: Any, others: Any):
    assert key_of(some) != key_of(others)
    assert key_of(some) == key_of(some)


def test_settings_that_are_equal_have_one_key():
    nan = float("nan")
    some, others = {"a": LONG, "b": nan, "c": [1, {2}]}, {"c": [1, {2}], "b": nan, "a": LONG.copy()}
    assert key_of_settings(some) == key_of_settings(others)
    assert hash(key_of(LONG)) == hash(key_of(LONG.copy()))


def test_a_long_array_is_printed_by_its_type_and_shape():
    assert format_setting(LONG) == "<float32[2000]>"
    assert format_setting(np.arange(3)) == "array([0, 1, 2])"


@app.custom_op
def pick_middle(x: Any, *, table: Any = None) -> Any:
    return x * table[1000]


def test_operators_with_other_tables_stay_two():
    main = static.Program()
    with static.program_guard(main, static.Program()):
        x = static.data("x", [2])
        first, second = app.assign(x), pick_middle(x, table=OTHER)
        pick_middle(x, table=LONG)
        app.nn.functional.relu(first + second)
    assert "table=<float32[2000]>" in str(main)
    assert main.equals(main.clone())
    block = static.Program().global_block()
    x = block.create_var("x", [2], is_data=True)
    for values in (LONG, OTHER, LONG.copy()):
        block.append_op(_table(), [x], {"table": values})
    long, other, copied = (key_of_settings(op.attributes) for op in block.ops)
    assert long == copied
    assert long != other


_made: list[Any] = []


def _table() -> Any:
    from app.ops.definition import OpDef

    if not _made:
        _made.append(OpDef("table", lambda x, *, table: x * table[1000], lambda x, *, table: x))
    return _made[0]


def test_an_array_among_the_settings_stays_as_it_was_given():
    table = OTHER.copy()
    with static.program_guard(static.Program(), static.Program()):
        out = pick_middle(static.data("x", [1]), table=table)
        table[:] = 7
        (found,) = static.Executor().run(feed={"x": np.ones(1, "float32")}, fetch_list=[out])
    assert found == [1.0]
