"""The tables: what they show, and where they are written."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import calls, growth, lenet, report, run
from benchmarks.process import Run
from benchmarks.rounds import summary

OURS = Run([0.9, 0.10, 0.20, 0.12, 0.11], [0.5, 0.6, 0.7, 0.8, 0.9], [1, 1.5, 2, 2.5, 3], 200)
SLOW = Run([0.9, 0.30, 0.40, 0.32, 0.31], [0.5, 0.6, 0.7, 0.8, 0.9], [1, 2, 3, 4, 5], 600)
MACHINE = {"date": "2026-01-01", "cpu": "A CPU", "cores": 2, "system": "Linux", "python": "3.12", "load": 0.1}
MACHINE |= {"blas": "openblas", "packages": {"numpy": "2.4"}}


@pytest.fixture
def rows() -> list[dict]:
    missing = Run(problem="missing: torch")
    return [
        summary("torch_eager", "PyTorch", [missing]),
        summary("slow", "Slow", [SLOW, Run(problem="failed: once")]),
        summary("ours", "Ours", [OURS, Run([0.9, 0.09, 0.2], [0.1, 0.2, 0.3], [1, 2, 3], 210)]),
    ]


def test_a_row_is_the_best_of_its_rounds(rows):
    ours = rows[2]
    assert (ours["best"], ours["five"], ours["peak"], ours["accuracy"]) == (0.09, 3, 210, 0.3)
    assert ours["median"] == pytest.approx(0.115)


def test_the_table_has_the_fastest_first_and_says_what_is_missing(rows):
    lines = report.table(rows).splitlines()[2:]
    assert lines[0] == "| Ours | 0.0900 | 0.1150 | 1.00 | 3.00 | 210 | 0.3000 |"
    assert lines[1].startswith("| Slow | 0.3000 | 0.3150 | 3.33 | 5.00 | 600 |")
    assert lines[2] == "| PyTorch | missing: torch | | | | | |"


def test_the_table_of_lenet_compares_the_best_epochs_with_ours():
    rows = [
        {"name": "ours", "title": "Ours", "problem": "", "seconds": {"64": [2.0, 1.0], "256": [0.5]}, "accuracy": 0.5},
        {"name": "slow", "title": "Slow", "problem": "", "seconds": {"64": [3.0], "256": [4.0]}, "accuracy": 0.25},
        {"name": "torch_eager", "title": "PyTorch", "problem": "missing: torch", "seconds": {}},
    ]
    ours, slow, missing = lenet.table(rows).splitlines()[2:]
    assert ours == "| Ours | 1.00 s | 1.00 | 0.50 s | 1.00 | 50.00% |"
    assert slow == "| Slow | 3.00 s | 3.00 | 4.00 s | 8.00 | 25.00% |"
    assert missing == "| PyTorch | missing: torch | | | | |"


def test_the_table_of_growth_marks_what_was_extrapolated():
    points = [
        {"what": "width", "value": 4096, "rows": 100, "seconds": {"ours": 2.0}, "ready": {"ours": [1.0]}},
        {"what": "depth", "value": 1, "rows": 60_000, "seconds": {"ours": None}, "ready": {"ours": [5.0, 1.0]}},
        {"what": "depth", "value": 64, "rows": 60_000, "seconds": {"ours": None}, "ready": {"ours": [None]}},
    ]
    text = report.growth_table(points, growth.CONTENDERS)
    assert "| 4096 | ~2.00 |" in text
    assert "| 1 | - | 4.00 | 1.00 |" in text
    assert "| 64 | - | - | - |" in text


def test_text_goes_between_the_marks_and_nowhere_else(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- x -->\nold\n<!-- /x -->\nafter\n")
    assert report.replace_between(page, "x", "new")
    assert page.read_text() == "before\n<!-- x -->\nnew\n<!-- /x -->\nafter\n"
    assert not report.replace_between(page, "y", "new")
    assert not report.replace_between(tmp_path / "none.md", "x", "new")


def test_results_are_kept_and_shown_on_the_page(monkeypatch, tmp_path: Path, rows, capsys):
    page = tmp_path / "docs" / "benchmarks.md"
    page.parent.mkdir()
    page.write_text(run.PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(run, "PAGE", page)
    part = {"machine": MACHINE, "sample": True, "rows": rows, "paired": {"shipped": [1.0, 1.02]}}
    part["calls"] = [{"title": "Ours", "problem": "", "us": [11.0, 12.0, 40.0]}]
    edited = [{"title": "Ours", "problem": "", "seconds": [7.0, 8.0]}]
    run.write({"contenders": part, "first runs": {"machine": MACHINE, "sample": True, "rows": edited}})
    text = page.read_text(encoding="utf-8")
    assert "| Ours | 0.0900" in text
    assert "| shipped | 1.010 | 1.000 | 1.020 |" in text
    assert "| Ours | 7.00 | 7.50 |" in text
    assert "| Ours | 12.0 | 11.0 |" in text
    assert "committed sample" in text
    assert json.loads((tmp_path / "results.json").read_text())["contenders"]["rows"][0]["problem"] == "missing: torch"
    assert "benchmarks.md" in capsys.readouterr().out
    for part in ("machine", "table", "first runs", "paired", "calls", "lenet", "growth"):
        assert f"<!-- benchmarks: {part} -->" in text


def test_an_unknown_contender_is_refused(capsys):
    with pytest.raises(SystemExit):
        run.main(["--only", "nobody"])
    assert "numpy_plain" in capsys.readouterr().err


def test_a_call_that_could_not_be_measured_says_why():
    rows = [
        {"title": "B", "problem": "missing: b", "us": []},
        {"title": "A", "problem": "", "us": [2.0]},
    ]
    assert report.calls_table(rows).splitlines()[2:] == ["| A | 2.0 | 2.0 |", "| B | missing: b | |"]


@pytest.mark.slow
def test_every_caller_is_measured_or_missing(capsys):
    rows = calls.measure(1)
    assert [row["title"] for row in rows] == list(calls.CALLERS)
    assert all(row["us"] or row["problem"].startswith("missing") for row in rows)
    assert min(rows[1]["us"]) > 0


def test_the_chart_has_a_bar_for_every_contender_that_ran(rows):
    chart = report.bars(rows)
    assert chart.count("<rect") == 2
    assert "prefers-color-scheme: dark" in chart
    ElementTree.fromstring(chart)
