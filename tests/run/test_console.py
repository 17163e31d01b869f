"""What a run says, to people and to programs: the lines, the quiet form, JSON, and the arithmetic of the live line."""

import io
import json
import re
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from app.run.callbacks import Position
from app.run.console import Console
from app.run.live import CLEAR, LiveLines, Progress, fitted

TRAINED = ["custom.relu", "relu"]


def test_json_is_the_metrics_as_they_are_kept_and_a_summary(train):
    run = train("--json")
    assert (run.status, run.err) == (0, "")
    *events, end = [json.loads(line, parse_constant=pytest.fail) for line in run.out.splitlines()]
    assert events == run.metrics
    assert {key: end[key] for key in ("event", "finished", "folder")} == {
        "event": "summary",
        "finished": True,
        "folder": "run",
    }
    assert [one["operator"] for one in end["operators"]] == TRAINED
    last = [run.column(operator, "epoch", "test_accuracy")[-1] for operator in TRAINED]
    assert [one["test_accuracy"] for one in end["operators"]] == last
    assert [one["epochs"] for one in end["operators"]] == [2, 2]
    assert end["operators"][0]["ratio"] > 0


def test_json_has_null_for_what_is_no_number_and_tells_of_a_run_that_stopped(train, tmp_path):
    (tmp_path / "my_ops.py").write_text("def stops(x):\n    raise KeyboardInterrupt\n")
    run = train("--json", "model.activation=my_ops.py:stops", "engine=eager")
    assert run.status == 130
    assert run.out == ""  # it never began
    lost = [json.loads(line) for line in train("--json", "train.learning_rate=1e30", folder="b").out.splitlines()]
    assert lost[-1]["event"] == "summary"


def test_what_an_operator_prints_is_not_among_the_json(train, tmp_path):
    code = "import app\nprint('hello')\ndef chatty(x):\n    print('and again')\n    return app.relu(x)\n"
    (tmp_path / "my_ops.py").write_text(code)
    run = train("--json", "model.activation=my_ops.py:chatty", "engine=eager")
    assert run.status == 0
    assert all(json.loads(line)["event"] for line in run.out.splitlines())
    assert run.err.startswith("hello\nand again\n")


def test_quiet_is_the_end_alone(train):
    run = train("--quiet")
    summary = (run.folder / "summary.txt").read_text()
    assert (run.status, run.err) == (0, "")
    assert run.out == f"{summary}\nThe run is in run/\n"


def test_quiet_tells_errors(train):
    run = train("--quiet", "model.activation=nothing")
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith("error: there is no operator 'nothing'")


def test_quiet_and_json_exclude_each_other(capsys, train):
    with pytest.raises(SystemExit):
        train("--quiet", "--json")
    assert "not allowed with argument" in capsys.readouterr().err


# --- The live line ---


def place(epoch, done, seconds):
    return Position(SimpleNamespace(operator="relu"), 0, epoch, 100, done, seconds)


def piece(progress, at):
    progress.piece(at, np.array([0.5, 0.25]), np.array([0.75, 0.875]))


@pytest.fixture
def now():
    return {"now": 1000.0}


@pytest.fixture
def progress(now):
    return Progress(4, 50, lambda: now["now"])


def test_the_line_has_what_a_user_wants_to_know(progress, now):
    assert progress.line("relu", 99) == "relu  waiting"
    progress.begin(place(0, 0, 0.0))
    now["now"] += 30
    piece(progress, place(0, 20, 0.004))
    line = "relu  epoch 1/4    5%  loss 0.3750  accuracy 0.8125  250k images/s  9:30 left"
    assert progress.line("relu", len(line)) == line
    now["now"] += 3600
    piece(progress, place(2, 100, 2.0))
    assert progress.line("relu", 99).endswith("accuracy 0.8125  2.5k images/s  20:10 left")
    piece(progress, place(3, 100, 2.0))
    assert progress.line("relu", 99).endswith("2.5k images/s  done")


def test_the_time_left_of_a_run_that_goes_on_is_reckoned_from_where_it_went_on(progress, now):
    progress.begin(place(2, 0, 0.0))
    now["now"] += 7200
    piece(progress, place(2, 100, 1.0))
    assert progress.line("relu", 99).endswith("2:00:00 left")


def test_what_matters_least_is_left_out_first(progress):
    progress.begin(place(0, 0, 0.0))
    piece(progress, place(0, 50, 1.0))
    lines = [progress.line("relu", columns) for columns in range(90)]
    assert all(len(line) <= columns for columns, line in enumerate(lines))
    assert len(set(lines)) > 8
    assert lines[71] == "relu  epoch 1/4  loss 0.3750  accuracy 0.8125  2.5k images/s  0:00 left"
    assert lines[70] == "relu  epoch 1/4  loss 0.3750  accuracy 0.8125  0:00 left"
    assert lines[40] == "relu  1/4  loss 0.3750  0:00 left"
    assert lines[3] == "re…"


def test_wide_letters_and_accents_take_the_room_that_they_take():
    assert fitted([("活性", 0), ("loss 1", 1)], 12) == "活性  loss 1"
    assert fitted([("活性", 0), ("loss 1", 1)], 11) == "活性"
    assert fitted([("e\u0301", 0), ("loss 1", 1)], 9) == "e\u0301  loss 1"


class Screen(io.StringIO):
    """A terminal that keeps what it is given."""

    def isatty(self):
        return True


def test_what_is_printed_goes_above_the_lines_and_streams_are_given_back(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "stderr", screen)
    live = LiveLines()
    live.begin()
    live.begin()  # as each epoch does
    live.draw(["one", "two"])
    print("said")
    print("begun", end="", file=sys.stderr)
    sys.stderr.flush()
    assert screen.getvalue() == (f"{CLEAR}one\ntwo\x1b[1A\r{CLEAR}\rsaid\n{CLEAR}one\ntwo\x1b[1A\r")
    live.end()
    live.end()
    assert screen.getvalue().endswith(f"{CLEAR}\rbegun")
    assert sys.stdout is sys.stderr is screen


def test_what_takes_long_is_said_with_its_time_and_nothing_else_is(monkeypatch, capsys):
    console = Console()
    with console.busy("Compiling relu"):
        pass
    assert capsys.readouterr().out == ""
    monkeypatch.setattr("app.run.console._PATIENCE", 0.01)
    with console.busy("Compiling relu"):
        time.sleep(0.2)
    assert re.fullmatch(r"Compiling relu \.\.\.\n  \d+\.\d s\n", capsys.readouterr().out)


def test_a_long_wait_is_said_after_ever_longer_silences(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr("app.run.console.time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr("app.run.console._PATIENCE", 4.0)
    console, said = Console(), []
    for now[0] in range(100, 140):
        console.waiting("waiting for rank 1")
        said += [now[0]] * capsys.readouterr().out.count("waiting for rank 1")
    assert said == [104, 112, 128]
