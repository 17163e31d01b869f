"""Runs of train.py, the same interrupted and resumed, and learners of their engines."""

from typing import get_args, get_type_hints

import msgspec
import pytest
from interrupted_runs import interrupted, resume, whole
from runs_of_train import images, start, tiny, train, type_it

from app.data import Batches
from app.run.activation import find_activation
from app.run.config import Config
from app.run.learners import make_learner

__all__ = ["images", "interrupted", "resume", "start", "tiny", "train", "type_it", "whole"]

ENGINES = get_args(get_type_hints(Config)["engine"])


@pytest.fixture(params=ENGINES)
def engine(request):
    """Each engine in turn."""
    return request.param


@pytest.fixture
def learner(tiny):
    """Makes learners for the tiny images, with settings of any section of a configuration."""

    def make(engine, activation="relu", seed=0, **settings):
        config, dataset = tiny
        for name in ("data", "model", "train"):
            section = getattr(config, name)
            of_section = {key: value for key, value in settings.items() if hasattr(section, key)}
            config = msgspec.structs.replace(config, **{name: msgspec.structs.replace(section, **of_section)})
        config = msgspec.structs.replace(config, engine=engine, seed=seed)
        if isinstance(activation, str):
            activation = find_activation(activation)
        return make_learner(config, activation, dataset.train_images.shape[1])

    return make


@pytest.fixture
def batches(tiny):
    """The batches of an epoch of the tiny images."""
    return Batches(tiny[1].train_images, tiny[1].train_labels, None, 8)
