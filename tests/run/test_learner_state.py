"""A learner with the state of another one continues like that one, to the last bit."""

import numpy as np
import pytest

import app
from app.errors import FileError
from app.run.activation import Activation


def trained(learner, batches):
    """All that two epochs bring."""
    values = []
    for _ in range(2):
        values += [column.tobytes() for column in learner.train(batches)]
        learner.end_epoch()
    return [*values, *contents(learner.state()).values()]


def contents(state):
    return {name: value.tobytes() for name, value in state.items()}


OPTIMIZERS = [("sgd", "constant"), ("momentum", "cosine"), ("adam", "linear")]
ONCE_COMPILED = {"optimizer": "momentum", "weight_decay": 0.01}
"""Settings of tests that run the same compiled code."""
NOISY = Activation("noisy", lambda x: app.nn.functional.dropout(app.relu(x), 0.5, training=True))


@pytest.mark.parametrize(
    ("engine", "activation", "optimizer", "schedule"),
    [
        *((engine, "relu", *pair) for engine in ("reference", "eager") for pair in OPTIMIZERS),
        *((engine, NOISY, "momentum", "constant") for engine in ("compiled", "reference", "eager")),
    ],
)
def test_a_restored_learner_continues_like_the_other(learner, batches, engine, activation, optimizer, schedule):
    settings = {"optimizer": optimizer, "schedule": schedule, "epochs": 5, "weight_decay": 0.01}
    one, other = (learner(engine, activation, seed=seed, **settings) for seed in (0, 7))
    trained(one, batches)
    other.restore(one.state())
    assert trained(other, batches) == trained(one, batches)


def test_random_numbers_of_the_framework_and_of_learners_are_separate(learner, batches, engine):
    one, other = (learner(engine, NOISY, **ONCE_COMPILED) for _ in range(2))
    values = trained(one, batches)
    assert values != trained(one, batches)
    app.seed(5)
    assert trained(other, batches) == values
    place = app.get_rng_state()
    other.train(batches)
    assert app.get_rng_state() == place


def test_compiling_measuring_and_changes_of_copies_leave_the_state_as_it_was(learner, batches, engine):
    one = learner(engine, NOISY, **ONCE_COMPILED)
    before = contents(one.state())
    one.compile(batches[:1])
    one.measure(batches)
    one.weights()["layers.0.weight"][:] = 0  # which is a copy
    assert contents(one.state()) == before
    state = one.state()
    for _ in range(2):
        one.train(batches)
        assert contents(state) == before  # also a copy
        one.restore(state)


def test_the_state_of_another_network_is_refused_and_changes_nothing(learner, engine):
    one = learner(engine)
    before = one.state()
    for wrong in (learner(engine, optimizer="momentum").state(), {**before, "schedule.last_lr": np.zeros(2)}):
        with pytest.raises(FileError, match="the state is that of another network: expected"):
            one.restore(wrong)
    assert contents(one.state()) == contents(before)
