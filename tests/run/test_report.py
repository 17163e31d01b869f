"""The texts before and after a run."""

from types import SimpleNamespace

import pytest

from app.run.callbacks import Contestant
from app.run.config import Config, ModelConfig, TrainConfig
from app.run.events import Epoch
from app.run.summary import introduction, outcome, summary


def contestant(operator, *seconds, accuracy=0.9, loss=0.3):
    learner = SimpleNamespace(how=lambda: f"how {operator} runs" if operator.startswith("custom.") else "")
    return Contestant(operator, learner, [Epoch(operator, i, s, accuracy, loss) for i, s in enumerate(seconds)])


@pytest.fixture
def lines(tiny):
    return lambda *entered, epochs=3, width=None: summary(
        Config(train=TrainConfig(epochs=epochs)), tiny[1], entered, width
    ).splitlines()


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


def test_the_ratio_is_the_median_of_paired_epochs_not_that_of_medians():
    def ratio(one, other):
        return outcome(Config(), [one, other])["operators"][0]["ratio"]

    assert ratio(contestant("a", 1, 20, 30), contestant("b", 1, 10, 10)) == pytest.approx(2.0)
    assert ratio(contestant("a", 1, 2), contestant("b", 1)) == pytest.approx(1.0)  # the second epoch has no pair


def test_the_summary_of_a_run_that_stopped_counts_finished_epochs(lines):
    stopped = "The run was stopped early. Finished epochs, out of 3: "
    assert lines(contestant("a", 1, 2), contestant("b", 1))[-1] == f"{stopped}a 2, b 1."
    assert lines(contestant("a"), contestant("b")) == [
        "No epoch finished, so there are no results.",
        f"{stopped}a 0, b 0.",
    ]
    half = lines(contestant("a", 1), contestant("b"))
    assert [line.split()[0] for line in half] == ["operator", "a", "The"]


def test_the_summary_names_an_operator_whose_loss_is_nan(lines):
    told = "a diverged: the loss is NaN or infinite (chance level is 2.303). Try a smaller train.learning_rate."
    assert lines(contestant("a", 1, loss=float("nan")), contestant("b", 1), epochs=1)[-1] == told


def test_a_table_that_is_too_wide_has_a_line_for_each_cell(lines):
    entered = [contestant("custom.relu", 1, 2, 3), contestant("relu", 1, 2, 3)]
    wide = lines(*entered)
    assert lines(*entered, width=len(wide[0])) == wide
    cells = ["  test accuracy  0.9000", "  seconds per epoch (median)  2.000"]
    first, second = ("  ratio  1.00 (0.92 to 1.09)", "  ratio  1.00")
    assert lines(*entered, width=40) == ["custom.relu", *cells, first, "relu", *cells, second]


def test_the_introduction_names_the_data_the_network_and_how_operators_run(tiny):
    config = Config(seed=4, engine="eager", model=ModelConfig(hidden=(7, 6)), train=TrainConfig(batch_size=60))
    assert introduction(config, tiny[1], [contestant("a"), contestant("b")]).splitlines() == [
        f"Data: 60 training and 20 test images, {tiny[1].origin} (not verified)",
        "Network 12-7-6-10 with a against b; engine eager, seed 4",
    ]
    text = introduction(Config(), tiny[1], [contestant("custom.relu"), contestant("relu")])
    assert "custom.relu  how custom.relu runs" in text.splitlines()


def test_the_outcome_is_the_summary_as_data():
    entered = [contestant("a", 2, 4), contestant("b", 1, loss=float("nan")), contestant("c")]
    figures = {"epochs": 2, "test_accuracy": 0.9, "test_loss": 0.3, "seconds": 3, "ratio": pytest.approx(2.0)}
    second = {"operator": "b", "epochs": 1, "test_accuracy": 0.9, "test_loss": None, "seconds": 1}
    found = outcome(Config(train=TrainConfig(epochs=2)), entered[:2])
    assert found == {"event": "summary", "finished": False, "operators": [{"operator": "a", **figures}, second]}
    assert outcome(Config(), entered)["operators"][2] == {"operator": "c", "epochs": 0}
