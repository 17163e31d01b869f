"""`Print` shows a value of a running Program, and changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from app import static

SHOWN = "Variable: x\n  - message: here\n  - shape: [2, 2]\n  - dtype: float32\n  - data: [1.0 2.0 3.0]\n"
FEED = {"x": np.array([[1, 2], [3, 4]], "float32")}


@pytest.mark.parametrize(("first_n", "times"), [(-1, 3), (0, 0), (2, 2)])
def test_a_value_is_shown_at_the_first_runs(first_n: int, times: int, capsys: pytest.CaptureFixture[str]):
    x = static.data("x", [None, 2])
    y = static.Print(x, first_n, message="here", summarize=3) * 2.0
    executor = static.Executor()
    for _ in range(3):
        assert executor.run(feed=FEED, fetch_list=[y])[0].tolist() == [[2, 4], [6, 8]]
    assert capsys.readouterr().out == SHOWN * times
