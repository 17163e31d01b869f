"""What a run prints: its lines, the quiet form, JSON, the live line, and the texts before and after it."""

import json
from pathlib import Path

import pytest

from app.run.config import Config, DataConfig, ModelConfig, TrainConfig
from app.run.events import Epoch, Nonfinite
from app.run.record import RunRecord
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


# --- The texts before and after a run ---


def record(*of_each, count=3):
    """The record of a run of an operator against a baseline, each with its epochs; `count` were to be trained."""
    (name, _), baseline = of_each[0], of_each[1][0] if len(of_each) > 1 else None
    config = Config(model=ModelConfig(activation=name), baseline=baseline, train=TrainConfig(epochs=count))
    return RunRecord(Path("run"), config, [event for _, events in of_each for event in events])


def epochs(operator, *seconds, accuracy=0.9, loss=0.3):
    return operator, [Epoch(operator, i, s, accuracy, loss) for i, s in enumerate(seconds)]


def lines(*of_each, count=3):
    return summary(record(*of_each, count=count)).splitlines()


def test_the_summary_is_a_table_with_the_ratio_of_paired_epochs():
    custom, built_in = epochs("custom.relu", 2, 3, 8, accuracy=0.98765), epochs("relu", 1, 3, 4, accuracy=0.5)
    assert lines(custom, built_in) == [
        "operator     test accuracy  seconds per epoch (median)                ratio",
        "custom.relu         0.9877                       3.000  2.00 (0.66 to 6.03)",
        "relu                0.5000                       3.000                 1.00",
    ]
    assert lines(epochs("my_ops.py:swish", 1, 2, 3)) == [
        "operator         test accuracy  seconds per epoch (median)",
        "my_ops.py:swish         0.9000                       2.000",
    ]
    assert lines(epochs("a", 3), epochs("b", 2), count=1)[1].endswith("  1.50")
    assert lines(epochs("a", 3, 3), epochs("b", 2, 4), count=2)[1].endswith("  1.06")


def test_the_summary_of_a_run_that_stopped_counts_finished_epochs():
    stopped = "The run was stopped early. Finished epochs, out of 3: "
    assert lines(epochs("a", 1, 2), epochs("b", 1))[-1] == f"{stopped}a 2, b 1."
    assert lines(epochs("a"), epochs("b")) == ["No epoch finished, so there are no results."]
    half = lines(epochs("a", 1), epochs("b"))
    assert [line.split()[0] for line in half] == ["operator", "a", "The"]
    message = "a diverged: the loss is NaN or infinite (chance level is 2.303). Try a smaller train.learning_rate."
    assert lines(epochs("a", 1, loss=float("nan")), epochs("b", 1), count=1)[-1] == message


def test_the_summary_of_a_run_says_where_numbers_were_not_finite():
    lost = [*epochs("a", 1)[1], Nonfinite("a", 1, 4, "the loss became NaN in iteration 4 of epoch 2", "")]
    assert "a: the loss became NaN in iteration 4 of epoch 2." in lines(("a", lost), epochs("b", 1))


def test_times_of_trainings_that_ran_at_the_same_time_are_left_out_of_a_summary():
    at_once = [("a", [Epoch("a", 0, 1.0, 0.5, 0.3, alone=False)]), ("b", [Epoch("b", 0, 2.0, 0.5, 0.3, alone=False)])]
    assert [line.split()[1:] for line in lines(*at_once, count=1)[1:]] == [["0.5000", "-", "-"]] * 2
    assert outcome(record(*at_once, count=1))["operators"][0]["seconds"] is None


def test_settings_without_an_effect_are_noted():
    assert without_effect(Config()) == []
    data = DataConfig(source="sample", folder="there")
    assert without_effect(Config(data=data, train=TrainConfig(momentum=0.5))) == [
        "train.momentum has no effect with train.optimizer=sgd.",
        "data.folder has no effect with data.source=sample.",
    ]


def test_the_outcome_is_the_summary_as_data():
    first, second = epochs("a", 2, 4), epochs("b", 1, loss=2.5)
    figures = {"epochs": 2, "test_accuracy": 0.9, "test_loss": 0.3, "seconds": 3, "ratio": pytest.approx(2.0)}
    baseline = {"operator": "b", "epochs": 1, "test_accuracy": 0.9, "test_loss": 2.5, "seconds": 1}
    summary = outcome(record(first, second, count=2))
    assert summary == {"event": "summary", "finished": False, "operators": [{"operator": "a", **figures}, baseline]}
    assert outcome(record(first, epochs("c")))["operators"][1] == {"operator": "c", "epochs": 0}
    paired = record(epochs("a", 1, 20, 30), epochs("b", 1, 10, 10))
    assert outcome(paired)["operators"][0]["ratio"] == pytest.approx(2.0)  # not that of the medians
