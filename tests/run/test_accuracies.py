"""The accuracies that are promised, on the full set: those of the Paddle tutorial, of best.yaml and of lenet.yaml."""

import os
import re
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from app.data import load
from app.errors import DataError
from app.run import config as config_module
from app.run.callbacks import Contestant
from app.run.config import load_config
from app.run.layers import layer_names
from app.run.learners import make_learner
from app.run.loop import TrainingLoop
from app.run.network import find_activation
from app.run.options import CONFIGS

pytestmark = pytest.mark.slow

README = Path(config_module.__file__).parents[2] / "README.md"
TUTORIAL = [0.838, 0.872, 0.886, 0.893, 0.896]


@pytest.fixture(scope="module")
def mnist():
    """The full set, if it has been fetched: tests fetch nothing."""
    try:
        return load("auto", sources=[], say=lambda message: None)
    except DataError:
        pytest.skip("the full MNIST is not in the cache; `make data` fetches it")


def accuracies(mnist, file, *overrides):
    """Test accuracy after each epoch of the custom operator's network alone."""
    config = load_config(CONFIGS / file, overrides)
    activation = find_activation(config.model.activation)
    contestant = Contestant(activation.name, make_learner(config, activation, mnist.image_shape))
    with threadpool_limits(1):  # threads that wait for each other take minutes where tests run side by side
        TrainingLoop(config, mnist, [contestant], []).run()
    return [epoch.test_accuracy for epoch in contestant.epochs]


def test_seed_reaches_what_the_tutorial_reports(mnist):
    ours = accuracies(mnist, "seed.yaml")
    assert ours == pytest.approx(TUTORIAL, abs=0.02)
    assert ours == pytest.approx(shown_in_the_readme(), abs=0.002)  # other BLAS libraries round otherwise


def shown_in_the_readme():
    """The row of the README that shows ours below those of the tutorial."""
    rows = dict(re.findall(r"^\| ([\w ]+?) +\| (0\.[\d |.]+) \|$", README.read_text(encoding="utf-8"), re.M))
    table = {name: [float(figure) for figure in row.split("|")] for name, row in rows.items()}
    assert table["Paddle tutorial"] == TUTORIAL
    return table["opsmith"]


def test_best_is_a_two_layer_network_with_the_custom_relu_and_at_most_20_epochs():
    config = load_config(CONFIGS / "best.yaml")
    assert (len(config.model.hidden), config.model.activation) == (1, "custom.relu")
    assert config.train.epochs <= 20


def test_lenet_is_six_and_sixteen_convolutions_with_the_custom_relu_and_at_most_10_epochs():
    config = load_config(CONFIGS / "lenet.yaml")
    assert layer_names(config.model.all_layers) == ["conv6", "max_pool2", "conv16", "max_pool2", "120", "84"]
    assert (config.model.activation, config.baseline) == ("custom.relu", "relu")
    assert config.train.epochs <= 10


@pytest.mark.skipif("SLOW" not in os.environ, reason="trains for minutes; set SLOW=1")
@pytest.mark.parametrize("seed", range(3))
def test_lenet_reaches_99_percent_with_every_seed(mnist, seed):
    assert accuracies(mnist, "lenet.yaml", f"seed={seed}")[-1] >= 0.99


@pytest.mark.skipif("SLOW" not in os.environ, reason="trains for minutes; set SLOW=1")
@pytest.mark.parametrize("seed", range(5))
def test_best_reaches_98_3_percent_with_every_seed(mnist, seed):
    assert accuracies(mnist, "best.yaml", f"seed={seed}")[-1] >= 0.983
