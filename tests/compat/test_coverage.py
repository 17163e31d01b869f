"""`--coverage`: what the façades have is listed, each name is there, and the listing in docs/ is current."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.__main__ import main
from app.compat.coverage import coverage, listing
from app.compat.importing import FACADES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("root", FACADES)
def test_the_command_lists_every_module_with_its_names(root: str, capsys: pytest.CaptureFixture[str]):
    assert main(["run", "--coverage", root]) == 0
    shown = capsys.readouterr().out
    names = coverage(root)
    assert next(iter(names)).partition(".")[0] == root
    for module, offered in names.items():
        assert f"\n{module} ({len(offered)})\n" in f"\n{shown}"
        assert len(set(offered)) == len(offered)


def test_what_is_listed_is_what_programs_of_each_kind_use():
    names = coverage("paddle")
    assert {"to_tensor", "no_grad", "enable_static", "batch"} <= set(names["paddle"])
    assert {"Linear", "Layer", "Sequential"} <= set(names["paddle.nn"])
    assert {"fc", "py_func", "cross_entropy", "accuracy"} <= set(names["paddle.fluid.layers"])


@pytest.mark.parametrize("root", FACADES)
def test_the_listing_in_docs_is_current(root: str):
    text = (ROOT / "docs" / "coverage" / f"{root}.txt").read_text(encoding="utf-8")
    assert text == listing(root) + "\n", f"run: python -m app run --coverage {root} > docs/coverage/{root}.txt"
