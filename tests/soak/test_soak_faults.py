"""The tests of the suite that make something go wrong, once more: how many there are of each kind."""

from __future__ import annotations

import re

import pytest

FAULTS = {
    "servers": ["data/test_mirror_under_fire.py", "data/test_mirror_certificates.py", "data/test_sources.py"],
    "files": ["data/test_files.py", "run/test_checkpoints.py", "run/test_run_folder.py", "test_files.py"],
    "configurations": ["run/test_hostile_configurations.py", "run/test_yaml_text.py"],
    "operators": ["run/test_misbehaving_operators.py", "run/test_nonfinite.py"],
    "interruptions": ["run/test_resume.py", "run/test_resume_unchanged.py", "run/test_interrupted_commands.py"],
}
_passed: dict[str, int] = {}


@pytest.mark.parametrize("kind", FAULTS)
def test_nothing_is_lost_to_faults_of(kind, python, figure):
    files = [f"tests/{file}" for file in FAULTS[kind]]
    printed = python("-m", "pytest", "-v", "-p", "no:cacheprovider", *files)
    counted = re.search(r"(\d+) passed", printed)
    assert counted, printed[-4000:]
    _passed[kind] = int(counted[1])
    figure("faults", sum(_passed.values()))
    figure("faults by kind", ", ".join(f"{kind} {count}" for kind, count in _passed.items()))
