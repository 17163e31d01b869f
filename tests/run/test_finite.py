"""Numbers that are not finite: which steps are bad, and what `train.on_nonfinite` makes of them."""

import shutil
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from app.data import Batches
from app.engine.watch import OperatorRun, first_nonfinite
from app.errors import OperatorError
from app.run.callbacks import Contestant, Position
from app.run.finite import statistics
from app.run.steps import Steps
from app.run.training import trained


class Heard(Steps):
    """Steps that keep what they record and say."""

    def __init__(self, on_nonfinite):
        self.events, self.lines = [], []
        super().__init__(on_nonfinite, self.events.append, self.lines.append)


@pytest.fixture
def enter(learner, batches, tmp_path):
    """Makes a contestant at the begin of its first epoch, whose operator is imported anew."""

    numbers = count()

    def enter(operator, engine="reference", **settings):
        file = tmp_path / str(next(numbers)) / "ops.py"
        file.parent.mkdir()
        shutil.copy(Path(__file__).with_name("misbehaving_operators.py"), file)
        one = learner(engine, f"{file}:{operator}", **settings)
        one.warm_up(batches[:1])
        return Position(Contestant(operator, one), 0, len(batches))

    return enter


@pytest.mark.parametrize(
    ("engine", "optimizer"),
    [*((engine, "sgd") for engine in ("compiled", "reference", "eager")), ("reference", "adam"), ("eager", "adam")],
)
def test_skip_leaves_out_the_bad_steps_and_no_others(enter, batches, engine, optimizer):
    settings = {"optimizer": optimizer, "learning_rate": 0.1}
    place, steps = enter("nan_from_finite", engine, **settings), Heard("skip")
    losses, accuracies = steps.train(place, batches)
    skipped = [event.iteration for event in steps.events]
    assert 0 < len(skipped) < len(batches)
    assert list(np.flatnonzero(~np.isfinite(losses))) == skipped
    assert len(accuracies) == len(batches)

    other = enter("nan_from_finite", engine, **settings)
    for index in range(len(batches)):
        if index not in skipped:
            other.contestant.learner.train(batches[index : index + 1])
    after, expected = place.contestant.learner.state(), other.contestant.learner.state()
    assert after.keys() == expected.keys()
    for name, value in expected.items():
        if not name.startswith("random."):
            np.testing.assert_array_equal(after[name], value)


def test_the_first_skipped_step_is_reported_with_its_operator_and_all_are_counted(enter, batches):
    place, steps = enter("gradient_of_nan"), Heard("skip")
    steps.begin(place)
    steps.train(place, batches)
    steps.epoch(place, None)
    steps.begin(place)
    steps.epoch(place, None)  # in which no step was skipped
    first, last = steps.lines
    assert "the weights became NaN or infinite in iteration 0 of epoch 1.\nReplaying the step" in first
    assert first.endswith("This update is skipped, and so is every later one with NaN or infinite values.")
    assert last.endswith("8 of 8 updates of epoch 1 were skipped because of NaN or infinite values")
    assert [event.did for event in steps.events] == ["skip"] * 8
    assert [bool(event.what) for event in steps.events] == [True] + [False] * 7


def test_ignore_continues_with_nan(enter, batches):
    steps = Heard("ignore")
    losses, _ = steps.train(enter("gradient_of_nan"), batches)
    assert np.isfinite(losses).tolist() == [True] + [False] * 7
    assert steps.events == []


def test_a_network_of_nan_is_right_about_no_image(enter, batches, tiny):
    place = enter("gradient_of_nan")
    Heard("ignore").train(place, batches)
    config, dataset = tiny
    assert 0 in dataset.test_labels
    assert not trained(place.contestant, dataset, config, keep=False).right.any()


def test_nan_in_weights_is_found_though_the_operator_hides_it_from_the_loss(enter, batches):
    losses, _ = Heard("ignore").train(enter("nan_gradient_hidden_from_the_loss"), batches)
    assert np.isfinite(losses).all()
    with pytest.raises(OperatorError, match="the weights became NaN or infinite in iteration 0 of epoch 1"):
        Heard("stop").train(enter("nan_gradient_hidden_from_the_loss"), batches)


def test_nan_that_does_not_come_again_is_reported_as_such(enter, batches, engine):
    where = "between iteration 0 and iteration 7 of epoch 1"
    told = f"values were not finite {where}.\nReplaying the steps from the same weights gave finite values"
    with pytest.raises(OperatorError, match=told):
        Heard("stop").train(enter("sometimes_nan", engine), batches)
    steps = Heard("skip")
    losses, _ = steps.train(enter("sometimes_nan", engine), batches)
    assert np.isfinite(losses).all()
    assert [event.did for event in steps.events] == ["again"]


def test_nan_in_a_test_loss_stops_training_too(enter, batches):
    place = enter("nan_from_finite", learning_rate=1e-6)
    place.contestant.learner.train(batches)
    bad = Batches(255 - batches.images, batches.labels, None, 8)
    losses, _ = place.contestant.learner.measure(bad)
    index = int(np.argmin(np.isfinite(losses)))
    assert not np.isfinite(losses[index])
    with pytest.raises(OperatorError, match=f"the loss became NaN in test batch {index}, after epoch 1"):
        Heard("stop").measure(place, bad)


def test_if_all_is_finite_every_setting_gives_the_same_weights(enter, batches):
    weights = []
    for on_nonfinite in ("stop", "skip", "ignore"):
        place, steps = enter("relu_as_it_is"), Heard(on_nonfinite)
        steps.train(place, batches)
        weights.append(place.contestant.learner.weights())
        assert steps.events == steps.lines == []
    for name, first in weights[0].items():
        assert all(np.array_equal(first, other[name]) for other in weights)


# --- Blame ---

GOOD, BAD = np.ones(3, "float32"), np.array([1, np.inf, np.nan], "float32")


def test_the_first_operator_that_makes_bad_numbers_of_good_ones_is_blamed():
    looks = [
        OperatorRun("whole numbers and objects", [], [("a", np.arange(3)), ("b", np.array([None]))]),
        OperatorRun("fine", [("a", GOOD)], [("b", GOOD)]),
        OperatorRun("first", [("b", GOOD)], [("c", BAD)]),
        OperatorRun("second", [("c", BAD)], [("d", BAD)]),
    ]
    assert first_nonfinite(looks) is looks[2]
    assert first_nonfinite(looks[:2]) is None
    assert first_nonfinite(looks[3:]) is None


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (GOOD, "float32[3]  min 1, max 1, mean 1, all finite"),
        (BAD, "float32[3]  min 1, max 1, mean 1; not finite: 2 of 3 (1 NaN, 1 infinite)"),
        (BAD[2:], "float32[1]; not finite: 1 of 1 (1 NaN)"),
        (np.arange(4), "int64[4]  min 0, max 3, mean 1.5, all finite"),
        (np.array([True, False]), "bool[2]  min 0, max 1, mean 0.5, all finite"),
        (np.zeros((0, 2)), "float64[0, 2]"),
        (np.float32(3e38) * np.ones(9, "float32"), "float32[9]  min 3e+38, max 3e+38, mean 3e+38, all finite"),
    ],
    ids=lambda value: value.partition("  ")[0] if isinstance(value, str) else "",
)
def test_statistics_of_arrays(array, words):
    assert statistics(array) == words
