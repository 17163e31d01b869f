"""Each script in examples/tutorials runs as it stands, and prints what it says at its end.

Numbers are compared to three digits; `…` stands for anything, and alone on a line for any lines.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import forked
import pytest
from compat.notes import without_notes

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples" / "tutorials").glob("*.py"))
NUMBER = r"-?\d+\.\d*(?:e[+-]?\d+)?"
MARK = "\n# Prints:\n"


def promised(script: Path) -> str:
    """The lines of comment after the mark, at the end of a script."""
    _, mark, tail = script.read_text(encoding="utf-8").rpartition(MARK)
    assert mark, f"{script.name} does not end in what it prints"
    return "".join(line[2:] or "\n" for line in tail.splitlines(keepends=True))


def pattern(text: str) -> tuple[str, list[float]]:
    """A regular expression for what is promised, with a group for each number, and the numbers."""
    parts = re.split(rf"(^…\n|…|{NUMBER})", text, flags=re.MULTILINE)
    expression, numbers = "", []
    for part in parts:
        if part == "…\n":
            expression += r"(?:.*\n)*?"
        elif part == "…":
            expression += r".*?"
        elif re.fullmatch(NUMBER, part):
            expression += f"({NUMBER})"
            numbers.append(float(part))
        else:
            expression += re.sub(r"(?:\\ )+", r"\\s+", re.escape(part))  # NumPy pads numbers to the same width
    return expression, numbers


def fits(printed: str, text: str) -> bool:
    expression, numbers = pattern(text)
    match = re.fullmatch(expression, printed)
    return match is not None and all(
        math.isclose(float(a), b, rel_tol=1e-3, abs_tol=1e-3) for a, b in zip(match.groups(), numbers, strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
def test_a_tutorial_prints_what_its_last_comment_says(script: Path):
    done = forked.run(["-m", "app", "run", script], env={**os.environ, "OPSMITH_DATA": "sample"})
    assert (done.returncode, without_notes(done.stderr)) == (0, "")
    text = promised(script)
    assert fits(done.stdout, text), f"{script.name} printed\n{done.stdout}\nand promised\n{text}"


def test_there_are_tutorials_of_each_framework():
    imported = {name for script in SCRIPTS for name in re.findall(r"^(?:import|from) (\w+)", script.read_text(), re.M)}
    assert {"paddle", "torch"} <= imported
