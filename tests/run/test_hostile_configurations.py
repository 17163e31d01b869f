"""What a configuration from a stranger cannot do: run anything, take much memory or time, or write elsewhere."""

from __future__ import annotations

import os
import re
import resource
import shutil
import sys
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.experiment.train_command import main
from app.run.config import config_name

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "\n".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
OF_PYTHON = [
    "!!python/object/apply:os.mkdir [made]",
    "!!python/object/new:os.mkdir [made]",
    "!!python/object:__main__.Anything {}",
    "!!python/module:antigravity",
    "!!python/name:os.system",
    "!!python/tuple [1, 2]",
    "!<tag:yaml.org,2002:python/object/apply:os.mkdir> [made]",
    "!made {}",
]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """`train.py --config` with a file of this content: it is refused in a line, soon, and leaves nothing."""
    monkeypatch.chdir(tmp_path)

    def refuse(content: bytes | str) -> str:
        (tmp_path / "strange.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
        start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        status = main(["--config", "strange.yaml"])
        seconds = time.monotonic() - start
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        printed = capsys.readouterr()
        assert (status, printed.out, printed.err.count("\n")) == (2, "", 1)
        assert len(printed.err) < 500
        assert seconds < 10
        assert grown < (200 << 20 if sys.platform == "darwin" else 200 << 10)
        assert os.listdir(tmp_path) == ["strange.yaml"]
        return printed.err

    return refuse


@pytest.mark.parametrize("value", OF_PYTHON)
def test_tags_make_no_objects(refused, value):
    modules = set(sys.modules)
    assert "is not allowed here" in refused(f"seed: {value}\n")
    assert "antigravity" not in set(sys.modules) - modules


def test_anchors_do_not_explode(refused):
    assert "the alias *a is not allowed here" in refused(LAUGHS)


def test_merges_do_not_either(refused):
    refused("a: &a {seed: 1}\nb:\n  <<: *a\n")


@pytest.mark.parametrize("deep", ["[" * 1000 + "]" * 1000, "{a: " * 1000 + "1" + "}" * 1000, "- " * 1000 + "1"])
def test_what_is_nested_a_thousand_deep_is_refused(refused, deep):
    assert "nested more than 16 deep" in refused(f"seed:\n  {deep}\n")


def test_a_path_of_a_thousand_keys_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([".".join(["train"] * 1000) + "=1"]) == 2
    assert "nested more than 16 deep" in capsys.readouterr().err


@pytest.mark.parametrize("megabytes", [2, 64])
def test_a_file_of_many_megabytes_is_refused(refused, megabytes):
    assert "larger than 1,000,000 bytes" in refused(b"# nothing\n" * (megabytes * 100_000))


def test_a_million_values_are_refused(refused):
    assert "more than 10,000 values" in refused("model: {hidden: [" + "1,\n" * 300_000 + "1]}")


@pytest.mark.parametrize("kind", ["/dev/zero", "/dev/stdin", "."])
def test_what_is_no_file_is_not_read_for_ever(kind, capsys, monkeypatch):
    if not os.path.exists(kind):
        return
    monkeypatch.setattr("sys.stdin", None)
    null = os.open(os.devnull, os.O_RDONLY)
    kept = os.dup(0)
    os.dup2(null, 0)
    try:
        assert main(["--config", kind, "train.epochs=0"]) == 2
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(null)
    assert capsys.readouterr().err.startswith("error: ")


@given(st.text().filter(lambda path: "\0" not in path))
@example("../../x.yaml")
@example("..")
@example("a/...yaml")
@example("a b\n$(touch made).yaml")
@example("c:\\windows.yaml")
def test_the_name_of_a_run_leads_nowhere_else(path):
    assert re.fullmatch(r"[\w-][\w.-]*", config_name(path))


def test_a_configuration_elsewhere_and_an_operator_with_a_name_that_climbs_write_into_the_run_alone(
    train, images, tmp_path
):
    outside = tmp_path / "outside" / "deep"
    outside.mkdir(parents=True)
    file = outside / "..; touch made .py"
    shutil.copy(Path(__file__).parent / "misbehaving_operators.py", file)
    before = everything(tmp_path)
    train("model.activation=outside/deep/../deep/..; touch made .py:relu_as_it_is", "baseline=null", "costs=false")
    made = {path for path in everything(tmp_path) - before if "__pycache__" not in path}
    assert made
    assert all(path == "run" or path.startswith("run/") for path in made)


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
