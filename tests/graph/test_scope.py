"""Scopes: where parameters live between runs, and how they are read and set from outside."""

from __future__ import annotations

import numpy as np
import pytest

import app
from app import static
from app.errors import ProgramError, ShapeError


@pytest.fixture
def executor() -> static.Executor:
    """An Executor that has run the startup program of one layer, `y = fc(x)`."""
    static.nn.fc(static.data("x", [None, 2]), 3)
    executor = static.Executor()
    executor.run(static.default_startup_program())
    return executor


def test_a_parameter_is_read_through_find_var(executor: static.Executor):
    found = static.global_scope().find_var("fc_0.w_0")
    assert np.array(found.get_tensor()).shape == (2, 3)
    assert found.get_tensor().shape() == [2, 3]
    assert np.asarray(found).dtype == np.float32
    assert static.global_scope().find_var("nothing") is None


def test_what_is_read_and_what_is_set_are_copies(executor: static.Executor):
    bias, given = static.global_scope().var("fc_0.b_0").get_tensor(), np.ones(3, "float32")
    np.asarray(bias)[:] = 7
    np.testing.assert_array_equal(static.global_scope().value("fc_0.b_0"), np.zeros(3))
    bias.set(given)
    given[:] = 7
    np.testing.assert_array_equal(static.global_scope().value("fc_0.b_0"), [1, 1, 1])


def test_a_parameter_is_set_in_its_own_type_and_shape(executor: static.Executor):
    weight = static.global_scope().find_var("fc_0.w_0").get_tensor()
    weight.set(np.full((2, 3), 2.0), app.static.Executor)  # the place is accepted and ignored
    assert np.array(weight).dtype == np.float32
    out = executor.run(feed={"x": np.ones((1, 2), "float32")}, fetch_list=["add.out_0"])[0]
    np.testing.assert_array_equal(out, [[4, 4, 4]])
    with pytest.raises(ShapeError, match=r"variable fc_0\.w_0 has shape \[2, 3\], not \[3, 2\]"):
        weight.set(np.ones((3, 2)))


def test_a_value_can_be_put_into_a_scope_before_any_run():
    static.nn.fc(static.data("x", [None, 2]), 1)
    scope = static.Scope()
    scope.var("fc_0.w_0").set(np.array([[1], [2]], "float32"))
    scope.var("fc_0.b_0").set(np.array([3], "float32"))
    feed = {"x": np.ones((1, 2), "float32")}
    assert static.Executor().run(feed=feed, fetch_list=["add.out_0"], scope=scope)[0] == 6


def test_scopes_keep_values_apart(executor: static.Executor):
    outside = static.global_scope()
    mine = static.Scope()
    with static.scope_guard(mine):
        assert static.global_scope() is mine
        assert mine.find_var("fc_0.w_0") is None
        with pytest.raises(ProgramError, match=r"variable fc_0\.w_0 has no value yet: run the startup program first"):
            executor.run(feed={"x": np.ones((1, 2), "float32")}, fetch_list=["add.out_0"])
        executor.run(static.default_startup_program())
    assert static.global_scope() is outside
    assert not np.array_equal(mine.value("fc_0.w_0"), outside.value("fc_0.w_0"))


def test_a_scope_can_be_given_to_a_run(executor: static.Executor):
    mine = static.Scope()
    executor.run(static.default_startup_program(), scope=mine)
    mine.find_var("fc_0.b_0").set(np.full(3, 5))
    feed = {"x": np.zeros((1, 2), "float32")}
    np.testing.assert_array_equal(executor.run(feed=feed, fetch_list=["add.out_0"], scope=mine)[0], [[5, 5, 5]])
    np.testing.assert_array_equal(executor.run(feed=feed, fetch_list=["add.out_0"])[0], [[0, 0, 0]])
