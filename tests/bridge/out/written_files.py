"""What holds for every file that an operator leaves in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def assert_formatted(folder: Path) -> None:
    """The files of a folder are as a formatter leaves them, and a linter has nothing to say."""
    for command in (["format", "--check", "--diff"], ["check", "--extend-select", "I,E501", "--ignore", "F841"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--isolated", "--line-length", "120", "."],
            cwd=folder, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout


def assert_passes_without(folder: Path, *packages: str) -> None:
    """The tests of a folder pass in a process that cannot import some packages."""
    code = (
        "import os, sys; os.environ['PYTEST_DISABLE_PLUGIN_AUTOLOAD'] = '1'; "
        f"sys.modules.update(dict.fromkeys({packages!r})); import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    )
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:opsmith", "-c", "/dev/null", "--rootdir", ".", "."]
    done = subprocess.run([sys.executable, "-P", "-c", code, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
