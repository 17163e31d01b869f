"""`check` finds the bugs of public repositories, and raises no alarm about the mended operators."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (the extra `bridge`)")
pytest.importorskip("jax", reason="JAX is not installed (the extra `bridge`)")

from against_others import BEGIN, END, OUTCOMES, PAGE, bugs, found_by_check, table
from bugs import Bug

BUGS = bugs()
QUICK = ("total_scores", "own_strides", "into_dy", "intermediate")
MISSED: tuple[str, ...] = ()
"""The bugs that no check finds."""


def marked(bug: Bug) -> object:
    return pytest.param(bug, id=bug.name, marks=[] if bug.name in QUICK else [pytest.mark.soak])


@pytest.mark.slow
@pytest.mark.parametrize("bug", [marked(bug) for bug in BUGS])
def test_the_bug_is_found_and_the_mended_operator_passes(bug: Bug):
    assert bool(found_by_check(bug, mended=False)) == (bug.name not in MISSED)
    assert found_by_check(bug, mended=True) == ""


def test_the_page_has_the_table_of_what_was_recorded():
    outcomes = json.loads(OUTCOMES.read_text(encoding="utf-8"))
    assert [row["where"] for row in outcomes] == [bug.where for bug in BUGS]
    text = PAGE.read_text(encoding="utf-8")
    assert text.partition(BEGIN)[2].partition(END)[0] == table(outcomes)
