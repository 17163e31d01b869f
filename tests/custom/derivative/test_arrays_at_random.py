"""Derived gradients of functions on arrays made at random: none is wrong.

`OPSMITH_EXAMPLES=600 pytest tests/custom/derivative/test_arrays_at_random.py` tries as many functions.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from custom.derivative.programs import Program
from custom.derivative.slopes_of_arrays import function_of_text, verdict

from app.custom.derivative.scope import UnderivableError

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("OPSMITH_EXAMPLES", "24"))
GROUPS = 4


def verdict_of(seed: int, orders: int) -> str:
    random = np.random.default_rng(seed)
    arguments = [random.uniform(0.4, 1.1, 3), random.uniform(0.2, 0.9, (3, 3)), random.integers(0, 3, 3)]
    try:
        return verdict(function_of_text(Program(seed, blocks=2, depth=2).text()), arguments, orders)
    except UnderivableError:
        return "refused"


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_gradient_of_a_random_function_is_wrong(group: int):
    verdicts = {seed: verdict_of(seed, 1 + (seed % 8 == 0)) for seed in range(group, EXAMPLES, GROUPS)}
    assert [seed for seed, each in verdicts.items() if each == "wrong"] == []
    assert list(verdicts.values()).count("ok") >= len(verdicts) // 2
