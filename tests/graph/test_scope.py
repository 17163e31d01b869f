"""Scopes: where parameters live between runs, and how they are read and set from outside, singly and together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import app
from app import static
from app.errors import DtypeError, ProgramError, ShapeError

FEED = {"x": np.ones((1, 2), "float32")}


@pytest.fixture(autouse=True)
def _trained_layer() -> None:
    """The startup Program of one layer, `y = fc(x)`, and one iteration."""
    y = static.nn.fc(static.data("x", [None, 2]), 3)
    app.optimizer.Adam(learning_rate=0.1).minimize(app.mean(y * y))
    static.Executor().run(static.default_startup_program())
    static.Executor().run(feed=FEED)


def output() -> np.ndarray:
    """The layer's output for ones."""
    inference = static.default_main_program().clone(for_test=True)
    return static.Executor().run(inference, FEED, ["add.out_0"])[0]


def test_find_var_gives_a_parameter():
    variable = static.global_scope().find_var("fc_0.w_0")
    assert np.array(variable.get_tensor()).shape == (2, 3)
    assert variable.get_tensor().shape() == [2, 3]
    assert np.asarray(variable).dtype == np.float32
    assert static.global_scope().find_var("nothing") is None


def test_values_that_are_read_and_set_are_copies():
    bias, array = static.global_scope().var("fc_0.b_0").get_tensor(), np.ones(3, "float32")
    np.asarray(bias)[:] = 7
    static.default_main_program().state_dict()["fc_0.b_0"][:] = 7
    assert not (static.global_scope().value("fc_0.b_0") == 7).any()
    bias.set(array)
    array[:] = 7
    np.testing.assert_array_equal(static.global_scope().value("fc_0.b_0"), [1, 1, 1])


def test_a_parameter_keeps_its_type_and_shape():
    weight = static.global_scope().find_var("fc_0.w_0").get_tensor()
    weight.set(np.full((2, 3), 2.0))
    static.global_scope().find_var("fc_0.b_0").set(np.zeros(3))
    assert np.array(weight).dtype == np.float32
    np.testing.assert_array_equal(output(), [[4, 4, 4]])
    with pytest.raises(ShapeError, match=r"variable fc_0\.w_0 has shape \[2, 3\], not \[3, 2\]"):
        weight.set(np.ones((3, 2)))
    static.global_scope().values["count"] = np.array([1])
    with pytest.raises(DtypeError, match="variable count is int64, and was given float64; nothing was changed"):
        static.global_scope().find_var("count").set([2.5])


# --- State dictionaries ---


def test_a_state_dict_has_parameters_optimizer_state_or_both():
    program = static.default_main_program()
    parameters, rest = program.state_dict("param"), program.state_dict("opt")
    assert list(parameters) == ["fc_0.w_0", "fc_0.b_0"]
    assert any("moment" in name for name in rest)
    assert program.state_dict().keys() == parameters.keys() | rest.keys()
    with pytest.raises(ProgramError, match="mode must be 'all', 'param' or 'opt', not 'half'"):
        program.state_dict("half")


def test_training_resumes_from_a_saved_state_dict(tmp_path: Path):
    program = static.default_main_program()
    app.save(program.state_dict(), tmp_path / "state")
    static.Executor().run(feed=FEED)
    expected = program.state_dict()
    with static.scope_guard(static.Scope()):
        program.set_state_dict(app.load(tmp_path / "state"))
        static.Executor().run(feed=FEED)
        for name, value in program.state_dict().items():
            np.testing.assert_array_equal(value, expected[name])


def test_a_state_dict_of_another_program_changes_nothing():
    program = static.default_main_program()
    before = program.state_dict()
    with pytest.raises(ShapeError, match=r"fc_0.b_0 has shape \[3\], the state dict has \[4\]; nothing was changed"):
        program.set_state_dict({"fc_0.w_0": np.zeros((2, 3)), "fc_0.b_0": np.zeros(4)})
    with pytest.warns(UserWarning, match="else: not in this Program"):
        program.set_state_dict({"else": np.zeros(3)})
    for name, value in program.state_dict().items():
        np.testing.assert_array_equal(value, before[name])
