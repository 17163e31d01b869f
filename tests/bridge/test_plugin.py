"""pytest's plugin: the fixture `check_operator`, and nothing for suites that do not use it."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TESTS = """
import numpy as np
import sys
import opsmith

@opsmith.custom_op
def square(x):
    return x * x

@square.backward
def square_grad(x, dy):
    return dy * x

def test_without_it():
    assert not any(name.startswith(("opsmith.testing", "opsmith.checking")) for name in sys.modules)

def test_wrong(check_operator):
    check_operator(square, only=["gradient"])
"""


def pytest_of(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # other plugins take most of the time
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=alone).stdout


def test_the_fixture_fails_with_what_an_issue_needs(tmp_path: Path):
    (tmp_path / "test_it.py").write_text(TESTS)
    is_installed = any(e.name == "opsmith" for e in entry_points(group="pytest11"))
    shown = pytest_of(tmp_path, "-p", "opsmith" if is_installed else "opsmith.pytest_plugin", "--opsmith-seed", "3")
    assert "1 failed, 1 passed" in shown
    assert "it is half of what it should be" in shown
    assert "seed 3" in shown
    assert "app/testing.py" not in shown
