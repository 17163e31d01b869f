"""What a run knows of its hidden units: counted by the engine over all test images, whatever the batches."""

from typing import get_args, get_type_hints

import msgspec
import numpy as np
import pytest

from app.data import Batches
from app.run.config import Config
from app.run.learners import make_learner
from app.run.network import find_activation

ENGINES = get_args(get_type_hints(Config)["engine"])


@pytest.mark.parametrize(("engine", "size"), [*((engine, 7) for engine in ENGINES), ("reference", 20)])
def test_it_is_what_the_weights_say(tiny, engine, size):
    config, dataset = tiny
    model = msgspec.structs.replace(config.model, hidden=(5, 4))
    quickly = "eager" if engine == "eager" else "reference"  # training as well would be compiled for nothing
    trained, learner = (
        make_learner(msgspec.structs.replace(config, engine=e, model=model), find_activation("custom.relu"), 12)
        for e in (quickly, engine)
    )
    trained.train(Batches(dataset.train_images, dataset.train_labels, None, 8))
    learner.restore(trained.state())
    tests = Batches(dataset.test_images, dataset.test_labels, None, size)
    _, accuracies = learner.measure(tests)
    scores = learner.scores(tests)
    right = scores.argmax(axis=1) == dataset.test_labels
    assert scores.shape == (20, 10)
    expected = [right[first : first + size].mean() for first in range(0, 20, size)]
    np.testing.assert_allclose(accuracies, expected, rtol=1e-6)
    weights, hidden = learner.weights(), dataset.test_images / 127.5 - 1
    for layer, activity in enumerate(learner.activity()):
        hidden = np.maximum(hidden @ weights[f"layers.{layer}.weight"] + weights[f"layers.{layer}.bias"], 0)
        zero = hidden == 0
        np.testing.assert_allclose(activity, (hidden.mean(), zero.mean(), zero.all(axis=0).mean()), rtol=1e-4)


@pytest.mark.parametrize("engine", ["reference", "eager"])
def test_a_network_without_hidden_layers_has_none(tiny, engine):
    config, dataset = tiny
    model = msgspec.structs.replace(config.model, hidden=())
    learner = make_learner(msgspec.structs.replace(config, engine=engine, model=model), find_activation("relu"), 12)
    learner.measure(Batches(dataset.test_images, dataset.test_labels, None, 7))
    assert learner.activity() == []
