"""Numbers that are not finite: which steps are bad, and what `train.on_nonfinite` makes of them."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import get_args, get_type_hints

import msgspec
import numpy as np
import pytest

from app.data import Batches
from app.engine.watch import OperatorRun, first_nonfinite
from app.errors import OperatorError
from app.run.callbacks import Contestant, Position
from app.run.config import Config
from app.run.finite import blame, statistics
from app.run.learners import make_learner
from app.run.network import find_activation
from app.run.steps import Steps, _between
from app.run.trust import Trust

ENGINES = get_args(get_type_hints(Config)["engine"])
OPERATORS = Path(__file__).parent / "misbehaving_operators.py"


class Said:
    """What a run records and says."""

    def __init__(self):
        self.events = []
        self.lines = []

    def steps(self, on_nonfinite):
        return Steps(on_nonfinite, self.events.append, self.lines.append)


@pytest.fixture
def said():
    return Said()


def entered(tiny, tmp_path, operator, engine, **settings):
    """A contestant at the begin of its first epoch, and the batches of that."""
    config, dataset = tiny
    shutil.copy(OPERATORS, tmp_path / "ops.py")
    train = msgspec.structs.replace(config.train, **settings)
    config = msgspec.structs.replace(config, engine=engine, train=train)
    name = f"{tmp_path}/ops.py:{operator}"
    learner = make_learner(config, find_activation(name, Trust(operators=[name])), dataset.train_images.shape[1])
    batches = Batches(dataset.train_images, dataset.train_labels, None, config.train.batch_size)
    learner.warm_up(batches[:1])
    return Position(Contestant(name, learner), 0, 0, len(batches)), batches


@pytest.mark.parametrize(
    ("engine", "optimizer"), [*((engine, "sgd") for engine in ENGINES), ("reference", "adam"), ("eager", "adam")]
)
def test_skip_leaves_out_the_bad_steps_and_no_others(tiny, tmp_path, said, engine, optimizer):
    settings = {"optimizer": optimizer, "learning_rate": 0.1}
    place, batches = entered(tiny, tmp_path, "nan_from_finite", engine, **settings)
    losses, accuracies = said.steps("skip").train(place, batches)
    skipped = [event.iteration for event in said.events]
    assert 0 < len(skipped) < len(batches)
    assert list(np.flatnonzero(~np.isfinite(losses))) == skipped
    assert len(accuracies) == len(batches)

    other, _ = entered(tiny, tmp_path, "nan_from_finite", engine, **settings)
    for index in range(len(batches)):
        if index not in skipped:
            other.contestant.learner.train(batches[index : index + 1])
    after, expected = place.contestant.learner.state(), other.contestant.learner.state()
    assert after.keys() == expected.keys()
    for name, value in expected.items():
        if not name.startswith("random."):
            np.testing.assert_array_equal(after[name], value)


def test_the_first_step_that_is_skipped_is_told_with_its_operator_and_all_are_counted(tiny, tmp_path, said):
    place, batches = entered(tiny, tmp_path, "gradient_of_nan", "reference")
    steps = said.steps("skip")
    steps.begin(place)
    steps.train(place, batches)
    steps.epoch(place, None)
    first, last = said.lines
    assert "the weights became NaN or infinite in iteration 0 of epoch 1.\nReplaying the step" in first
    assert first.endswith("This update is skipped, and so is every later one with NaN or infinite values.")
    assert last.endswith("8 of 8 updates of epoch 1 were skipped because of NaN or infinite values")
    assert [event.did for event in said.events] == ["skip"] * 8
    assert [bool(event.what) for event in said.events] == [True] + [False] * 7


def test_ignore_goes_on_whatever_comes(tiny, tmp_path, said):
    place, batches = entered(tiny, tmp_path, "gradient_of_nan", "reference")
    losses, _ = said.steps("ignore").train(place, batches)
    assert np.isfinite(losses).tolist() == [True] + [False] * 7
    assert said.events == []


def test_weights_that_are_nan_are_found_though_the_operator_hides_them_from_the_loss(tiny, tmp_path, said):
    place, batches = entered(tiny, tmp_path, "nan_gradient_hidden_from_the_loss", "reference")
    losses, _ = Steps().train(place, batches)
    assert np.isfinite(losses).all()
    place, batches = entered(tiny, tmp_path, "nan_gradient_hidden_from_the_loss", "reference")
    with pytest.raises(OperatorError, match="the weights became NaN or infinite in iteration 0 of epoch 1"):
        said.steps("stop").train(place, batches)


@pytest.mark.parametrize("engine", ENGINES)
def test_numbers_that_are_bad_only_once_are_told_to_be_so(tiny, tmp_path, said, engine):
    place, batches = entered(tiny, tmp_path, "sometimes_nan", engine)
    with pytest.raises(OperatorError, match="Replaying the steps from the same weights gave finite values"):
        said.steps("stop").train(place, batches)


def test_with_skip_a_piece_that_is_good_the_second_time_counts(tiny, tmp_path, said):
    place, batches = entered(tiny, tmp_path, "sometimes_nan", "reference")
    losses, _ = said.steps("skip").train(place, batches)
    assert np.isfinite(losses).all()
    assert [event.did for event in said.events] == ["again"]


def test_a_test_loss_that_is_nan_stops_training_too(tiny, tmp_path, said):
    place, batches = entered(tiny, tmp_path, "nan_from_finite", "reference", learning_rate=1e-6)
    place.contestant.learner.train(batches)
    bad = Batches(255 - batches.images, batches.labels, None, 8)
    losses, _ = place.contestant.learner.measure(bad)
    assert not np.isfinite(losses).all()
    index = int(np.argmin(np.isfinite(losses)))
    where = f"the loss became NaN in test batch {index}, after epoch 1"
    with pytest.raises(OperatorError, match=where):
        said.steps("stop").measure(place, bad)


def test_where_all_is_finite_the_steps_are_those_of_the_learner(tiny, tmp_path, said):
    weights = []
    for on_nonfinite in ("stop", "skip", "ignore"):
        place, batches = entered(tiny, tmp_path, "relu_as_it_is", "reference")
        said.steps(on_nonfinite).train(place, batches)
        weights.append(place.contestant.learner.weights())
    for name in weights[0]:
        assert np.array_equal(weights[0][name], weights[1][name])
        assert np.array_equal(weights[0][name], weights[2][name])
    assert said.events == said.lines == []


# Blame

GOOD, BAD = np.ones(3, "float32"), np.array([1, np.inf, np.nan], "float32")


def test_the_first_that_makes_bad_numbers_of_good_ones_is_to_blame():
    looks = [
        OperatorRun("fine", [("a", GOOD)], [("b", GOOD)]),
        OperatorRun("first", [("b", GOOD)], [("c", BAD)]),
        OperatorRun("second", [("c", BAD)], [("d", BAD)]),
    ]
    assert first_nonfinite(looks) is looks[1]
    assert first_nonfinite(looks[:1]) is None
    assert first_nonfinite(looks[2:]) is None


def test_whole_numbers_and_objects_are_finite():
    assert first_nonfinite([OperatorRun("any", [], [("a", np.arange(3)), ("b", np.array([None]))])]) is None


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
)
def test_statistics_say_what_numbers_are_like(array, words):
    assert statistics(array) == words


def test_blame_asks_for_a_smaller_learning_rate_only_where_numbers_are_large():
    large = OperatorRun("matmul", [("x", np.full(2, 1e30, "float32"))], [("y", BAD)])
    assert "train.learning_rate may be too high" in blame(large, "relu")
    assert "learning_rate" not in blame(large._replace(inputs=[("x", GOOD)]), "relu")


@pytest.mark.parametrize(
    ("steps", "told"), [(1, "in iteration 4 of epoch 2"), (3, "between iteration 4 and iteration 6 of epoch 2")]
)
def test_the_first_and_the_last_iteration_that_may_be_to_blame_are_named(steps, told):
    assert _between(SimpleNamespace(done=4, epoch=1), range(steps)) == told
