"""Installed for every Python of this machine from 3.10 on, the project trains with each engine, and repeats itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from pythons import pythons

ROOT = Path(__file__).parents[2]
ENGINES = ("compiled", "reference", "eager")
TRAIN = "import sys; from app.experiment.train_command import main; sys.exit(main())"
_done: list[str] = []


@pytest.mark.parametrize("version", pythons())
def test_it_installs_and_trains(version, tmp_path, figure):
    folder = tmp_path / "with spaces, zażółć gęślą"
    shutil.copytree(ROOT / "configs", folder / "configs")
    run([pythons()[version], "-m", "venv", str(folder / "venv")], folder)
    python = str(folder / "venv" / "bin" / "python")
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(ROOT)], folder)
    last = {}
    for engine in ENGINES:
        words = ["--config", "configs/quick.yaml", f"engine={engine}", f"output={engine}", "costs=false"]
        run([python, "-c", TRAIN, *words], folder, OPSMITH_CACHE=str(folder / "cache"), LC_ALL="C")
        lines = (folder / engine / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        last[engine] = [json.loads(line)["test_loss"] for line in lines if '"epoch"' in line and "test_loss" in line][
            -1
        ]
    assert max(last.values()) - min(last.values()) < 1e-3
    _done.append(version)
    figure("pythons", ", ".join(_done))


def run(command: list[str], folder: Path, **environment: str) -> None:
    kept = {name: value for name, value in os.environ.items() if name == "PATH" or name.startswith("PIP_")}
    done = subprocess.run(
        command, cwd=folder, env=kept | environment, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
