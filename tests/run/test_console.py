"""What a run prints: its lines, the quiet form, JSON, the live line, and the texts before and after it."""

import io
import json
import re
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from app.run.callbacks import Contestant, Position
from app.run.config import Config, DataConfig, DistConfig, ModelConfig, TrainConfig
from app.run.console import Console
from app.run.events import Epoch
from app.run.layers import Dense
from app.run.live import CLEAR, LiveLines, Progress, fitted
from app.run.summary import outcome, summary, without_effect

CHATTY = """
import app
print('hello')
def chatty(x):
    print('and again')
    return app.relu(x)
def stops(x):
    raise KeyboardInterrupt
"""


def lines_of(run):
    return [json.loads(line, parse_constant=pytest.fail) for line in run.out.splitlines()]


def test_json_is_the_metrics_and_a_summary_and_holds_no_output_of_operators(train, tmp_path):
    (tmp_path / "my_ops.py").write_text(CHATTY)
    run = train("--json", "model.activation=my_ops.py:chatty", "engine=eager")
    assert run.status == 0
    assert run.err.startswith("hello\nand again\n")
    *events, end = lines_of(run)
    assert events == run.metrics
    assert (end["event"], end["finished"], end["folder"]) == ("summary", True, "run")
    names = ["my_ops.py:chatty", "relu"]
    last = [run.column(operator, "epoch", "test_accuracy")[-1] for operator in names]
    figures = [(one["operator"], one["test_accuracy"], one["epochs"]) for one in end["operators"]]
    assert figures == [(names[0], last[0], 2), (names[1], last[1], 2)]
    assert end["operators"][0]["ratio"] > 0
    run = train("--json", "model.activation=my_ops.py:stops", "engine=eager", folder="stopped")
    assert (run.status, run.out) == (130, "")  # it never began
    assert lines_of(train("--json", "train.learning_rate=1e30", folder="lost"))[-1]["event"] == "summary"


def test_quiet_prints_the_end_or_an_error_alone(train, capsys):
    run = train("--quiet")
    summary = (run.folder / "summary.txt").read_text()
    assert (run.status, run.out, run.err) == (0, f"{summary}\nThe run is in run/\n", "")
    run = train("--quiet", "model.activation=nothing")
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith("error: there is no operator 'nothing'")
    with pytest.raises(SystemExit):
        train("--quiet", "--json")
    assert "not allowed with argument" in capsys.readouterr().err


# --- The live line ---


class Line:
    """A live line, and a clock that is set by hand."""

    def __init__(self, epoch=0):
        self.now = 1000.0
        self._progress = Progress(4, 50, lambda: self.now)
        self._progress.begin(self._position(epoch, 0, 0.0))

    def _position(self, epoch, done, seconds):
        return Position(SimpleNamespace(operator="relu"), epoch, 100, done, seconds)

    def after(self, wait, *position, columns=99):
        """The line after training to this epoch, this iteration and so many seconds."""
        self.now += wait
        self._progress.piece(self._position(*position), np.array([0.5, 0.25]), np.array([0.75, 0.875]))
        return self.text(columns)

    def text(self, columns=99):
        return self._progress.line("relu", columns)


def test_the_live_line_has_the_progress_the_figures_and_the_time_left():
    line = Line()
    assert line.text() == "relu  waiting"
    shown = "relu  epoch 1/4    5%  loss 0.3750  accuracy 0.8125  250k images/s  9:30 left"
    assert line.after(30, 0, 20, 0.004, columns=len(shown)) == shown
    assert "  1M images/s  " in line.after(0, 0, 20, 0.00100001)
    assert line.after(3600, 2, 100, 2.0).endswith("accuracy 0.8125  2.5k images/s  20:10 left")
    assert line.after(0, 3, 100, 2.0).endswith("2.5k images/s  done")
    assert Line(epoch=2).after(7200, 2, 100, 1.0).endswith("2:00:00 left")  # of a resumed run
    narrow = [line.text(columns) for columns in range(90)]
    assert all(len(text) <= columns for columns, text in enumerate(narrow))
    assert (narrow[40], narrow[3]) == ("relu  1/4  loss 0.3750  done", "re…")  # the least important parts are left out
    assert [fitted([("活性", 0), ("loss 1", 1)], columns) for columns in (12, 11)] == ["活性  loss 1", "活性"]
    assert fitted([("e\u0301", 0), ("loss 1", 1)], 9) == "e\u0301  loss 1"


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


# --- The texts before and after a run ---


def contestant(operator, *seconds, accuracy=0.9, loss=0.3):
    return Contestant(operator, None, [Epoch(operator, i, s, accuracy, loss) for i, s in enumerate(seconds)])


@pytest.fixture
def lines(tiny):
    return lambda *entered, epochs=3: summary(Config(train=TrainConfig(epochs=epochs)), tiny[1], entered).splitlines()


def test_the_summary_is_a_table_with_the_ratio_of_paired_epochs(lines):
    custom, built_in = contestant("custom.relu", 2, 3, 8, accuracy=0.98765), contestant("relu", 1, 3, 4, accuracy=0.5)
    assert lines(custom, built_in) == [
        "operator     test accuracy  seconds per epoch (median)                ratio",
        "custom.relu         0.9877                       3.000  2.00 (0.66 to 6.03)",
        "relu                0.5000                       3.000                 1.00",
    ]
    assert lines(contestant("my_ops.py:swish", 1, 2, 3)) == [
        "operator         test accuracy  seconds per epoch (median)",
        "my_ops.py:swish         0.9000                       2.000",
    ]
    assert lines(contestant("a", 3), contestant("b", 2), epochs=1)[1].endswith("  1.50 (one epoch)")


def test_the_summary_of_a_run_that_stopped_counts_finished_epochs(lines):
    stopped = "The run was stopped early. Finished epochs, out of 3: "
    assert lines(contestant("a", 1, 2), contestant("b", 1))[-1] == f"{stopped}a 2, b 1."
    assert lines(contestant("a"), contestant("b")) == [
        "No epoch finished, so there are no results.",
        f"{stopped}a 0, b 0.",
    ]
    half = lines(contestant("a", 1), contestant("b"))
    assert [line.split()[0] for line in half] == ["operator", "a", "The"]
    told = "a diverged: the loss is NaN or infinite (chance level is 2.303). Try a smaller train.learning_rate."
    assert lines(contestant("a", 1, loss=float("nan")), contestant("b", 1), epochs=1)[-1] == told


def test_settings_without_an_effect_are_noted():
    assert without_effect(Config(), 60_000) == []
    data, dist = DataConfig(source="sample", folder="there"), DistConfig(timeout=5)
    train, model = TrainConfig(momentum=0.5, batch_size=512), ModelConfig(hidden=(), dropout=0.1)
    assert without_effect(Config(data=data, model=model, train=train, dist=dist), 500) == [
        "train.momentum has no effect with train.optimizer=sgd.",
        "train.batch_size=512 exceeds the number of images, so it is 500.",
        "model.dropout has no effect without hidden layers.",
        "data.folder has no effect with data.source=sample.",
        "the settings in dist have no effect with dist.shape=none.",
    ]
    listed = ModelConfig(layers=(Dense(units=5),), hidden=(9,), dropout=0.1)
    assert without_effect(Config(model=listed), 60_000) == [
        "model.hidden has no effect with model.layers.",
        "model.dropout has no effect with model.layers.",
    ]


def test_the_outcome_is_the_summary_as_data():
    entered = [contestant("a", 2, 4), contestant("b", 1, loss=float("nan")), contestant("c")]
    figures = {"epochs": 2, "test_accuracy": 0.9, "test_loss": 0.3, "seconds": 3, "ratio": pytest.approx(2.0)}
    second = {"operator": "b", "epochs": 1, "test_accuracy": 0.9, "test_loss": None, "seconds": 1}
    found = outcome(Config(train=TrainConfig(epochs=2)), entered[:2])
    assert found == {"event": "summary", "finished": False, "operators": [{"operator": "a", **figures}, second]}
    assert outcome(Config(), entered)["operators"][2] == {"operator": "c", "epochs": 0}
    paired = [contestant("a", 1, 20, 30), contestant("b", 1, 10, 10)]
    assert outcome(Config(), paired)["operators"][0]["ratio"] == pytest.approx(2.0)  # not that of the medians
