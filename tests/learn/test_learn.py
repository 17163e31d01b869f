"""The exercises: solutions solve them; files as they are given out, zeros and built-in operators do not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest
from as_python import as_python, only_engines_compile
from solutions import SOLUTIONS

from app.__main__ import main
from app.checking.checks import CHECKS
from app.learn.command import originals
from app.learn.examine import examined
from app.learn.exercises import EXERCISES, Exercise

BY_FILE = pytest.mark.parametrize("exercise", EXERCISES, ids=[one.file for one in EXERCISES])


def written(folder: Path, exercise: Exercise, text: str) -> Path:
    path = folder / exercise.file
    path.write_text(text, encoding="utf-8")
    return path


def original(exercise: Exercise) -> str:
    return (originals() / exercise.file).read_text(encoding="utf-8")


def solution(exercise: Exercise) -> str:
    text = original(exercise)
    for old, new in SOLUTIONS[exercise.file]:
        assert old in text
        text = text.replace(old, new)
    return text


@contextmanager
def nothing_compiles() -> Iterator[None]:
    """Leave out the checks that compile whole networks, and run Numba functions as Python."""
    with as_python(), pytest.MonkeyPatch.context() as patch:
        for name in ("engines", "inlined"):
            patch.delitem(CHECKS, name)
        yield


def compiling(exercise: Exercise) -> AbstractContextManager[None]:
    """What is compiled for an exercise."""
    return only_engines_compile() if exercise.native else nothing_compiles()


@pytest.mark.parametrize("every_check", [False, pytest.param(True, marks=pytest.mark.soak)])
@BY_FILE
@pytest.mark.slow
def test_the_solution_solves_it(exercise: Exercise, every_check: bool, tmp_path: Path):
    with nullcontext() if every_check else compiling(exercise):
        verdict = examined(exercise, written(tmp_path, exercise, solution(exercise)))
    assert verdict.state == "ok", verdict.words


@BY_FILE
@pytest.mark.slow
def test_the_file_as_given_out_fails(exercise: Exercise, tmp_path: Path):
    with compiling(exercise), pytest.MonkeyPatch.context() as patch:
        patch.delitem(CHECKS, "engines", raising=False)  # they agree
        assert examined(exercise, written(tmp_path, exercise, original(exercise))).failed


@BY_FILE
@pytest.mark.slow
def test_zeros_fail(exercise: Exercise, tmp_path: Path):
    """The solution, in which every function returns zeros in the place of its results."""
    zeros = re.sub(
        r"return ([^\n]+)", lambda match: f"return [0 * one for one in ({match[1]},)][0]", solution(exercise)
    )
    with nothing_compiles():  # no check gets to how it is compiled
        assert examined(exercise, written(tmp_path, exercise, zeros)).failed


@pytest.mark.parametrize(
    ("number", "call"),
    [(2, "opsmith.tanh(x) * x"), (5, "opsmith.nn.functional.hardtanh(x)"), (10, "opsmith.softmax(x)")],
)
def test_calling_the_built_in_one_fails(number: int, call: str, tmp_path: Path):
    exercise = EXERCISES[number - 1]
    text = re.sub(r"return [^\n]+", f"return {call}", solution(exercise), count=1)
    verdict = examined(exercise, written(tmp_path, exercise, text))
    assert verdict.failed
    assert "which is built in: write it yourself" in verdict.words


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("from opsmith import softmax as built_in", "built_in(x)"),
        ("from opsmith.nn import functional", "functional.softmax(x)"),
        ("import opsmith as o", "o.softmax(x)"),
    ],
)
def test_a_built_in_one_under_another_name_fails(line: str, call: str, tmp_path: Path):
    exercise = EXERCISES[9]
    text = solution(exercise).replace("import opsmith\n", f"import opsmith\n{line}\n", 1)
    text = re.sub(r"return e [^\n]+", f"return {call}", text, count=1)
    verdict = examined(exercise, written(tmp_path, exercise, text))
    assert "which is built in: write it yourself" in verdict.words


def test_a_backward_that_is_left_out_fails(tmp_path: Path):
    text = original(EXERCISES[0]).partition("@cube.backward")[0]
    verdict = examined(EXERCISES[0], written(tmp_path, EXERCISES[0], text))
    assert "it has no backward of its own" in verdict.words


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x = ", r"01_wrong_factor\.py:1: running the file raised SyntaxError"),
        (b"x = '\0'", "running the file raised SyntaxError"),
        (b"x = 1", "01_wrong_factor.py has no 'cube'"),
        (b"# coding: latin-1\nx = '\xe9'\ndef cube(x): return x", "it has no backward of its own"),
    ],
)
def test_a_file_that_is_not_finished_is_no_traceback(content: bytes, message: str, tmp_path: Path):
    path = tmp_path / EXERCISES[0].file
    path.write_bytes(content)
    assert re.search(message, examined(EXERCISES[0], path).words)


def test_what_a_file_prints_is_no_part_of_the_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    written(tmp_path, EXERCISES[0], "print('hello')\n" + original(EXERCISES[0]).partition("@cube.backward")[0])
    assert main(["learn", "1", "--json", "--folder", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["check"] == "your own"
    assert err == "hello\n"


def test_the_list_hands_out_files_and_shows_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert main(["learn"]) == 0
    assert "0 of 20 solved; edit exercises/01_wrong_factor.py" in capsys.readouterr().out
    with nothing_compiles():
        assert main(["learn", "1"]) == 1
    assert "it is 1/3 of what it should be" in capsys.readouterr().out
    written(tmp_path / "exercises", EXERCISES[0], solution(EXERCISES[0]))
    with nothing_compiles():
        assert main(["learn", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["solved"] is True
    assert main(["learn", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["state"] for row in rows[:2]] == ["solved", "new"]
    assert (tmp_path / "exercises" / EXERCISES[0].file).read_text() == solution(EXERCISES[0])  # not handed out anew


def test_an_exercise_that_there_is_not_is_an_error(capsys: pytest.CaptureFixture[str]):
    assert main(["learn", "21"]) == 2
    assert "there is no exercise 21; there are 1 to 20" in capsys.readouterr().err


def test_each_file_has_an_exercise_and_a_title():
    assert sorted(path.name for path in originals().glob("*.py")) == [one.file for one in EXERCISES]
    for exercise in EXERCISES:
        assert exercise.title(originals())
