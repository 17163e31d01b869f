"""The façade prints what was recorded from PyTorch itself; where PyTorch is there, it is asked again."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from run_facts import same

ROOT = Path(__file__).parents[3]
RUNNER = Path(__file__).with_name("run_facts.py")
FACTS = sorted(Path(__file__).with_name("facts").glob("*.txt"))


def answer(*command: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def is_installed(package: str) -> bool:
    spec = importlib.util.find_spec(package)
    return spec is not None and spec.origin is not None


@pytest.mark.slow
def test_the_facade_prints_what_pytorch_printed():
    assert answer("-m", "app", "run", str(RUNNER), *map(str, FACTS)) == (0, "")


@pytest.mark.slow
@pytest.mark.skipif(not is_installed("torch"), reason="PyTorch is not installed")
def test_pytorch_still_prints_what_was_recorded():
    assert answer("-W", "ignore", str(RUNNER), *map(str, FACTS)) == (0, "")


def test_there_are_facts_of_each_area():
    assert {facts.stem for facts in FACTS} == {
        "autograd", "data", "edges", "function", "images", "matrices", "modules", "optimizers",
        "printing", "schedules", "sharing", "tensors",
    }  # fmt: skip


@pytest.mark.slow
def test_a_difference_is_found(tmp_path: Path):
    wrong = tmp_path / "wrong.txt"
    wrong.write_text(">>> import torch\n>>> torch.ones(2)\ntensor([1., 2.])\n>>> torch.ones(1) + 1\ntensor([2.])\n")
    status, text = answer("-m", "app", "run", str(RUNNER), str(wrong))
    assert status == 1
    assert "wrong.txt:2: torch.ones(2)\nprinted\ntensor([1., 1.])\nexpected\ntensor([1., 2.])" in text
    assert "+ 1" not in text


@pytest.mark.parametrize(
    ("found", "wanted", "equal"),
    [
        ("tensor(1.0001)", "tensor(1.0000)", True),
        ("tensor(1.01)", "tensor(1.00)", False),
        ("tensor(1., 2)", "tensor(1., 3)", False),
        ("tensor(1.)", "tensor([1.])", False),
    ],
)
def test_only_the_last_digits_of_numbers_may_differ(found: str, wanted: str, equal: bool):
    assert same(found, wanted) is equal
