"""Networks that a configuration lists layer by layer: every engine trains them, and what is wrong is named."""

import msgspec
import numpy as np
import pytest

from app.data import Batches, Dataset
from app.engine import Executor, Scope
from app.errors import ConfigError
from app.run.config import CONFIGS, Config, dump_config, load_config, load_kept_config
from app.run.layers import layer_names, width_of
from app.run.learners import make_learner
from app.run.network import find_activation, model_for_use
from app.run.summary import without_effect

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 9, 8)).astype(np.uint8)
LABELS = (np.arange(40) % 10).astype(np.uint8)
DATA = Dataset.of([IMAGES, LABELS, IMAGES[:20], LABELS[:20]], "made", verified=False)
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


def config_of(layers, *overrides, folder):
    file = folder / "a.yaml"
    lines = "".join(f"    {line}\n" for line in layers.strip().splitlines())
    file.write_text(f"model:\n  layers:\n{lines}train: {{batch_size: 8, learning_rate: 0.1}}\n", encoding="utf-8")
    return load_config(file, overrides)


def learner(config, operator="relu"):
    return make_learner(config, find_activation(operator), DATA.image_shape)


def trained(config):
    """The losses of two epochs, what is measured then, the scores, and the weights."""
    one = learner(config)
    batches = Batches(DATA.train_images, DATA.train_labels, None, 8)
    found = [one.train(batches)[0] for _ in range(2)]
    tests = Batches(DATA.test_images, DATA.test_labels, None, 10)
    return [*found, *one.measure(tests), one.scores(tests), *one.weights().values()]


@pytest.mark.parametrize(
    "engine",
    ["eager", pytest.param("compiled", marks=pytest.mark.soak)],  # compiles for half a minute
)
def test_engines_train_layers_of_all_kinds_alike(engine, tmp_path):
    without_chance = LAYERS.replace("share: 0.25", "share: 0")  # each engine draws in its own order
    config = config_of(without_chance, folder=tmp_path)
    expected = trained(msgspec.structs.replace(config, engine="reference"))
    for found, value in zip(trained(msgspec.structs.replace(config, engine=engine)), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=2e-4, atol=2e-5)


def test_weights_are_named_by_their_layers_and_first_ones_are_the_same_for_every_operator(tmp_path):
    config = config_of(LAYERS, "engine=eager", folder=tmp_path)
    found, others = learner(config).weights(), learner(config, "tanh").weights()
    shapes = {path: value.shape for path, value in found.items()}
    assert shapes["layers.0.weight"] == (3, 1, 3, 2)
    assert shapes["layers.1.weight"] == (4, 3, 2, 2)
    assert shapes["layers.2._variance"] == (4,)
    assert [shapes[f"layers.{i}.weight"] for i in (3, 4, 5)] == [(4 * 1 * 3, 7), (7, 5), (5, 10)]
    assert all((others[path] == value).all() for path, value in found.items())


def test_a_dropout_layer_works_in_training_alone(tmp_path):
    one = learner(config_of("- {type: dropout, share: 0.5}", "engine=eager", folder=tmp_path))
    tests = Batches(DATA.test_images, DATA.test_labels, None, 20)
    assert (one.scores(tests) == one.scores(tests)).all()
    first = one.measure(tests)[0]
    one.train(tests)
    assert one.measure(tests)[0] < first


def test_the_model_that_is_kept_answers_as_the_learner_does(tmp_path):
    config = config_of(LAYERS, "engine=reference", folder=tmp_path)
    one = learner(config)
    one.train(Batches(DATA.train_images, DATA.train_labels, None, 8))
    saved = model_for_use(config, find_activation("relu"), DATA.image_shape, one.weights())
    scope = Scope()
    scope.values = saved.values
    (found,) = Executor(engine="reference").run(
        saved.program, {saved.inputs[0]: DATA.test_images}, saved.outputs, scope=scope
    )
    expected = one.scores(Batches(DATA.test_images, DATA.test_labels, None, 20))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_what_was_written_is_read_back(tmp_path):
    config = config_of(LAYERS, folder=tmp_path)
    (tmp_path / "kept.yaml").write_text(dump_config(config), encoding="utf-8")
    assert load_kept_config(tmp_path / "kept.yaml") == config


def test_hidden_is_the_short_form_of_dense_layers(tmp_path):
    short = msgspec.structs.replace(Config().model, hidden=(30, 20), dropout=0.5)
    assert layer_names(short.all_layers) == ["30", "20"]
    assert [layer.kind for layer in short.all_layers] == ["dense", "dropout", "dense", "dropout"]
    listed = config_of(LAYERS, folder=tmp_path).model
    assert layer_names(listed.all_layers) == ["conv3", "max_pool2", "conv4", "avg_pool2x1", "7", "5"]
    assert width_of(listed.all_layers) == 3


def test_settings_of_hidden_layers_are_said_to_have_no_effect(tmp_path):
    config = config_of(LAYERS, "model.hidden=[9]", "model.dropout=0.1", folder=tmp_path)
    assert without_effect(config, 40) == [
        "model.hidden has no effect with model.layers.",
        "model.dropout has no effect with model.layers.",
    ]


def test_lenet_is_two_convolutions_and_three_dense_layers():
    config = load_config(CONFIGS / "lenet.yaml", ["engine=eager"])
    weights = make_learner(config, find_activation("relu"), (28, 28)).weights()
    shapes = [value.shape for path, value in weights.items() if path.endswith("weight")]
    assert shapes == [(6, 1, 5, 5), (16, 6, 5, 5), (400, 120), (120, 84), (84, 10)]


TYPES = "'dense', 'conv', 'max_pool', 'avg_pool', 'batch_norm', 'dropout'"
TWO = "a whole number of at least 1, or two in a list: [height, width]"


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ("{type: convv, channels: 6}", f"model.layers[1].type: found 'convv' (text), expected one of {TYPES}; did you"),
        ("{channels: 6}", "model.layers[1]: found {'channels': 6}, expected a layer, such as {type: dense, units: 84}"),
        ("5", "model.layers[1]: found 5, expected a layer, such as {type: dense, units: 84}; types of layers: dense,"),
        (
            "{type: conv, kernel: 5}",
            "model.layers[1]: a conv layer needs channels; found {'type': 'conv', ",
        ),
        ("{type: conv, channels: 6, kernal: 5}", "model.layers[1].kernal: unknown key; did you mean 'kernel'? Known "),
        ("{type: conv, channels: 6, kernel: 0}", f"model.layers[1].kernel: found 0, expected {TWO}"),
        ("{type: conv, channels: 6, kernel: [5]}", f"model.layers[1].kernel: found [5], expected {TWO}"),
        ("{type: max_pool, size: 2, stride: x}", f"model.layers[1].stride: found 'x' (text), expected {TWO} or null"),
        (
            "{type: conv, channels: 6, kernel: 5, padding: full}",
            "model.layers[1].padding: found 'full' (text), expected 'same', 'valid', a whole number of at least 0",
        ),
        (
            "{type: dropout, share: 1}",
            "model.layers[1].share: found 1, expected a number of at least 0 and less",
        ),
        ("{type: dropout, share: 0.999999999999}", "less than 1, in single precision"),
        (
            "{type: dense, units: 8, activation: my_ops:swish}",
            "model.layers[1].activation: found 'my_ops:swish' (text), expected true (model.activation and the",
        ),
    ],
)
def test_a_mistake_in_a_layer_is_named_with_its_place(layer, message, tmp_path):
    with pytest.raises(ConfigError) as caught:
        config_of(f"- {{type: dense, units: 5}}\n- {layer}", folder=tmp_path)
    assert message in str(caught.value)
    assert "a.yaml: line 4, column" in str(caught.value)


@pytest.mark.parametrize(
    ("layers", "told"),
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
def test_layers_that_do_not_fit_together_are_refused(layers, told, tmp_path):
    with pytest.raises(ConfigError) as caught:
        learner(config_of(layers, "engine=eager", folder=tmp_path))
    assert told in str(caught.value)


def test_images_need_rows_and_columns(tmp_path):
    config = config_of(LAYERS, "engine=eager", folder=tmp_path)
    with pytest.raises(ConfigError, match="layers for images need their rows and columns, found 72 pixels"):
        make_learner(config, find_activation("relu"), 72)
