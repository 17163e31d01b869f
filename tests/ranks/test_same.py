"""Ranks that differ are refused, after an epoch by the bits of their parameters; before a run: test_many_ranks.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.ranks.same import check_agreement
from app.ranks.world import DistError, World


class Second(World):
    """A world of two, where the other rank has another value of a name."""

    size = 2

    def __init__(self, name: str, value: str):
        self._other = {name: value}

    def allgather(self, value: Any) -> list[Any]:
        return [value, value | self._other]


def test_a_parameter_that_differs_between_ranks_is_an_error_with_its_name():
    parameters = {"layers.0.weight": np.ones(3), "layers.1.bias": np.zeros(2)}
    check_agreement(World(), parameters)
    with pytest.raises(DistError, match=r"rank 1 has another parameter layers\.1\.bias than rank 0"):
        check_agreement(Second("parameter layers.1.bias", "other"), parameters)
