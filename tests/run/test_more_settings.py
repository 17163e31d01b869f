"""Settings of training: clipping, dropout and rmsprop; and settings without an effect."""

import numpy as np
import pytest

from app.run.config import Config, DataConfig, DistConfig, ModelConfig, TrainConfig
from app.run.folder import read_weights
from app.run.layers import Dense
from app.run.summary import without_effect

pytestmark = pytest.mark.slow

ENGINES = ("reference", "eager")


def weights(run, operator):
    assert run.status == 0, run.err
    return np.concatenate([array.ravel() for _, array in sorted(read_weights(run.folder)[operator].arrays.items())])


@pytest.mark.parametrize("word", ["train.clip_norm=1", "model.dropout=0.1"])
def test_clipping_and_dropout_are_refused_on_ranks(train, word):
    run = train(word, "dist.shape=allreduce")
    assert run.status == 2
    assert f"{word.partition('=')[0]} is for one process" in run.err


@pytest.mark.parametrize("word", ["train.clip_norm=0.01", "model.dropout=0.5", "train.optimizer=rmsprop"])
def test_a_setting_changes_training_and_engines_agree_about_it(train, word):
    common = ("model.activation=tanh", "baseline=null", "train.epochs=1", "train.learning_rate=0.05")
    without = weights(train(*common, folder="without"), "tanh")
    found = [weights(train(*common, word, f"engine={e}", folder=e), "tanh") for e in ENGINES]
    assert np.allclose(*found, atol=1e-5)
    assert not np.allclose(found[0], without, atol=1e-4)


def test_a_network_with_dropout_is_tested_and_used_without_it(train):
    words = ("model.activation=tanh", "baseline=null", "train.epochs=1", "train.learning_rate=1e-9")
    run, plain = train(*words, "model.dropout=0.9"), train(*words, folder="plain")
    losses = [one.column("tanh", "epoch", "test_loss") for one in (run, plain)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert b"dropout" not in (run.folder / "model.json").read_bytes()


def test_settings_without_an_effect_are_noted():
    assert without_effect(Config(), 60_000) == []
    data, dist = DataConfig(source="sample", folder="there"), DistConfig(timeout=5)
    train, model = TrainConfig(momentum=0.5, batch_size=512), ModelConfig(hidden=(), dropout=0.1)
    assert without_effect(Config(data=data, model=model, train=train, dist=dist), 500) == [
        "train.momentum has no effect with train.optimizer=sgd.",
        "train.batch_size=512 exceeds the number of images, so it is 500.",
        "model.dropout has no effect without hidden layers.",
        "data.folder has no effect with data.source=sample.",
        "the settings in dist have no effect with dist.shape=none.",
    ]
    listed = ModelConfig(layers=(Dense(units=5),), hidden=(9,), dropout=0.1)
    assert without_effect(Config(model=listed), 60_000) == [
        "model.hidden has no effect with model.layers.",
        "model.dropout has no effect with model.layers.",
    ]
