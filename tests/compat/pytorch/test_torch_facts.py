"""The façade prints what was recorded from PyTorch itself, which is run again where it is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import forked
import pytest

RUNNER = Path(__file__).with_name("run_facts.py")
FACTS = sorted(Path(__file__).with_name("facts").glob("*.txt"))


def compare(*facts: Path) -> tuple[int, str]:
    done = forked.run(["-m", "app", "run", RUNNER, *facts])
    return done.returncode, done.stdout  # a note on standard error says that an installed PyTorch is passed over


@pytest.mark.slow
def test_the_facade_prints_what_pytorch_printed():
    assert len(FACTS) == 3
    assert compare(*FACTS) == (0, "")


@pytest.mark.slow
def test_pytorch_still_prints_what_was_recorded():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    words = [sys.executable, "-W", "ignore", str(RUNNER), *map(str, FACTS)]
    assert subprocess.run(words, capture_output=True, text=True, check=False).stdout == ""


@pytest.mark.slow
def test_the_runner_of_facts_reports_a_difference(tmp_path: Path):
    wrong = tmp_path / "wrong.txt"
    wrong.write_text(">>> import torch\n>>> torch.ones(2)\ntensor([1., 2.])\n>>> torch.ones(1) + 1\ntensor([2.])\n")
    status, text = compare(wrong)
    assert status == 1
    assert "wrong.txt:2: torch.ones(2)\nprinted\ntensor([1., 1.])\nexpected\ntensor([1., 2.])" in text
    assert "+ 1" not in text
