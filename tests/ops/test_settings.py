"""Settings of operators: their keys, their text, and what they mean."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.errors import OperatorError
from app.ops import REGISTRY
from app.ops.settings import key_of, key_of_settings

LONG = np.zeros(2000, "float32")
OTHER = LONG.copy()
OTHER[1000] = 1


class Level(int):
    """A number with something beside it, which `==` ignores."""


@pytest.mark.parametrize(
    ("some", "others"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ((1, 2), (1, 2.0)),
        (LONG, OTHER),
        ((LONG,), (OTHER,)),
        (np.zeros(2, "float32"), np.zeros(2, "int32")),
        (np.zeros([2, 1]), np.zeros([1, 2])),
        (slice(1), slice(2)),
        (object(), object()),
        ([], ()),
        (np.array(["a", None], object), np.array(["b", None], object)),
        (Decimal("0.0"), Decimal("-0.0")),
        (Level(1), 1),
    ],
)
def test_settings_that_differ_have_different_keys(some: Any, others: Any):
    assert key_of(some) != key_of(others)
    assert key_of(some) == key_of(some)


@app.custom_op
def pick_middle(x: Any, *, table: Any = None) -> Any:
    return x * table[1000]


def test_operators_with_different_tables_are_different():
    main = static.Program()
    with static.program_guard(main, static.Program()):
        x = static.data("x", [2])
        for table in (LONG, OTHER, LONG.copy()):
            pick_middle(x, table=table)
    assert "table=<float32[2000]>" in str(main)
    assert main.equals(main.clone())
    long, other, copied = (key_of_settings(op.attributes) for op in main.global_block().ops)
    assert long == copied
    assert long != other


@pytest.mark.parametrize(
    "setting", [{"a": 1}, {1}, Level(1), (1, object()), np.array([None]), app.relu], ids=lambda s: type(s).__name__
)
def test_a_setting_that_is_neither_number_text_tuple_nor_array_is_refused(setting: Any):
    with pytest.raises(OperatorError, match=r"operator pick_middle \(.*\): its setting table is .*, expected a number"):
        pick_middle(app.ones([2]), table=setting)
    with pytest.raises(OperatorError, match=r"operator scaled \(.*\): its setting by is .*, expected a number"):

        @app.custom_op
        def scaled(x: Any, by: Any = setting) -> Any:
            return x


def test_an_array_among_the_settings_stays_as_it_was_given():
    table = OTHER.copy()
    out = pick_middle(static.data("x", [1]), table=table)
    table[:] = 7
    assert static.Executor().run(feed={"x": np.ones(1, "float32")}, fetch_list=[out])[0] == [1.0]


def test_built_in_operators_declare_whether_they_draw_and_know_training():
    for name, definition in REGISTRY.items():
        assert definition.random == ("seed" in definition.attributes), name
        assert definition.has_training_mode == ("training" in definition.attributes), name
        assert not definition.custom
