"""Programs as files, run by `python -m app run`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import forked
import pytest

Run = Callable[..., forked.Done]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a text as a script in a process of its own; gives how it ended and what it printed."""

    def run_text(text: str, *arguments: str) -> forked.Done:
        script = tmp_path / "script.py"
        script.write_text(dedent(text))
        return forked.run(["-m", "app", "run", script, *arguments])

    return run_text
