"""What operators declare of themselves: nothing is guessed from the names of attributes."""

from __future__ import annotations

import numpy as np
import pytest

import app
from app import static, to_tensor
from app.engine import Executor
from app.ops import REGISTRY, OpDef


def test_built_in_operators_say_whether_they_draw_and_know_training():
    for name, definition in REGISTRY.items():
        assert definition.random == ("seed" in definition.attributes), name
        assert definition.has_training_mode == ("training" in definition.attributes), name
        assert not definition.custom


@pytest.fixture
def shifted() -> OpDef:
    """An operator of a user's whose settings have the names that built-in operators use for something else."""

    @app.custom_op
    def shifted(x: np.ndarray, *, seed: float = 0.5, training: bool = True) -> np.ndarray:
        return x + seed if training else x - seed

    return shifted


def test_settings_of_a_custom_operator_mean_what_its_function_says(shifted: OpDef):
    assert shifted.custom
    assert not shifted.random
    assert not shifted.has_training_mode
    main = static.Program()
    with static.program_guard(main, static.Program()):
        x = static.data("x", [2])
        y = shifted(x)
    feed = {"x": np.zeros(2, "float32")}
    for program in (main, main.clone(for_test=True)):
        (found,) = Executor().run(program, feed, [y.name])
        assert found.tolist() == shifted(to_tensor([0.0, 0.0])).tolist() == [0.5, 0.5]
