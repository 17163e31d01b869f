"""Networks that a configuration lists layer by layer: every engine trains them, and errors name the layer."""

import re

import numpy as np
import pytest

from app.data import Batches, Dataset
from app.engine import Executor, Scope
from app.errors import ConfigError
from app.run.activation import find_activation
from app.run.config import ModelConfig, dump_config, load_config, load_kept_config
from app.run.layers import layer_names, width_of
from app.run.learners import make_learner
from app.run.network import model_for_use, trained_network

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 9, 8)).astype(np.uint8)
LABELS = (np.arange(40) % 10).astype(np.uint8)
DATA = Dataset.of([IMAGES, LABELS, IMAGES[:20], LABELS[:20]], "made", verified=False)
TRAINING = Batches(DATA.train_images, DATA.train_labels, None, 8)
TESTS = Batches(DATA.test_images, DATA.test_labels, None, 10)
LAYERS = """
- {type: conv, channels: 3, kernel: [3, 2], padding: same}
- {type: max_pool, size: 2}
- {type: conv, channels: 4, kernel: 2, activation: false}
- {type: batch_norm, activation: true}
- {type: avg_pool, size: [2, 1]}
- {type: dense, units: 7, activation: tanh}
- {type: dropout, share: 0.25}
- {type: dense, units: 5}
"""


@pytest.fixture
def config_of(tmp_path):
    """Makes a configuration of layers."""

    def config_of(layers, *overrides):
        lines = "".join(f"    {line}\n" for line in layers.strip().splitlines())
        text = f"model:\n  layers:\n{lines}train: {{batch_size: 8, learning_rate: 0.1}}\n"
        (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
        return load_config(tmp_path / "a.yaml", overrides)

    return config_of


def learner(config, operator="relu"):
    return make_learner(config, find_activation(operator), DATA.image_shape)


def trained(config):
    """The losses of two epochs, what is measured then, and the weights."""
    one = learner(config)
    losses = [one.train(TRAINING)[0] for _ in range(2)]
    return [*losses, *one.measure(TESTS), *one.weights().values()]


@pytest.mark.parametrize("engine", ["eager", pytest.param("compiled", marks=pytest.mark.soak)])  # compiles for long
def test_engines_train_layers_of_all_kinds_alike(engine, config_of):
    without_chance = LAYERS.replace("share: 0.25", "share: 0")  # each engine draws in its own order
    expected, actual = (trained(config_of(without_chance, f"engine={e}")) for e in ("reference", engine))
    for array, value in zip(actual, expected, strict=True):
        np.testing.assert_allclose(array, value, rtol=2e-4, atol=2e-5)


def test_weights_are_named_by_their_layers_and_first_ones_are_the_same_for_every_operator(config_of):
    config = config_of(LAYERS, "engine=eager")
    weights, others = learner(config).weights(), learner(config, "tanh").weights()
    shapes = [(3, 1, 3, 2), (4, 3, 2, 2), (4 * 1 * 3, 7), (7, 5), (5, 10)]
    assert [weights[f"layers.{i}.weight"].shape for i in (0, 1, 3, 4, 5)] == shapes
    assert weights["layers.2._variance"].shape == (4,)
    assert all((others[path] == value).all() for path, value in weights.items())


def test_the_model_for_use_answers_as_the_network_does(config_of):
    config = config_of(LAYERS, "engine=reference")
    one = learner(config)
    one.train(TRAINING)
    relu = find_activation("relu")
    saved = model_for_use(config, relu, DATA.image_shape, one.weights())
    scope = Scope()
    scope.values = saved.values
    feed = {saved.inputs[0]: DATA.test_images}
    (scores,) = Executor(engine="reference").run(saved.program, feed, saved.outputs, scope=scope)
    np.testing.assert_allclose(
        scores,
        trained_network(config, relu, DATA.image_shape, one.weights()).scores(DATA.test_images),
        rtol=1e-5,
        atol=1e-6,
    )


def test_layers_are_dumped_and_read_back_and_hidden_is_their_short_form(config_of, tmp_path):
    config = config_of(LAYERS)
    (tmp_path / "kept.yaml").write_text(dump_config(config), encoding="utf-8")
    assert load_kept_config(tmp_path / "kept.yaml") == config
    assert layer_names(config.model.all_layers) == ["conv3", "max_pool2", "conv4", "avg_pool2x1", "7", "5"]
    assert width_of(config.model.all_layers) == 3
    short = ModelConfig(hidden=(30, 20), dropout=0.5)
    assert layer_names(short.all_layers) == ["30", "20"]
    assert [layer.kind for layer in short.all_layers] == ["dense", "dropout", "dense", "dropout"]


TYPES = "'dense', 'conv', 'max_pool', 'avg_pool', 'batch_norm', 'dropout'"
TWO = "a whole number of at least 1, or two in a list: [height, width]"


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ("{type: convv, channels: 6}", f".type: found 'convv' (text), expected one of {TYPES}; did you"),
        ("{channels: 6}", ": found {'channels': 6}, expected a layer, such as {type: dense, units: 84}"),
        ("5", ": found 5, expected a layer, such as {type: dense, units: 84}; types of layers: dense,"),
        ("{type: conv, kernel: 5}", ": a conv layer needs channels; found {'type': 'conv', "),
        ("{type: conv, channels: 6, kernal: 5}", ".kernal: unknown key; did you mean 'kernel'? Known "),
        ("{type: conv, channels: 6, kernel: 0}", f".kernel: found 0, expected {TWO}"),
        ("{type: conv, channels: 6, kernel: [5]}", f".kernel: found [5], expected {TWO}"),
        ("{type: max_pool, size: 2, stride: x}", f".stride: found 'x' (text), expected {TWO} or null"),
        ("{type: conv, channels: 6, kernel: 5, padding: full}", ".padding: found 'full' (text), expected 'same', 'va"),
        ("{type: dropout, share: 1}", ".share: found 1, expected a number of at least 0 and less than 1, in single "),
        (
            "{type: dense, units: 8, activation: my_ops:swish}",
            ".activation: found 'my_ops:swish' (text), expected true (model.activation and the",
        ),
    ],
)
def test_an_error_in_a_layer_has_its_place(layer, message, config_of):
    with pytest.raises(ConfigError, match=rf"a\.yaml: line 4, column .*model\.layers\[1\]{re.escape(message)}"):
        config_of(f"- {{type: dense, units: 5}}\n- {layer}")


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ("- {type: conv, channels: 6, kernel: 12}", "model.layers[0], conv: a window over 12 elements does not fit"),
        (
            "- {type: dense, units: 6}\n- {type: max_pool, size: 2}",
            "model.layers[1], max_pool: a layer for images cannot follow a dense layer",
        ),
        (
            "- {type: conv, channels: 6, kernel: 3, groups: 4}",
            "model.layers[0], conv: Conv2D: groups must divide both in_channels and out_channels, found 4 groups of 1",
        ),
        ("- {type: dense, units: 6, activation: nonsense}", "nonsense"),
    ],
)
def test_layers_that_do_not_fit_together_are_errors(layers, message, config_of):
    with pytest.raises(ConfigError, match=re.escape(message)):
        learner(config_of(layers, "engine=eager"))


def test_layers_for_images_need_rows_and_columns(config_of):
    with pytest.raises(ConfigError, match="layers for images need their rows and columns, found 72 pixels"):
        make_learner(config_of(LAYERS, "engine=eager"), find_activation("relu"), 72)
