"""The formula of docs/scaling.md: what it says of few ranks and of many, of slow networks, of batches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.scaling import page
from benchmarks.scaling.model import (
    Computing,
    Network,
    arrays,
    communication,
    fitted,
    iteration,
    messages,
    stops_paying,
)

FAST, SLOW = Network(1e-6, 1e10), Network(1e-3, 1e8)
ROOT = Path(__file__).parents[2]


def test_the_line_through_batches_is_found():
    found = fitted({rows: 0.002 + 3e-5 * rows for rows in (64, 128, 256)})
    assert found.fixed == pytest.approx(0.002)
    assert found.per_row == pytest.approx(3e-5)


def test_small_arrays_travel_together():
    assert arrays(256) == [802816, 1024, 10240, 40]
    assert messages(arrays(256)) == [802816, 11304]
    assert messages([1 << 20]) == [1 << 20]


def test_two_ranks_send_their_gradients_once_each_way():
    assert communication([1_000_000], 1, "allreduce", SLOW) == 0
    assert communication([1_000_000], 2, "allreduce", SLOW) == pytest.approx(2e-3 + 1e6 / 1e8)
    assert communication([1_000_000], 2, "pserver", SLOW) == pytest.approx(4e-3 + 2e6 / 1e8)


def test_ranks_that_share_cores_take_turns():
    computing = Computing(0.001, 1e-5)
    four = iteration(computing, 256, [1000], 4, FAST, cores=2)
    assert four == pytest.approx((0.001 + 64e-5) * 2, rel=0.01)


def test_more_machines_pay_longer_on_a_faster_network_and_with_a_larger_batch():
    computing = Computing(0.001, 1e-4)
    slow, _ = stops_paying(computing, 256, [1 << 20], SLOW)
    fast, times = stops_paying(computing, 256, [1 << 20], FAST)
    large, _ = stops_paying(computing, 4096, [1 << 20], FAST)
    assert slow < fast < large
    assert 1 < times < fast


def test_the_page_shows_what_was_measured_last():
    results = json.loads((ROOT / "benchmarks" / "scaling" / "results.json").read_text(encoding="utf-8"))
    shown = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
    for name, text in page.texts(results).items():
        assert f"<!-- scaling: {name} -->\n{text}\n<!-- /scaling: {name} -->" in shown
