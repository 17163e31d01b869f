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
def full(tiny):
    return tiny[1]


def lines(dataset, *entered, epochs=3):
    return summary(Config(train=TrainConfig(epochs=epochs)), dataset, entered).splitlines()


def test_the_summary_is_a_table_with_the_ratio_of_paired_epochs(full):
    custom, built_in = contestant("custom.relu", 2, 3, 8, accuracy=0.98765), contestant("relu", 1, 3, 4, accuracy=0.5)
    assert lines(full, custom, built_in) == [
        "operator     test accuracy  seconds per epoch (median)                ratio",
        "custom.relu         0.9877                       3.000  2.00 (0.66 to 6.03)",
        "relu                0.5000                       3.000                 1.00",
    ]


def test_the_ratio_is_the_median_of_paired_epochs_not_that_of_medians():
    assert ratio(contestant("a", 1, 20, 30), contestant("b", 1, 10, 10)) == 2.0
    assert ratio(contestant("a", 1, 2), contestant("b", 1)) == 1.0  # an epoch without its pair does not count


def ratio(one, other):
    return pytest.approx(outcome(Config(), [one, other])["operators"][0]["ratio"])


def test_one_network_has_no_ratio(full):
    assert lines(full, contestant("my_ops.py:swish", 1, 2, 3)) == [
        "operator         test accuracy  seconds per epoch (median)",
        "my_ops.py:swish         0.9000                       2.000",
    ]


def test_a_run_that_stopped_says_how_far_each_had_come(full):
    table = lines(full, contestant("a", 1, 2), contestant("b", 1))
    assert table[-1] == "The run was stopped early. Finished epochs, out of 3: a 2, b 1."
    assert lines(full, contestant("a"), contestant("b")) == [
        "No epoch finished, so there are no results.",
        "The run was stopped early. Finished epochs, out of 3: a 0, b 0.",
    ]
    assert [line.split()[0] for line in lines(full, contestant("a", 1), contestant("b"))] == [
        "operator",
        "a",
        "The",
    ]


def test_a_loss_that_was_lost_is_named(full):
    table = lines(full, contestant("a", 1, loss=float("nan")), contestant("b", 1), epochs=1)
    told = "a diverged: the loss is NaN or infinite (chance level is 2.303). Try a smaller train.learning_rate."
    assert table[-1] == told


def test_the_introduction_says_what_is_trained_on_what(full):
    config = Config(seed=4, engine="eager", model=ModelConfig(hidden=(7, 6)), train=TrainConfig(batch_size=60))
    text = introduction(config, full, [contestant("a"), contestant("b")])
    assert text.splitlines() == [
        f"Data: 60 training and 20 test images, {full.origin} (not verified)",
        "Network 12-7-6-10 with a against b; engine eager, seed 4",
    ]


def test_the_introduction_says_how_operators_run_where_the_engine_tells(full):
    text = introduction(Config(), full, [contestant("custom.relu"), contestant("relu")])
    assert "custom.relu  how custom.relu runs" in text.splitlines()


def test_a_table_that_is_too_wide_has_a_line_for_each_cell(full):
    entered = [contestant("custom.relu", 1, 2, 3), contestant("relu", 1, 2, 3)]
    config = Config(train=TrainConfig(epochs=3))
    wide = summary(config, full, entered)
    assert summary(config, full, entered, len(wide.splitlines()[0])) == wide
    cells = ["  test accuracy  0.9000", "  seconds per epoch (median)  2.000"]
    first, second = ("  ratio  1.00 (0.92 to 1.09)", "  ratio  1.00")
    assert summary(config, full, entered, 40).splitlines() == ["custom.relu", *cells, first, "relu", *cells, second]


def test_the_ratio_of_one_epoch_has_no_interval(full):
    assert lines(full, contestant("a", 3), contestant("b", 2), epochs=1)[1].split()[-3:] == ["1.50", "(one", "epoch)"]


def test_the_outcome_is_the_summary_for_programs():
    entered = [contestant("a", 2, 4), contestant("b", 1, loss=float("nan")), contestant("c")]
    found = outcome(Config(train=TrainConfig(epochs=2)), entered[:2])
    first = {
        "operator": "a",
        "epochs": 2,
        "test_accuracy": 0.9,
        "test_loss": 0.3,
        "seconds": 3,
        "ratio": pytest.approx(2.0),
    }
    second = {"operator": "b", "epochs": 1, "test_accuracy": 0.9, "test_loss": None, "seconds": 1}
    assert found == {"event": "summary", "finished": False, "operators": [first, second]}
    assert outcome(Config(), entered)["operators"][2] == {"operator": "c", "epochs": 0}
