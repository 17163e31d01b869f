"""Programs as files, run by `python -m app run` in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[2]

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a text as a script; gives the finished process."""

    def run_text(text: str, *arguments: str, name: str = "script.py") -> subprocess.CompletedProcess[str]:
        (tmp_path / name).write_text(dedent(text))
        command = [sys.executable, "-m", "app", "run", str(tmp_path / name), *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    return run_text
