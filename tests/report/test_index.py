"""The index over a folder of runs."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from browser import Visitor
from made_runs import HOSTILE, made_run

from app.__main__ import main
from app.report.report import write_report


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three runs, one of them without a report."""
    write_report(made_run(tmp_path / "runs" / "first run"))
    write_report(made_run(tmp_path / "runs" / "second", changes={"relu": {"test_accuracy": 0.1}}))
    made_run(tmp_path / "runs" / "third", (HOSTILE,), finished=1)
    return tmp_path / "runs"


def test_every_operator_of_every_run_has_a_row(runs: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["report", str(runs)]) == 0
    assert capsys.readouterr().out == f"The index is {runs}/index.html\n"
    page = (runs / "index.html").read_text(encoding="utf-8")
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", page)
    assert len(rows) == 5
    assert 'href="first%20run/report.html"' in rows[0]
    assert "href" not in rows[4]
    assert "at chance level" in rows[3]
    assert "1 of 3 epochs" in rows[4]
    assert page.count('class="spark"') == 4
    assert HOSTILE not in page


def test_the_accuracy_is_that_on_the_test_images_where_epochs_were_tested_on_others(runs: Path):
    tested = [{"event": "tested", "operator": "relu", "accuracy": 0.125, "loss": 1.0, "seed": seed} for seed in (0, 1)]
    made_run(runs / "second", seeds=(0, 1), others=tested)
    assert main(["report", str(runs)]) == 0
    page = (runs / "index.html").read_text(encoding="utf-8")
    assert page.count('data-value="0.125">12.50 %') == 1


def test_a_run_whose_name_is_no_text_is_linked(runs: Path):
    (runs / "first run").rename(runs / os.fsdecode(b"\xff run"))
    assert main(["report", str(runs)]) == 0
    assert 'href="%FF%20run/report.html"' in (runs / "index.html").read_text(encoding="utf-8")


def test_a_page_of_someone_else_is_not_replaced(runs: Path, capsys: pytest.CaptureFixture[str]):
    page = runs / "index.html"
    page.write_text("<title>Home</title>")
    assert main(["report", str(runs)]) == 1
    assert f"error: {page} exists and was not written by this program; remove it, or move" in capsys.readouterr().err
    assert page.read_text() == "<title>Home</title>"
    page.unlink()
    assert [main(["report", str(runs)]) for _ in range(2)] == [0, 0]


def test_a_damaged_run_is_named_and_not_listed(runs: Path):
    (runs / "second" / "metrics.jsonl").write_text("[1]\n")
    assert main(["report", str(runs)]) == 0
    page = (runs / "index.html").read_text(encoding="utf-8")
    assert "second is not listed: " in page
    assert "first run" in page


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_a_click_on_a_column_heading_sorts_by_it(visitor: Visitor, runs: Path):
    main(["report", str(runs)])
    page = visitor.open((runs / "index.html").resolve().as_uri())
    accuracies = page.locator("tbody td:nth-child(6)")
    shown = ["70.00 %", "72.00 %", "70.00 %", "10.00 % at chance level", "50.00 % 1 of 3 epochs"]
    assert accuracies.all_inner_texts() == shown
    for order in ([3, 4, 0, 2, 1], [1, 0, 2, 4, 3]):
        page.click("thead button >> text=accuracy >> nth=0")
        assert accuracies.all_inner_texts() == [shown[row] for row in order]
    assert page.get_attribute("thead th >> nth=5", "aria-sort") == "descending"
    assert page.evaluate("window.taken") is None
    assert len(visitor.requested) == 1
