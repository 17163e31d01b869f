"""The table of derived gradients: what is right, what is refused, and which memory counts."""

from __future__ import annotations

import numpy as np

from benchmarks.derived import Row, _memory, _summary, _table


def test_the_table_has_a_row_for_each_kernel_and_the_summary_counts_them():
    rows = [
        Row("cumsum", True, True, "", 8, 1.5, 1.25, 0, 0),
        Row("softmax", True, None, "", 20, 3.0, 2.0, 2048, 0),
        Row("topk", True, False, "", 20, 3.0),
        Row("solve", problem="iterations.py:7: no"),
    ]
    assert len(_table(rows).splitlines()) == 2 + len(rows)
    assert "| `cumsum` | right | right | 1.25 | 1.50 | 0 | 0 | 8 | 8 |" in _table(rows)
    assert "| `solve` | refused |" in _table(rows)
    assert _summary(rows).startswith("Of 4 kernels, 3 are derived: 3 right, 1 also to second order, 1 wrong.")
    assert "1.62 times as long in the median, and 2.00 times in the worst case" in _summary(rows)


def allocating(x):
    first = np.zeros(100)
    second = np.empty_like(first)
    del first
    third = np.empty(10)
    return second[:10] + x + third[0]


def test_memory_is_that_of_the_arrays_that_live_at_the_same_time_without_the_results():
    assert _memory(allocating, [np.zeros(10)]) == 8 * (100 + 100 - 10)
