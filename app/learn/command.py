"""`opsmith learn`: lists exercises with progress; `opsmith learn 3` examines the learner's file."""

from __future__ import annotations

import argparse
import hashlib
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from app.checking.findings import painted
from app.checking.verdict import FAILED, OK
from app.command_line import FAILED as STATUS_OF_FAILURE
from app.errors import ConfigError, MissingFileError
from app.files import PACKAGE_FOLDER, checkout, write_whole
from app.learn.examine import examined
from app.learn.exercises import EXERCISES, Exercise
from app.printing import escaped, json_alone, say, wrapped

PROGRESS = ".progress.json"
"""The file beside the exercises that has the last outcome of each, by the hash of the learner's file."""


def originals() -> Path:
    """The folder of the exercises as they are given out."""
    root = checkout()
    return PACKAGE_FOLDER / "exercises" if root is None else root / "examples" / "exercises"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command line."""
    parser.add_argument(
        "number", metavar="NUMBER", nargs="?", type=int, help="the exercise to examine; by default all are listed"
    )
    parser.add_argument(
        "--folder", default="exercises", metavar="FOLDER", help="the folder of your files (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")


def run(options: argparse.Namespace) -> int:
    """List the exercises, or examine one; 0 if it is solved."""
    folder = Path(options.folder)
    if options.number is None:
        _hand_out(folder)
        return _list(folder, options.json)
    exercise = next((one for one in EXERCISES if one.number == options.number), None)
    if exercise is None:
        raise ConfigError(f"there is no exercise {options.number}; there are 1 to {len(EXERCISES)}")
    path = folder / exercise.file
    if not path.exists():
        raise MissingFileError(f"{path} is not there: `opsmith learn` puts the exercises into {folder}")
    with json_alone() if options.json else nullcontext():  # the file may print, too
        verdict = examined(exercise, path)
    _remember(folder, exercise, path, verdict.state == OK)
    if options.json:
        print(
            json.dumps(
                {
                    "exercise": exercise.number,
                    "file": str(path),
                    "solved": verdict.state == OK,
                    "check": verdict.check,
                    "words": verdict.words,
                }
            )
        )
    else:
        say(f"{exercise.number}. {exercise.title(originals())}: {path}")
        print(f"  {painted(verdict.state)}  {escaped(wrapped(f'{verdict.check:13}  {verdict.words}', None, 25))}")
        if verdict.state == OK and (later := _next(folder)):
            say(f"  next: {folder / later.file}, then opsmith learn {later.number}")
    return 0 if verdict.state == OK else STATUS_OF_FAILURE


def _hand_out(folder: Path) -> None:
    """Copy the exercises that the folder does not have; the learner's own files stay as they are."""
    for exercise in EXERCISES:
        if not (folder / exercise.file).exists():
            write_whole(folder / exercise.file, (originals() / exercise.file).read_bytes())


def _list(folder: Path, as_json: bool) -> int:
    rows: list[dict[str, Any]] = [
        {"exercise": e.number, "title": e.title(originals()), "file": str(folder / e.file), "state": _state(folder, e)}
        for e in EXERCISES
    ]
    if as_json:
        print(json.dumps(rows))
        return 0
    for row in rows:
        mark = {"solved": painted(OK), "wrong": painted(FAILED)}.get(row["state"], " " * 6)
        print(f"  {mark}  {row['exercise']:2}  " + escaped(f"{row['title']:38}  {row['file']}"))
    solved = sum(row["state"] == "solved" for row in rows)
    later = _next(folder)
    more = f"; edit {folder / later.file}, then run: opsmith learn {later.number}" if later else ""
    say(f"\n{solved} of {len(EXERCISES)} solved{more}")
    return 0


def _next(folder: Path) -> Exercise | None:
    return next((one for one in EXERCISES if _state(folder, one) != "solved"), None)


def _state(folder: Path, exercise: Exercise) -> str:
    """ "solved" or "wrong" if the file was examined as it is now; else "new" or "changed"."""
    path = folder / exercise.file
    content = path.read_bytes() if path.exists() else b""
    progress = _progress(folder).get(exercise.file, {})
    if progress.get("hash") == _hash(content):
        return "solved" if progress.get("solved") else "wrong"
    return "new" if content == (originals() / exercise.file).read_bytes() else "changed"


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _progress(folder: Path) -> dict[str, Any]:
    try:
        progress = json.loads((folder / PROGRESS).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # progress can be made again
        return {}
    return progress if isinstance(progress, dict) else {}


def _remember(folder: Path, exercise: Exercise, path: Path, solved: bool) -> None:
    progress = {**_progress(folder), exercise.file: {"hash": _hash(path.read_bytes()), "solved": solved}}
    write_whole(folder / PROGRESS, json.dumps(progress, indent=1).encode())
