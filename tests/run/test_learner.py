"""What every engine must do with a network: start equally, learn equally, repeat itself, and nothing but learn."""

from typing import get_args, get_type_hints

import msgspec
import numpy as np
import pytest

from app.data import Batches, Dataset
from app.errors import OperatorError
from app.run.config import Config
from app.run.learners import make_learner
from app.run.network import Activation, find_activation
from app.run.trust import Trust

ENGINES = get_args(get_type_hints(Config)["engine"])
OTHERS = [engine for engine in ENGINES if engine != "reference"]


def learner(config, dataset, activation="relu", **settings):
    train = {key: settings.pop(key) for key in list(settings) if hasattr(config.train, key)}
    changed = msgspec.structs.replace(config, train=msgspec.structs.replace(config.train, **train), **settings)
    operator = find_activation(activation, Trust(operators=[activation])) if isinstance(activation, str) else activation
    return make_learner(changed, operator, dataset.train_images.shape[1])


def batches(dataset, size=8):
    return Batches(dataset.train_images, dataset.train_labels, None, size)


def epochs(one, dataset, count=2):
    """Train; gives the losses and accuracies of each epoch, and the weights at the end."""
    figures = []
    for _ in range(count):
        figures += one.train(batches(dataset))
        one.end_epoch()
    return [*figures, *one.weights().values()]


def assert_equal(found, expected, **tolerance):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, **({"rtol": 0, "atol": 0} | tolerance))


@pytest.mark.parametrize("engine", OTHERS)
@pytest.mark.parametrize(("optimizer", "schedule"), [("sgd", "constant"), ("momentum", "cosine"), ("adam", "linear")])
def test_engines_agree_to_rounding(tiny, engine, optimizer, schedule):
    settings = {"optimizer": optimizer, "schedule": schedule, "weight_decay": 0.01, "learning_rate": 0.02}
    found, expected = (learner(*tiny, engine=e, **settings) for e in (engine, "reference"))
    assert_equal(epochs(found, tiny[1]), epochs(expected, tiny[1]), rtol=2e-5, atol=2e-6)
    tests = Batches(tiny[1].test_images, tiny[1].test_labels, None, 7)
    measured = found.measure(tests)
    assert_equal(list(measured), list(expected.measure(tests)), rtol=2e-5)
    assert [len(column) for column in measured] == [3, 3]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_seed_gives_the_same_numbers_bit_for_bit(tiny, engine):
    first, second, other = (
        epochs(learner(*tiny, engine=engine, seed=seed, weight_decay=0.01), tiny[1]) for seed in (5, 5, 6)
    )
    assert_equal(first, second)
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize("engine", ENGINES)
def test_equal_operators_learn_equally_bit_for_bit(tiny, engine):
    found, expected = (
        epochs(learner(*tiny, name, engine=engine, weight_decay=0.01), tiny[1]) for name in ("custom.relu", "relu")
    )
    assert_equal(found, expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_first_weights_depend_on_the_seed_alone(tiny, engine):
    expected = learner(*tiny, "relu", engine="reference").weights()
    found = learner(*tiny, "tanh", engine=engine).weights()
    assert list(found) == ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"]
    assert [list(w.shape) for w in found.values()] == [[12, 5], [5], [5, 10], [10]]
    assert_equal(list(found.values()), list(expected.values()))


@pytest.mark.parametrize("engine", ENGINES)
def test_pieces_of_an_epoch_give_what_the_whole_gives(tiny, engine):
    settings = {"optimizer": "momentum", "weight_decay": 0.01}
    whole, cut = (learner(*tiny, engine=engine, **settings) for _ in range(2))
    all_batches = batches(tiny[1])
    expected = whole.train(all_batches)
    pieces = [cut.train(all_batches[a:b]) for a, b in ((0, 1), (1, 5), (5, 8))]
    assert_equal([np.concatenate(column) for column in zip(*pieces, strict=True)], list(expected))


@pytest.mark.parametrize(("schedule", "rates"), [("constant", [1, 1, 1, 1]), ("linear", [1, 0.75, 0.5, 0.25])])
def test_the_learning_rate_follows_its_schedule(tiny, schedule, rates):
    config, dataset = tiny
    one = learner(config, dataset, engine="reference", schedule=schedule, epochs=4, learning_rate=1e-4)
    batch, steps = batches(dataset)[:1], []
    for _ in rates:
        before = one.weights()["layers.1.bias"].astype(np.float64)
        one.train(batch)
        steps.append(np.abs(one.weights()["layers.1.bias"] - before).sum())
        one.end_epoch()
    np.testing.assert_allclose(np.array(steps) / steps[0], rates, rtol=0.02)  # the gradient hardly changes


@pytest.mark.parametrize("engine", ["reference", "eager"])  # others run the Program of the reference engine
def test_pixels_are_scaled_to_their_range(tiny, engine):
    config, dataset = tiny
    white = Dataset.of([np.full((2, 4, 3), 255, np.uint8), np.zeros(2, np.uint8)] * 2, origin="white", verified=False)
    seen = []

    def looks(x):
        seen.append(x)
        return x

    scaled = msgspec.structs.replace(config, data=msgspec.structs.replace(config.data, pixel_range=(-3.0, 2.0)))
    one = learner(scaled, dataset, Activation("looks", looks), engine=engine)
    weights = one.weights()
    loss, _ = one.measure(Batches(white.test_images, white.test_labels, None, 2))
    scores = (np.full(12, 2.0) @ weights["layers.0.weight"]) @ weights["layers.1.weight"]
    expected = np.log(np.exp(scores - scores.max()).sum()) + scores.max() - scores[0]
    np.testing.assert_allclose(loss, [expected], rtol=1e-5)
    assert seen


@pytest.mark.parametrize("engine", ENGINES)
def test_an_operator_that_stops_gradients_is_refused(tiny, engine):
    config, dataset = tiny
    detached = Activation("mine", lambda x: x.detach())
    with pytest.raises(OperatorError) as caught:
        learner(config, dataset, detached, engine=engine).warm_up(batches(dataset)[:1])
    assert str(caught.value) == (
        "no gradient comes back through mine, so layers.0.weight, layers.0.bias would never be trained; "
        "declare one, such as with @operator.backward"
    )
