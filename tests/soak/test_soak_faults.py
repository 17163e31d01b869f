"""The tests of the suite that make something go wrong, once more: how many there are of each kind."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAULTS = {
    "servers": ["data/test_mirror_under_fire.py", "data/test_mirror_certificates.py", "data/test_sources.py"],
    "files": ["data/test_files.py", "run/test_checkpoints.py", "run/test_run_folder.py", "test_locks.py"],
    "configurations": ["run/test_hostile_configurations.py", "run/test_yaml_text.py"],
    "operators": ["run/test_misbehaving_operators.py", "run/test_finite.py"],
    "interruptions": [
        "run/test_resume.py",
        "run/test_resume_unchanged.py",
        "run/test_interrupted_commands.py",
    ],
}
_passed: dict[str, int] = {}


@pytest.mark.parametrize("kind", FAULTS)
def test_nothing_is_lost_to_faults_of(kind: str, figure: Callable[[str, int | str], None]):
    files = [f"tests/{file}" for file in FAULTS[kind]]
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    counted = re.search(r"(\d+) passed", done.stdout)
    assert counted, done.stdout[-4000:]
    _passed[kind] = int(counted[1])
    figure("faults", sum(_passed.values()))
    figure("faults by kind", ", ".join(f"{kind} {count}" for kind, count in _passed.items()))
