"""The mean of figures by weights."""

from __future__ import annotations

import pytest

from app.errors import AppError
from app.metric.weighted import WeightedMean


def test_a_batch_counts_by_its_weight():
    mean = WeightedMean("loss")
    mean.update(1.0, 30)
    mean.update([4.0], 10)
    assert mean.accumulate() == 1.75
    assert mean.name() == "loss"
    mean.reset()
    mean.update([1.0, 3.0])
    assert mean.accumulate() == 2.0


def test_there_is_no_mean_of_nothing():
    with pytest.raises(AppError, match=r"loss: there is no mean before an update\(\)"):
        WeightedMean("loss").accumulate()
    with pytest.raises(AppError, match="weights must be at least 0, found -1"):
        WeightedMean("loss").update(1.0, -1)
