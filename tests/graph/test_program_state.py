"""What a Program keeps is given as a dictionary and taken over from one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import app
from app import static
from app.errors import ProgramError, ShapeError

FEED = {"x": np.ones([2, 3], "float32")}


@pytest.fixture
def program() -> static.Program:
    out = static.nn.fc(static.data("x", [None, 3]), 2)
    app.optimizer.Adam(learning_rate=0.1).minimize(app.mean(out * out))
    executor = static.Executor()
    executor.run(static.default_startup_program())
    executor.run(feed=FEED)
    return static.default_main_program()


def test_parameters_and_the_rest_are_told_apart(program: static.Program):
    parameters, rest = program.state_dict("param"), program.state_dict("opt")
    assert list(parameters) == ["fc_0.w_0", "fc_0.b_0"]
    assert any("moment" in name for name in rest)
    assert program.state_dict().keys() == parameters.keys() | rest.keys()
    with pytest.raises(ProgramError, match="mode must be 'all', 'param' or 'opt', not 'half'"):
        program.state_dict("half")


def test_training_goes_on_from_a_file_as_if_it_had_not_stopped(program: static.Program, tmp_path: Path):
    app.save(program.state_dict(), tmp_path / "state")
    static.Executor().run(feed=FEED)
    expected = program.state_dict()
    with static.scope_guard(static.Scope()):
        program.set_state_dict(app.load(tmp_path / "state"))
        static.Executor().run(feed=FEED)
        for name, value in program.state_dict().items():
            np.testing.assert_array_equal(value, expected[name])


def test_what_it_gives_is_a_copy(program: static.Program):
    state = program.state_dict()
    state["fc_0.w_0"][:] = 9
    assert not (program.state_dict()["fc_0.w_0"] == 9).any()


def test_a_shape_that_does_not_fit_changes_nothing(program: static.Program):
    before = program.state_dict()
    with pytest.raises(ShapeError, match=r"fc_0.b_0 has shape \[2\], the state dict has \[3\]; nothing was changed"):
        program.set_state_dict({"fc_0.w_0": np.zeros((3, 2)), "fc_0.b_0": np.zeros(3)})
    np.testing.assert_array_equal(program.state_dict()["fc_0.w_0"], before["fc_0.w_0"])


def test_what_the_program_does_not_have_is_told(program: static.Program):
    with pytest.warns(UserWarning, match="else: not in this Program"):
        program.set_state_dict({"else": np.zeros(3)})


def test_an_engine_that_cannot_explain_programs_is_refused():
    with pytest.raises(ProgramError, match="no engine 'toy' that explains Programs; expected one of compiled"):
        static.Program().explain(engine="toy")
