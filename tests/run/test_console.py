"""What a run prints, for people and for programs: lines, the quiet form, JSON, and the live line."""

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


def test_json_is_the_metrics_and_a_summary(train):
    run = train("--json")
    assert (run.status, run.err) == (0, "")
    *events, end = [json.loads(line, parse_constant=pytest.fail) for line in run.out.splitlines()]
    assert events == run.metrics
    assert (end["event"], end["finished"], end["folder"]) == ("summary", True, "run")
    assert [one["operator"] for one in end["operators"]] == TRAINED
    last = [run.column(operator, "epoch", "test_accuracy")[-1] for operator in TRAINED]
    assert [one["test_accuracy"] for one in end["operators"]] == last
    assert [one["epochs"] for one in end["operators"]] == [2, 2]
    assert end["operators"][0]["ratio"] > 0


def test_json_of_runs_that_fail_is_complete_lines(train, tmp_path):
    (tmp_path / "my_ops.py").write_text("def stops(x):\n    raise KeyboardInterrupt\n")
    run = train("--json", "model.activation=my_ops.py:stops", "engine=eager")
    assert (run.status, run.out) == (130, "")  # it never began
    lost = train("--json", "train.learning_rate=1e30", folder="b").out.splitlines()
    assert [json.loads(line, parse_constant=pytest.fail)["event"] for line in lost][-1] == "summary"


def test_output_of_an_operator_is_not_among_the_json(train, tmp_path):
    code = "import app\nprint('hello')\ndef chatty(x):\n    print('and again')\n    return app.relu(x)\n"
    (tmp_path / "my_ops.py").write_text(code)
    run = train("--json", "model.activation=my_ops.py:chatty", "engine=eager")
    assert run.status == 0
    assert all(json.loads(line)["event"] for line in run.out.splitlines())
    assert run.err.startswith("hello\nand again\n")


def test_quiet_prints_the_end_or_an_error_alone(train):
    run = train("--quiet")
    summary = (run.folder / "summary.txt").read_text()
    assert (run.status, run.out, run.err) == (0, f"{summary}\nThe run is in run/\n", "")
    run = train("--quiet", "model.activation=nothing")
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith("error: there is no operator 'nothing'")


def test_quiet_and_json_exclude_each_other(capsys, train):
    with pytest.raises(SystemExit):
        train("--quiet", "--json")
    assert "not allowed with argument" in capsys.readouterr().err


# --- The live line ---


class Line:
    """A live line, and a clock that is set by hand."""

    def __init__(self, epoch=0):
        self.now = 1000.0
        self._progress = Progress(4, 50, lambda: self.now)
        self._progress.begin(self._place(epoch, 0, 0.0))

    def _place(self, epoch, done, seconds):
        return Position(SimpleNamespace(operator="relu"), 0, epoch, 100, done, seconds)

    def after(self, wait, *place):
        """Go on with training, to this epoch, this iteration and so many seconds."""
        self.now += wait
        self._progress.piece(self._place(*place), np.array([0.5, 0.25]), np.array([0.75, 0.875]))
        return self

    def text(self, columns=99):
        return self._progress.line("relu", columns)


def test_the_live_line_has_the_progress_the_figures_and_the_time_left():
    line = Line()
    assert line.text() == "relu  waiting"
    shown = "relu  epoch 1/4    5%  loss 0.3750  accuracy 0.8125  250k images/s  9:30 left"
    assert line.after(30, 0, 20, 0.004).text(len(shown)) == shown
    assert line.after(3600, 2, 100, 2.0).text().endswith("accuracy 0.8125  2.5k images/s  20:10 left")
    assert line.after(0, 3, 100, 2.0).text().endswith("2.5k images/s  done")
    assert Line(epoch=2).after(7200, 2, 100, 1.0).text().endswith("2:00:00 left")  # of a resumed run


def test_a_narrow_live_line_leaves_out_the_least_important_parts():
    line = Line().after(0, 0, 50, 1.0)
    lines = [line.text(columns) for columns in range(90)]
    assert all(len(line) <= columns for columns, line in enumerate(lines))
    assert len(set(lines)) > 8
    assert lines[71] == "relu  epoch 1/4  loss 0.3750  accuracy 0.8125  2.5k images/s  0:00 left"
    assert lines[70] == "relu  epoch 1/4  loss 0.3750  accuracy 0.8125  0:00 left"
    assert lines[40] == "relu  1/4  loss 0.3750  0:00 left"
    assert lines[3] == "re…"


@pytest.mark.parametrize(
    ("first", "columns", "shown"),
    [("活性", 12, "活性  loss 1"), ("活性", 11, "活性"), ("e\u0301", 9, "e\u0301  loss 1")],
)
def test_wide_letters_and_accents_take_their_width(first, columns, shown):
    assert fitted([(first, 0), ("loss 1", 1)], columns) == shown


def test_lines_are_printed_above_the_live_ones_and_streams_are_restored(monkeypatch):
    screen = io.StringIO()
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(sys, stream, screen)
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


# --- Waits ---


def test_a_long_wait_is_printed_with_its_time(monkeypatch, capsys):
    console = Console()
    with console.busy("Compiling relu"):
        pass
    assert capsys.readouterr().out == ""
    monkeypatch.setattr("app.run.console._PATIENCE", 0.01)
    with console.busy("Compiling relu"):
        time.sleep(0.2)
    assert re.fullmatch(r"Compiling relu \.\.\.\n  \d+\.\d s\n", capsys.readouterr().out)


def test_a_long_wait_for_ranks_is_printed_after_ever_longer_silences(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr("app.run.console.time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr("app.run.console._PATIENCE", 4.0)
    console, said = Console(), []
    for now[0] in range(100, 140):
        console.waiting("waiting for rank 1")
        said += [now[0]] * capsys.readouterr().out.count("waiting for rank 1")
    assert said == [104, 112, 128]
