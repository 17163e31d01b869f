"""What is recorded of parameters after an epoch: the norms of their gradients, and the operators' own ones."""

import msgspec
import numpy as np
import pytest

from app.graph import dynamic_mode
from app.nn import functional
from app.run.activation import find_activation
from app.run.callbacks import ParameterMetrics
from app.run.events import Parameters
from app.run.network import trained_network
from app.run.run import train_epochs
from app.tensor import Tensor


def recorded(learner, tiny, engine, batch_size, activation="relu"):
    config, dataset = tiny
    train = msgspec.structs.replace(config.train, epochs=1, batch_size=batch_size)
    config, events = msgspec.structs.replace(config, train=train), []
    one = learner(engine, activation)
    train_epochs(config, dataset, [one], lambda event: None, [ParameterMetrics(events.append)])
    return events, one.weights()


def gradient_norms(learner, tiny, engine, batch_size):
    """The norms by reverse differentiation of the loss over all images, of the network before training."""
    config, dataset = tiny
    weights = learner(engine).weights()
    network = trained_network(config, find_activation("relu"), dataset.image_shape, weights)
    with dynamic_mode():
        scores = network(Tensor(dataset.train_images[:batch_size]))
        functional.cross_entropy(scores, Tensor(dataset.train_labels[:batch_size])).backward()
    return {path: float(np.linalg.norm(p.grad.numpy())) for path, p in network.named_parameters()}


@pytest.mark.parametrize("engine", ["reference", "eager"])  # compiled code runs the Programs of the reference engine
def test_with_plain_sgd_they_are_the_norms_of_the_gradients(learner, tiny, engine):
    everything = len(tiny[1].train_images)  # one batch, so the order of the images does not matter
    (event,), _ = recorded(learner, tiny, engine, everything)
    assert isinstance(event, Parameters)
    assert event.steps == pytest.approx(gradient_norms(learner, tiny, engine, everything), rel=1e-3)
    assert event.own == {}


@pytest.mark.parametrize("engine", ["reference", "eager"])
def test_an_operators_own_parameters_are_recorded(learner, tiny, engine):
    (event,), weights = recorded(learner, tiny, engine, 8, "custom.prelu")
    (slope,) = weights["activations.0.slope"].ravel()
    assert event.own == {"activations.0.slope": pytest.approx((slope, slope, slope))}
    assert event.steps["activations.0.slope"] > 0
