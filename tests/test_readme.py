"""Snippets and commands of the README run here or in CI and print what it shows; tables are complete."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import forked
import pytest
from test_docs import after_python, left_out_without_a_sign
from test_makefile import TARGETS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PYTHON = [text for language, text in BLOCKS if language == "python"]
SHOWN = [text if language == "text" else "" for language, text in [*BLOCKS[1:], ("", "")]]  # below each block
LINES = [
    (line, shown)
    for (language, text), shown in zip(BLOCKS, SHOWN, strict=True)
    if language == "sh"
    for line in text.splitlines()
]
COMMANDS = [
    (command, "exit status 1" in line, shown) for line, shown in LINES if (command := line.partition("#")[0].strip())
]
MAKE = re.findall(r"^\| `(make [\w-]+)` \|", README, re.MULTILINE)
assert len(PYTHON) >= 2
assert len(COMMANDS) >= 6
assert len(MAKE) >= 5

# What makes a training short, whatever the README asks of it; settings that come later win.
SHORT = ["data.source=sample", "train.epochs=1", "train.batch_size=2000", "model.hidden=[8]", "costs=false"]
SHORT += ["report=false", "engine=reference"]  # `make train`, which .ci/run runs, is compiled


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like the checkout, and has the files of the README: what is compiled of them is kept."""
    folder = tmp_path_factory.mktemp("readme")
    for name in ("train.py", "app", "opsmith", "configs", "examples"):
        (folder / name).symlink_to(ROOT / name)
    (folder / ".venv" / "bin").mkdir(parents=True)
    for text in PYTHON:
        if name := re.match(r"# (\w+\.py)\n", text):
            (folder / name[1]).write_text(text)
    return folder


@pytest.mark.parametrize("text", PYTHON, ids=[text.splitlines()[0] + f" {i}" for i, text in enumerate(PYTHON)])
def test_a_snippet_runs(text: str, checkout: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(checkout)
    monkeypatch.syspath_prepend(checkout)
    monkeypatch.delitem(sys.modules, "my_ops", raising=False)
    exec(compile(text, str(checkout / "snippet.py"), "exec"), {"__name__": "snippet"})


def run_by_ci() -> list[str]:
    return (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("command", MAKE)
def test_a_target_of_make_is_run_by_ci_or_tested(command: str):
    assert command in run_by_ci() or command.removeprefix("make ") in TARGETS


@pytest.mark.parametrize(("command", "fails", "shown"), COMMANDS, ids=[command for command, _, _ in COMMANDS])
@pytest.mark.slow
@pytest.mark.xdist_group("readme")
def test_a_command_is_run_here_or_by_ci(command: str, fails: bool, shown: str, checkout: Path, tmp_path: Path):
    if command in run_by_ci():
        return
    words = after_python(shlex.split(command))
    if words[0] == "train.py":
        words += [*SHORT, f"output={tmp_path / 'run'}"]
    if words[:3] == ["-m", "opsmith", "compare"]:
        words += SHORT
    done = forked.run(words, cwd=checkout)
    assert (done.returncode, done.stderr) == (int(fails), "")
    assert left_out_without_a_sign(shown, done.stdout) == ""
    if words[0] == "train.py":
        assert (tmp_path / "run" / "summary.txt").read_text().startswith("operator ")


def test_the_table_of_packages_is_complete():
    rooms = set(re.findall(r"`(app/\w+/)`", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")))
    packages = {f"app/{path.name}/" for path in (ROOT / "app").iterdir() if (path / "__init__.py").exists()}
    assert rooms == packages


def test_the_table_of_dependencies_is_complete():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    table = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    for group in ("dependencies", "onnx", "pictures", "mpi", "docs", "dev", "fuzz", "bench"):
        for name in re.findall(r'"([\w-]+)', project.partition(f"\n{group} = [")[2].partition("\n]")[0]):
            assert name in table or name.startswith("types-"), f"the table does not say what {name} is used for"


def test_the_table_of_configurations_is_complete():
    assert set(re.findall(r"\(configs/([\w.]+)\)", README)) == {path.name for path in (ROOT / "configs").iterdir()}
