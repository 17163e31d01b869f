"""The commands a newcomer types: what `make` lists, and when it sets up. A pretended Python stands in for pip."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
SETTING_UP = "Setting up .venv"

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("make") is None, reason="needs make")]

PRETENDED_PYTHON = f"""#!/bin/sh
case "$1 $2" in
  -c*) exec '{sys.executable}' "$@" ;;
  "-m venv") rm -rf .venv; mkdir -p .venv/bin .venv/lib/python3/site-packages; cp "$0" .venv/bin/python ;;
  "-m pip") if test -e pip-waits; then touch pip-began; while test -e pip-waits; do sleep 0.01; done; fi; echo "pip $*"
     test ! -e pip-fails && echo /absolute > .venv/lib/python3/site-packages/_opsmith.pth ;;
  *) echo "ran: $*" ;;
esac
"""


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    inherited = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    pipe, environment = subprocess.PIPE, inherited | {"PYTHON": "./my python"}
    return subprocess.Popen(["make", *arguments], cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)


def make(folder: Path, *arguments: str) -> str:
    process = start(folder, *arguments)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


def failed(folder: Path, *arguments: str) -> str:
    """The errors of make, which ends before it runs a command."""
    process = start(folder, *arguments)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "ran:" not in out
    return err


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "a folder, ünd more"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "requirements-dev.txt"):
        shutil.copy(ROOT / name, folder)
    python = folder / "my python"
    python.write_text(PRETENDED_PYTHON)
    python.chmod(0o755)
    return folder


def test_make_lists_every_target_with_a_line():
    listed = re.findall(r"^make (\S+) +\S.*$", make(ROOT), re.MULTILINE)
    assert {"train", "test", "data", "lint", "clean", "quick"} <= set(listed)
    phony = re.search(r"^\.PHONY: help (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    assert listed == phony[1].split()


TARGETS = {
    "train": "train.py seed=1",
    "quick": "train.py --config configs/quick.yaml seed=1",
    "compare": "-m opsmith compare --config configs/compare.yaml seed=1",
    "demo": "-m opsmith demo seed=1",
    "test": "-m pytest --numprocesses=auto --dist=loadgroup seed=1",
    "data": "-m opsmith data fetch",
}


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_runs_its_command_in_the_virtual_environment(target: str):
    assert make(ROOT, "-n", target, "ARGS=seed=1").splitlines()[-1] == f".venv/bin/python {TARGETS[target]}"


def test_train_mpi_starts_or_resumes_on_n_ranks_and_checks_its_arguments(checkout: Path):
    words = ["train-mpi", "MPIEXEC=true", "N=3"]
    command = "true -n 3 .venv/bin/python train.py"
    assert f"{command} --config configs/mpi.yaml seed=1\n" in make(checkout, *words, "ARGS=seed=1")
    resumed = make(checkout, *words, "ARGS=--resume runs/x").splitlines()[-1]
    assert " ".join(resumed.split()) == f"{command} --resume runs/x"
    for word, message in {
        "N=0": "N is a number of ranks, as in make train-mpi N=2; found N=0",
        "N=two": "found N=two",
        "MPIEXEC=no-such-mpiexec": "There is no no-such-mpiexec. The one of another MPI library: make train-mpi",
    }.items():
        assert message in failed(checkout, *words, word)


def test_set_up_happens_once_and_again_after_changes_of_pyproject_or_python(checkout: Path):
    first = make(checkout, "train", "ARGS=a=1")
    assert SETTING_UP in first
    assert first.endswith("ran: train.py a=1\n")
    assert SETTING_UP not in make(checkout, "train")

    project = checkout / "pyproject.toml"
    os.utime(project, (project.stat().st_mtime + 60,) * 2)  # another time, as after `git checkout`
    assert SETTING_UP not in make(checkout, "train")

    project.write_text(project.read_text() + "\n# changed\n")
    os.utime(project, (project.stat().st_mtime + 120,) * 2)
    assert SETTING_UP in make(checkout, "train")

    (checkout / ".venv/bin/python").unlink()
    (checkout / ".venv/bin/python").symlink_to("/nowhere/python")
    assert SETTING_UP in make(checkout, "train")

    packages = checkout / ".venv/lib/python3/site-packages"
    link = (packages / "_opsmith.pth").read_text().strip()  # survives a move of the checkout
    assert (packages / link).resolve() == checkout.resolve()


def test_two_makes_at_once_set_up_once(checkout: Path):
    (checkout / "pip-waits").touch()
    processes = [start(checkout, "train")]
    while not (checkout / "pip-began").exists():
        assert processes[0].poll() is None
        time.sleep(0.01)
    processes.append(start(checkout, "train"))
    time.sleep(0.2)  # for the second to come to the set-up
    (checkout / "pip-waits").unlink()
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sum(SETTING_UP in output for output in outputs) == 1
    assert all("ran: train.py" in output for output in outputs)


def test_an_unusable_python_is_an_error_with_advice(checkout: Path):
    assert "needs Python 3.10 or newer" in failed(checkout, "train", "PYTHON=no-such-python")
    (checkout / "my python").write_text('#!/bin/sh\ncase "$*" in *ensurepip*) exit 1 ;; esac\n')
    assert "apt install python3-venv" in failed(checkout, "train")


def test_a_half_made_environment_is_replaced_and_one_of_the_user_is_not(checkout: Path):
    (checkout / "pip-fails").touch()
    failed(checkout, "train")
    (checkout / "pip-fails").unlink()
    assert SETTING_UP in make(checkout, "train")
    shutil.rmtree(checkout / ".venv")
    (checkout / ".venv").mkdir()
    (checkout / ".venv/mine").touch()
    assert ".venv is there, and make did not make it" in failed(checkout, "train")
    assert (checkout / ".venv/mine").exists()


def test_clean_removes_only_caches(checkout: Path):
    expected = {"runs/a/__pycache__", "data", ".venv/lib/__pycache__", "build", "dist"}
    for name in (*expected, "app/ops/__pycache__", ".mypy_cache", ".cache/compiled", "site"):
        (checkout / name).mkdir(parents=True)
    output = make(checkout, "clean")
    assert "Removing .cache" in output
    left = {str(path.relative_to(checkout)) for path in checkout.rglob("*") if path.is_dir()}
    assert left == expected | {"runs", "runs/a", ".venv", ".venv/lib", "app", "app/ops"}


def test_only_tests_install_development_tools(checkout: Path):
    trained = make(checkout, "train")
    assert "--editable ." in trained
    assert "requirements-dev.txt" not in trained
    tested = make(checkout, "test")
    assert "--require-hashes --requirement requirements-dev.txt" in tested
    assert "--no-deps --no-build-isolation --editable ." in tested
    assert sum(line.startswith("pip ") for line in tested.splitlines()) == 2  # nothing that has no hash
    assert SETTING_UP not in tested
    assert "pip" not in make(checkout, "test").replace("-m pytest", "")
    project = checkout / "pyproject.toml"
    os.utime(project, (project.stat().st_mtime + 60,) * 2)
    assert "--editable" not in make(checkout, "lint")
    with (checkout / "requirements-dev.txt").open("a") as file:
        file.write("# renewed\n")
    assert "--require-hashes" in make(checkout, "lint")


def test_the_lock_has_what_pyproject_asks_for_with_hashes_and_names_no_host():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "requirements-dev.txt").read_text()
    entries = [entry.replace("\\\n", " ") for entry in re.split(r"\n(?=\S)", text.strip())]
    pinned: dict[str, list[str]] = {}
    for entry in entries:
        match = re.fullmatch(r"([\w.-]+)==(\S+)( ; [^\n]+?)?(\s+--hash=sha256:[0-9a-f]{64})+\s*", entry)
        assert match is not None, entry[:100]
        pinned.setdefault(canonicalize_name(match[1]), []).append(match[2])
    for asked in map(Requirement, [*project["dependencies"], *project["optional-dependencies"]["dev"]]):
        versions = pinned[canonicalize_name(asked.name)]
        assert all(asked.specifier.contains(version) for version in versions), asked
    assert not re.search(r"://|index|file:", text)
