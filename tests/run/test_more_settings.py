"""Settings of operators in their names, and of training: clipping, dropout, rmsprop; and those without an effect."""

import numpy as np
import pytest

from app.errors import ConfigError
from app.run.config import Config, DataConfig, DistConfig, ModelConfig, TrainConfig
from app.run.folder import read_weights
from app.run.network import find_activation
from app.run.summary import without_effect

pytestmark = pytest.mark.slow

ENGINES = ("reference", "eager")


def weights(run, operator):
    assert run.status == 0, run.err
    return np.concatenate([array.ravel() for _, array in sorted(read_weights(run.folder)[operator].arrays.items())])


@pytest.mark.parametrize("engine", ENGINES)
def test_an_operator_may_be_named_with_its_settings(train, engine):
    mine, built_in = "custom.leaky_relu(slope=0.5)", "leaky_relu(negative_slope=0.5)"
    run = train(f"model.activation={mine}", f"baseline={built_in}", f"engine={engine}", "train.learning_rate=0.1")
    assert np.allclose(weights(run, mine), weights(run, built_in), atol=1e-6)
    plain = train("model.activation=custom.leaky_relu", "baseline=null", f"engine={engine}", folder="plain")
    assert not np.array_equal(weights(plain, "custom.leaky_relu"), weights(run, mine))


@pytest.mark.parametrize("name", ["relu(", "relu(1)", "relu(a=open('x'))", "relu(a=1)(b=2)", "relu(a=1", "relu)("])
def test_settings_that_cannot_be_read_are_refused(name):
    with pytest.raises(ConfigError):
        find_activation(name)


def test_a_setting_that_an_operator_does_not_have_is_told(train):
    run = train("model.activation=custom.leaky_relu(steepness=1)", "baseline=null")
    assert run.status == 1
    assert "steepness" in run.err


@pytest.mark.parametrize("word", ["train.clip_norm=0.01", "model.dropout=0.5", "train.optimizer=rmsprop"])
def test_a_setting_changes_training_and_engines_agree_about_it(train, word):
    common = ("model.activation=tanh", "baseline=null", "train.epochs=1", "train.learning_rate=0.05")
    without = weights(train(*common, folder="without"), "tanh")
    found = [weights(train(*common, word, f"engine={e}", folder=e), "tanh") for e in ENGINES]
    assert np.allclose(*found, atol=1e-5)
    assert not np.allclose(found[0], without, atol=1e-4)


def test_a_network_with_dropout_is_tested_and_used_without_it(train):
    run = train(
        "model.activation=tanh", "baseline=null", "model.dropout=0.9", "train.epochs=1", "train.learning_rate=1e-9"
    )
    plain = train(
        "model.activation=tanh", "baseline=null", "train.epochs=1", "train.learning_rate=1e-9", folder="plain"
    )
    assert run.column("tanh", "epoch", "test_loss") == pytest.approx(
        plain.column("tanh", "epoch", "test_loss"), rel=1e-5
    )
    assert b"dropout" not in (run.folder / "model.json").read_bytes()


@pytest.mark.parametrize("word", ["train.clip_norm=1", "model.dropout=0.1"])
def test_what_ranks_cannot_do_together_is_refused(train, word):
    run = train(word, "dist.shape=allreduce")
    assert run.status == 2
    assert f"{word.partition('=')[0]} is for one process" in run.err


def test_a_setting_without_an_effect_draws_a_line():
    assert without_effect(Config(), 60_000) == []
    changed = Config(
        data=DataConfig(source="sample", folder="there"),
        model=ModelConfig(hidden=(), dropout=0.1),
        train=TrainConfig(momentum=0.5, batch_size=512),
        dist=DistConfig(timeout=5),
    )
    assert without_effect(changed, 500) == [
        "train.momentum has no effect with train.optimizer=sgd.",
        "train.batch_size=512 exceeds the number of images, so it is 500.",
        "model.dropout has no effect without hidden layers.",
        "data.folder has no effect with data.source=sample.",
        "the settings in dist have no effect with dist.shape=none.",
    ]
