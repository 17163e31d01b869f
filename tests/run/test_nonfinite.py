"""Steps that give NaN or infinity, or raise: they end training with an error that names the operator and the step."""

import pickle
import shutil
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from app.data import Batches
from app.engine.watch import OperatorRun, first_nonfinite
from app.errors import OperatorError
from app.run.activation import find_activation
from app.run.callbacks import Position
from app.run.network import trained_network
from app.run.nonfinite import statistics
from app.run.predictions import classes_of
from app.run.steps import measure, take_steps


@pytest.fixture
def enter(learner, batches, tmp_path):
    """A position at the begin of an epoch, of a learner whose operator is imported anew."""

    numbers = count()

    def enter(operator, engine="reference", **settings):
        file = tmp_path / str(next(numbers)) / "ops.py"
        file.parent.mkdir()
        shutil.copy(Path(__file__).with_name("misbehaving_operators.py"), file)
        one = learner(engine, f"{file}:{operator}", **settings)
        one.compile(batches[:1])
        return Position(one, 0, len(batches))

    return enter


def equal_states(learner, other):
    state, expected = learner.state(), other.state()
    assert state.keys() == expected.keys()
    for name, value in expected.items():
        if not name.startswith("random."):
            np.testing.assert_array_equal(state[name], value)


@pytest.mark.parametrize(
    ("engine", "optimizer"),
    [*((engine, "sgd") for engine in ("compiled", "reference", "eager")), ("reference", "adam"), ("eager", "adam")],
)
def test_the_first_bad_step_is_named_and_the_state_is_the_one_before_it(enter, batches, engine, optimizer):
    settings = {"optimizer": optimizer, "learning_rate": 0.1}
    place, first = enter("nan_from_finite", engine, **settings), 2
    with pytest.raises(OperatorError, match=r"the loss became NaN in iteration 2 of epoch 1\.\nReplaying") as e:
        take_steps(place, batches)
    event = pickle.loads(pickle.dumps(e.value)).event  # as from a worker
    assert (event.epoch, event.iteration) == (0, first)
    assert "is the first operator that turns finite inputs into NaN or inf" in event.what
    assert event.what in str(e.value)

    other = enter("nan_from_finite", engine, **settings)
    other.learner.train(batches[:first])
    equal_states(place.learner, other.learner)


@pytest.mark.parametrize("operator", ["raises_later", "raises_once"])
def test_an_exception_says_between_which_iterations_and_leaves_the_state_before_them(enter, batches, operator):
    place, other = enter(operator), enter("relu_as_it_is")

    def train():
        for _ in range(30):  # it raises at its 61st call
            take_steps(place, batches)
            other.learner.train(batches)

    with pytest.raises(OperatorError, match=r"enough of it .*\nThis happened between iteration 0 and iteration 7 of"):
        train()
    equal_states(place.learner, other.learner)


def test_nan_in_weights_is_found_though_the_operator_hides_it_from_the_loss(enter, batches):
    place = enter("nan_gradient_hidden_from_the_loss")
    losses, _ = place.learner.train(batches)
    assert np.isfinite(losses).all()
    with pytest.raises(OperatorError, match="the weights became NaN or infinite in iteration 0 of epoch 1"):
        take_steps(enter("nan_gradient_hidden_from_the_loss"), batches)


def test_a_network_of_nan_is_right_about_no_image(enter, batches, tiny):
    place = enter("gradient_of_nan")
    place.learner.train(batches)
    config, dataset = tiny
    assert 0 in dataset.test_labels
    network = trained_network(config, find_activation("relu"), 12, place.learner.weights())
    assert not (classes_of(network.scores(dataset.test_images)) == dataset.test_labels).any()


def test_nan_that_does_not_come_again_is_reported_as_such(enter, batches, engine):
    where = "between iteration 0 and iteration 7 of epoch 1"
    message = f"values were not finite {where}.\nReplaying the steps from the same weights gave finite values"
    with pytest.raises(OperatorError, match=message):
        take_steps(enter("sometimes_nan", engine), batches)


def test_nan_in_a_test_loss_stops_training_too(enter, batches):
    place = enter("nan_from_finite", learning_rate=1e-6)
    place.learner.train(batches)
    bad = Batches(255 - batches.images, batches.labels, None, 8)
    losses, _ = place.learner.measure(bad)
    index = int(np.argmin(np.isfinite(losses)))
    assert not np.isfinite(losses[index])
    with pytest.raises(OperatorError, match=f"the loss became NaN in test batch {index}, after epoch 1"):
        measure(place, bad)


def test_steps_give_the_weights_of_the_learner_alone(enter, batches):
    place, other = enter("relu_as_it_is"), enter("relu_as_it_is")
    take_steps(place, batches)
    other.learner.train(batches)
    equal_states(place.learner, other.learner)


# --- The first operator ---

GOOD, BAD = np.ones(3, "float32"), np.array([1, np.inf, np.nan], "float32")


def test_the_first_operator_that_makes_bad_numbers_of_good_ones_is_found():
    runs = [
        OperatorRun("whole numbers and objects", [], [("a", np.arange(3)), ("b", np.array([None]))]),
        OperatorRun("fine", [("a", GOOD)], [("b", GOOD)]),
        OperatorRun("first", [("b", GOOD)], [("c", BAD)]),
        OperatorRun("second", [("c", BAD)], [("d", BAD)]),
    ]
    assert first_nonfinite(runs) is runs[2]
    assert first_nonfinite(runs[:2]) is None
    assert first_nonfinite(runs[3:]) is None


@pytest.mark.parametrize(
    ("array", "text"),
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
def test_statistics_of_arrays(array, text):
    assert statistics(array) == text
