"""Installed for every Python of this machine from 3.10 on, the project trains with each engine, and repeats itself.

pip installs the newest versions of what the project needs; once it installs the lowest that pyproject.toml permits.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from pythons import pythons

ROOT = Path(__file__).parents[2]
ENGINES = ("compiled", "reference", "eager")
TRAIN = "import sys; from opsmith.experiment.train_command import main; sys.exit(main())"
_done: list[str] = []


def lowest_versions() -> list[str]:
    """What the project needs, each in the lowest version that pyproject.toml permits."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.search(r"^dependencies = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert listed is not None
    return [f"{name}=={version}" for name, version in re.findall(r'"([\w.-]+)>=([\d.]+)', listed[1])]


@pytest.mark.parametrize("version", pythons())
def test_the_newest_versions_install_and_train(version, tmp_path, figure):
    installed_and_trained(version, tmp_path / "with spaces, zażółć gęślą", [])
    _done.append(version)
    figure("pythons", ", ".join(_done))


def test_the_lowest_versions_install_and_train(tmp_path):
    assert len(lowest_versions()) >= 10
    installed_and_trained(next(iter(pythons())), tmp_path, lowest_versions())


def installed_and_trained(version: str, folder: Path, requirements: list[str]) -> None:
    """Install the project in a new environment, with further requirements, and train with each engine."""
    shutil.copytree(ROOT / "configs", folder / "configs")
    run([pythons()[version], "-m", "venv", str(folder / "venv")], folder)
    python = str(folder / "venv" / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(ROOT), *requirements]
    run(install, folder)
    last = {}
    for engine in ENGINES:
        words = ["--config", "configs/quick.yaml", f"engine={engine}", f"output={engine}", "costs=false"]
        run([python, "-c", TRAIN, *words], folder, OPSMITH_CACHE=str(folder / "cache"), LC_ALL="C")
        lines = (folder / engine / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines if '"epoch"' in line and "test_loss" in line]
        last[engine] = rows[-1]["test_loss"]
    assert max(last.values()) - min(last.values()) < 1e-3


def run(command: list[str], folder: Path, **environment: str) -> None:
    inherited = {name: value for name, value in os.environ.items() if name == "PATH" or name.startswith("PIP_")}
    done = subprocess.run(
        command, cwd=folder, env=inherited | environment, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
