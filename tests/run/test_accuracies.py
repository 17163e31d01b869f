"""The accuracies that are promised, on the full set: those of the Paddle tutorial, of best.yaml and of lenet.yaml."""

import os
import re
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from app.data import load
from app.errors import DataError
from app.run import config as config_module
from app.run.activation import find_activation
from app.run.config import load_config
from app.run.events import Epoch
from app.run.learners import make_learner
from app.run.options import CONFIGS
from app.run.run import train_epochs

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
    events = []
    learner = make_learner(config, activation, mnist.image_shape)
    with threadpool_limits(1):  # threads that wait for each other take minutes where tests run side by side
        train_epochs(config, mnist, [learner], events.append)
    return [event.test_accuracy for event in events if isinstance(event, Epoch)]


@pytest.mark.parametrize("epochs", [2, pytest.param(5, marks=pytest.mark.soak)])
def test_seed_reaches_the_accuracies_of_the_tutorial_and_of_the_readme(mnist, epochs):
    rows = dict(re.findall(r"^\| ([\w ]+?) +\| (0\.[\d |.]+) \|$", README.read_text(encoding="utf-8"), re.M))
    table = {name: [float(figure) for figure in row.split("|")] for name, row in rows.items()}
    assert table["Paddle tutorial"] == TUTORIAL
    ours = accuracies(mnist, "seed.yaml", f"train.epochs={epochs}")
    assert ours == pytest.approx(TUTORIAL[:epochs], abs=0.02)
    assert ours == pytest.approx(table["opsmith"][:epochs], abs=0.002)  # other BLAS libraries round otherwise


@pytest.mark.parametrize(
    ("file", "epochs", "shapes"),
    [
        ("best.yaml", 20, [(784, 512), (512, 10)]),
        ("lenet.yaml", 10, [(6, 1, 5, 5), (16, 6, 5, 5), (400, 120), (120, 84), (84, 10)]),
    ],
)
def test_the_promised_networks_use_the_custom_relu_and_few_epochs(file, epochs, shapes):
    config = load_config(CONFIGS / file, ["engine=eager"])
    assert (config.model.activation, config.baseline) == ("custom.relu", "relu")
    assert config.train.epochs <= epochs
    weights = make_learner(config, find_activation("relu"), (28, 28)).weights()
    assert [value.shape for path, value in weights.items() if path.endswith("weight")] == shapes


@pytest.mark.skipif("SLOW" not in os.environ, reason="trains for minutes; set SLOW=1")
@pytest.mark.parametrize(
    ("file", "accuracy", "seed"),
    [*(("lenet.yaml", 0.99, seed) for seed in range(3)), *(("best.yaml", 0.983, seed) for seed in range(5))],
)
def test_the_promised_accuracy_is_reached_with_every_seed(mnist, file, accuracy, seed):
    assert accuracies(mnist, file, f"seed={seed}")[-1] >= accuracy
