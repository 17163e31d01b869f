"""Benchmark figures: the tables that show them, and the page that they are written to."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import calls, report, run
from benchmarks.process import Run
from benchmarks.rounds import summary

OURS = Run([0.9, 0.10, 0.20, 0.12, 0.11], [0.5, 0.6, 0.7, 0.8, 0.9], [1, 1.5, 2, 2.5, 3], 200)
SLOW = Run([0.9, 0.30, 0.40, 0.32, 0.31], [0.5, 0.6, 0.7, 0.8, 0.9], [1, 2, 3, 4, 5], 600)
MACHINE = {"date": "2026-01-01", "cpu": "A CPU", "cores": 2, "system": "Linux", "python": "3.12", "load": 0.1}
MACHINE |= {"blas": "openblas", "packages": {"numpy": "2.4"}}
MISSING = {"name": "torch_eager", "title": "PyTorch", "problem": "missing: torch", "seconds": {}}
LENET = [
    {"name": "ours", "title": "Ours", "problem": "", "seconds": {"64": [2.0, 1.0], "256": [0.5]}, "accuracy": 0.5},
    {"name": "slow", "title": "Slow", "problem": "", "seconds": {"64": [3.0], "256": [4.0]}, "accuracy": 0.25},
    MISSING,
]
GROWTH = [
    {"what": "width", "value": 4096, "rows": 100, "seconds": {"ours": 2.0}, "ready": {"ours": [1.0]}},
    {"what": "depth", "value": 1, "rows": 60_000, "seconds": {"ours": None}, "ready": {"ours": [5.0, 1.0]}},
    {"what": "depth", "value": 64, "rows": 60_000, "seconds": {"ours": None}, "ready": {"ours": [None]}},
]
ROWS = [
    summary("torch_eager", "PyTorch", [Run(problem="missing: torch")]),
    summary("slow", "Slow", [SLOW, Run(problem="failed: once")]),
    summary("ours", "Ours", [OURS, Run([0.9, 0.09, 0.2], [0.1, 0.2, 0.3], [1, 2, 3], 210)]),
]
CALLS = [
    {"title": "Ours", "problem": "", "us": [11.0, 12.0, 40.0]},
    {"title": "PyTorch", "problem": "missing: torch", "us": []},
]
EXPECTED = {  # the first lines below the head of each table: the fastest first, the missing last
    "table": [
        "| Ours | 0.0900 | 0.1150 | 1.00 | 3.00 | 210 | 0.3000 |",
        "| Slow | 0.3000 | 0.3150 | 3.33 | 5.00 | 600 | 0.9000 |",
        "| PyTorch | missing: torch | | | | | |",
    ],
    "paired": ["| shipped | 1.010 | 1.000 | 1.020 |"],
    "calls": ["| Ours | 12.0 | 11.0 |", "| PyTorch | missing: torch | |"],
    "first runs": ["| Ours | 7.00 | 7.50 |", "| PyTorch | missing: torch | |"],
    "lenet": [
        "| Ours | 1.00 s | 1.00 | 0.50 s | 1.00 | 50.00% |",
        "| Slow | 3.00 s | 3.00 | 4.00 s | 8.00 | 25.00% |",
        "| PyTorch | missing: torch | | | | |",
    ],
    "growth": ["| 4096 | ~2.00 |", "| 1 | - | 4.00 | 1.00 |", "| 64 | - | - | - |"],  # ~: extrapolated
}


def test_results_are_kept_and_shown_on_the_page(monkeypatch, tmp_path: Path, capsys):
    page = tmp_path / "docs" / "benchmarks.md"
    page.parent.mkdir()
    page.write_text(run.PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    for name, path in (("ROOT", tmp_path), ("RESULTS", tmp_path / "results.json"), ("PAGE", page)):
        monkeypatch.setattr(run, name, path)
    about = {"machine": MACHINE, "sample": True}
    first_runs = [{"title": "Ours", "problem": "", "seconds": [7.0, 8.0]}, MISSING]
    results = {
        "contenders": {**about, "rows": ROWS, "paired": {"shipped": [1.0, 1.02]}, "calls": CALLS},
        "first runs": {**about, "rows": first_runs},
        "lenet": {**about, "rows": LENET},
        "growth": {**about, "points": GROWTH},
    }
    run.write(results)
    text = page.read_text(encoding="utf-8")
    for part, lines in EXPECTED.items():
        shown = text.partition(f"<!-- benchmarks: {part} -->\n")[2].partition(f"\n<!-- /benchmarks: {part} -->")[0]
        assert [line for line in shown.splitlines() if line in lines] == lines
    assert "committed sample" in text.partition("<!-- benchmarks: machine -->")[2][:100]
    assert json.loads((tmp_path / "results.json").read_text())["contenders"]["rows"][0]["problem"] == "missing: torch"
    assert "benchmarks.md" in capsys.readouterr().out
    chart = page.with_suffix(".svg").read_text(encoding="utf-8")
    assert chart.count("<rect") == 2
    assert "prefers-color-scheme: dark" in chart
    ElementTree.fromstring(chart)


def test_text_replaces_only_what_is_between_its_marks(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- x -->\nold\n<!-- /x -->\nafter\n")
    assert report.replace_between(page, "x", "new")
    assert page.read_text() == "before\n<!-- x -->\nnew\n<!-- /x -->\nafter\n"
    assert not report.replace_between(page, "y", "new")
    assert not report.replace_between(tmp_path / "none.md", "x", "new")


def test_an_unknown_contender_is_an_error(capsys):
    with pytest.raises(SystemExit):
        run.main(["--only", "nobody"])
    assert "numpy_plain" in capsys.readouterr().err


def test_every_caller_is_measured_or_missing(monkeypatch, capsys):
    monkeypatch.setattr(calls, "SAMPLES", 2)
    monkeypatch.setattr(calls, "CALLS", 3)
    for title in calls.CALLERS:
        calls.main(title)
        output = json.loads(capsys.readouterr().out)
        if "missing" in output:
            assert title.startswith(("Paddle", "PyTorch"))
            assert find_spec(output["missing"]) is None
        else:
            assert min(output["us"]) > 0


@pytest.mark.slow
def test_a_caller_is_measured_in_a_process_of_its_own(monkeypatch):
    monkeypatch.setattr(calls, "CALLERS", dict([*calls.CALLERS.items()][:1]))  # NumPy alone
    (row,) = calls.measure(1)
    assert [row["title"]] == list(calls.CALLERS)
    assert (row["problem"], len(row["us"])) == ("", calls.SAMPLES)
