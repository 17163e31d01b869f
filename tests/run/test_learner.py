"""What every engine must do with a network: start equally, learn equally, repeat itself, and measure correctly."""

import numpy as np
import pytest

from app.data import Batches
from app.errors import OperatorError
from app.run.activation import Activation

ONCE_COMPILED = {"optimizer": "momentum", "weight_decay": 0.01}
"""Settings of tests that run the same compiled code."""


def epochs(one, batches, count=2):
    """Train; gives the losses and accuracies of each epoch, and the weights at the end."""
    figures = []
    for _ in range(count):
        figures += one.train(batches)
        one.end_epoch()
    return [*figures, *one.weights().values()]


def assert_equal(actual, expected, **tolerance):
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, **({"rtol": 0, "atol": 0} | tolerance))


@pytest.mark.parametrize(
    ("engine", "optimizer", "schedule"),
    [
        ("compiled", "momentum", "cosine"),
        *(("eager", *pair) for pair in (("sgd", "constant"), ("momentum", "cosine"), ("adam", "linear"))),
    ],
)
def test_engines_agree_to_rounding(learner, batches, tiny, engine, optimizer, schedule):
    settings = {**ONCE_COMPILED, "optimizer": optimizer, "schedule": schedule, "learning_rate": 0.02}
    actual, expected = (learner(e, **settings) for e in (engine, "reference"))
    assert_equal(epochs(actual, batches), epochs(expected, batches), rtol=2e-5, atol=2e-6)
    tests = Batches(tiny[1].test_images, tiny[1].test_labels, None, 7)
    measured = actual.measure(tests)
    assert_equal(measured, expected.measure(tests), rtol=2e-5)
    assert [len(column) for column in measured] == [3, 3]


@pytest.mark.parametrize("settings", [{"clip_norm": 0.01}, {"dropout": 0.5}, {"optimizer": "rmsprop"}], ids=str)
def test_a_setting_changes_training_and_engines_agree_about_it(learner, batches, settings):
    expected, actual, without = (
        epochs(learner(engine, "tanh", **more), batches)
        for engine, more in (("reference", settings), ("eager", settings), ("reference", {}))
    )
    assert_equal(actual, expected, rtol=2e-5, atol=2e-6)
    assert not np.allclose(expected[0], without[0], rtol=1e-4)


@pytest.mark.parametrize("engine", ["reference", "eager"])
def test_a_network_with_dropout_is_measured_without_it(learner, batches, engine):
    dropping, whole = (learner(engine, "tanh", dropout=share) for share in (0.9, 0.0))
    assert_equal(dropping.measure(batches), whole.measure(batches), rtol=1e-6)


def test_equal_operators_with_the_same_seed_give_the_same_numbers_bit_for_bit(learner, batches, engine):
    first, same, again, other = (
        epochs(learner(engine, name, seed=seed, **ONCE_COMPILED), batches)
        for name, seed in (("relu", 5), ("custom.relu", 5), ("relu", 5), ("relu", 6))
    )
    assert_equal(first, same)
    assert_equal(first, again)
    assert not np.array_equal(first[0], other[0])


def test_first_weights_depend_on_the_seed_alone(learner, engine):
    expected, actual = learner("reference", "relu").weights(), learner(engine, "tanh").weights()
    assert list(actual) == ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"]
    assert [weights.shape for weights in actual.values()] == [(12, 5), (5,), (5, 10), (10,)]
    assert_equal(actual.values(), expected.values())


def test_training_an_epoch_in_pieces_gives_the_same_numbers(learner, batches, engine):
    whole, cut = (learner(engine, **ONCE_COMPILED) for _ in range(2))
    expected = whole.train(batches)
    pieces = [cut.train(batches[a:b]) for a, b in ((0, 1), (1, 5), (5, 8))]
    assert_equal([np.concatenate(column) for column in zip(*pieces, strict=True)], expected)


@pytest.mark.parametrize(("schedule", "rates"), [("constant", [1, 1, 1, 1]), ("linear", [1, 0.75, 0.5, 0.25])])
def test_the_learning_rate_follows_its_schedule(learner, batches, schedule, rates):
    one, steps = learner("reference", schedule=schedule, epochs=4, learning_rate=1e-4), []
    for _ in rates:
        before = one.weights()["layers.1.bias"].astype(np.float64)
        one.train(batches[:1])
        steps.append(np.abs(one.weights()["layers.1.bias"] - before).sum())
        one.end_epoch()
    np.testing.assert_allclose(np.array(steps) / steps[0], rates, rtol=0.02)  # the gradient hardly changes


@pytest.mark.parametrize("engine", ["reference", "eager"])  # others run the Program of the reference engine
def test_pixels_are_scaled_to_their_range(learner, engine):
    one = learner(engine, Activation("identity", lambda x: x * 1.0), pixel_range=(-3.0, 2.0))
    weights = one.weights()
    loss, _ = one.measure(Batches(np.full((2, 12), 255, np.uint8), np.zeros(2, np.int64), None, 2))
    scores = (np.full(12, 2.0) @ weights["layers.0.weight"]) @ weights["layers.1.weight"]
    expected = np.log(np.exp(scores - scores.max()).sum()) + scores.max() - scores[0]
    np.testing.assert_allclose(loss, [expected], rtol=1e-5)


def test_an_operator_that_stops_gradients_is_refused(learner, batches, engine):
    with pytest.raises(OperatorError) as caught:
        learner(engine, Activation("mine", lambda x: x.detach())).compile(batches[:1])
    assert str(caught.value) == (
        "no gradient comes back through mine, so layers.0.weight, layers.0.bias would never be trained; "
        "declare one, such as with @operator.backward"
    )


# --- What is measured: accuracies of batches, and what operators take and give ---


@pytest.mark.parametrize(("engine", "size"), [("reference", 7), ("eager", 7), ("reference", 20)])
def test_accuracies_are_those_of_the_weights(learner, batches, tiny, engine, size):
    one = learner(engine, "custom.relu", hidden=(5, 4))
    one.train(batches)
    images, labels = tiny[1].test_images, tiny[1].test_labels
    tests = Batches(images, labels, None, size)
    _, accuracies = one.measure(tests)
    weights, hidden = one.weights(), images / 127.5 - 1
    for layer in range(2):
        hidden = np.maximum(hidden @ weights[f"layers.{layer}.weight"] + weights[f"layers.{layer}.bias"], 0)
    right = (hidden @ weights["layers.2.weight"] + weights["layers.2.bias"]).argmax(axis=1) == labels
    expected = [right[first : first + size].mean() for first in range(0, 20, size)]
    np.testing.assert_allclose(accuracies, expected, rtol=1e-6)
