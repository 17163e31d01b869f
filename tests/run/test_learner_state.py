"""A learner that is taken to where another was goes on as that one does, to the last bit."""

from collections.abc import Callable
from typing import get_args, get_type_hints

import msgspec
import numpy as np
import pytest

import app
from app.data import Batches
from app.errors import FileError
from app.run.config import Config
from app.run.learners import Learner, make_learner
from app.run.network import Activation, find_activation

ENGINES = get_args(get_type_hints(Config)["engine"])

Make = Callable[..., Learner]


@pytest.fixture(params=ENGINES)
def make(request, tiny):
    """Makes learners of one engine."""

    def make(activation=None, seed=0, **settings):
        config, dataset = tiny
        train = msgspec.structs.replace(config.train, **settings)
        config = msgspec.structs.replace(config, engine=request.param, train=train, seed=seed)
        return make_learner(config, activation or find_activation("relu"), dataset.train_images.shape[1])

    return make


@pytest.fixture
def batches(tiny):
    return Batches(tiny[1].train_images, tiny[1].train_labels, None, 8)


def trained(learner, batches):
    """All that two epochs bring."""
    found = []
    for _ in range(2):
        found += [column.tobytes() for column in learner.train(batches)]
        learner.end_epoch()
    return [*found, *(value.tobytes() for value in learner.state().values())]


@pytest.mark.parametrize(("optimizer", "schedule"), [("sgd", "constant"), ("momentum", "cosine"), ("adam", "linear")])
def test_it_goes_on_as_the_other_does(make, batches, optimizer, schedule):
    settings = {"optimizer": optimizer, "schedule": schedule, "epochs": 5, "weight_decay": 0.01}
    one, other = make(**settings), make(seed=7, **settings)
    trained(one, batches)
    other.restore(one.state())
    assert trained(other, batches) == trained(one, batches)


def noisy(x):
    return app.nn.functional.dropout(app.tanh(x), 0.5, training=True)


def test_random_operators_go_on_too(make, batches):
    one, other = (make(Activation("noisy", noisy), seed=seed, optimizer="momentum") for seed in (0, 7))
    first = trained(one, batches)
    assert first != trained(one, batches)
    other.restore(one.state())
    assert trained(other, batches) == trained(one, batches)


def test_what_others_draw_changes_nothing(make, batches):
    one, other = (make(Activation("noisy", noisy), optimizer="momentum") for _ in range(2))
    found = trained(one, batches)
    app.seed(5)
    assert trained(other, batches) == found
    place = app.get_rng_state()
    other.train(batches)
    assert app.get_rng_state() == place


def test_warming_up_and_measuring_leave_the_state_as_it_was(make, batches):
    one = make(Activation("noisy", noisy), optimizer="momentum")
    before = one.state()
    one.warm_up(batches[:1])
    one.measure(batches)
    one.weights()["layers.0.weight"][:] = 0  # which is a copy
    after = one.state()
    assert before.keys() == after.keys()
    assert all(before[name].tobytes() == after[name].tobytes() for name in before)


def test_a_state_is_a_copy_and_is_copied(make, batches):
    one = make(optimizer="adam", weight_decay=0.01)
    state = one.state()
    before = {name: value.copy() for name, value in state.items()}
    one.train(batches)
    assert all(np.array_equal(state[name], before[name]) for name in state)
    one.restore(state)
    one.train(batches)
    assert all(np.array_equal(state[name], before[name]) for name in state)


def test_the_state_of_another_network_is_refused_and_changes_nothing(make, batches):
    one = make()
    before = one.state()
    for wrong in (make(optimizer="momentum").state(), {**before, "schedule.last_lr": np.zeros(2)}):
        with pytest.raises(FileError, match="the state is that of another network: expected"):
            one.restore(wrong)
    assert all(value.tobytes() == before[name].tobytes() for name, value in one.state().items())
