"""Configuration: what files and overrides decode to, and what a user reads when they cannot."""

import ast
import contextlib
import io
import operator
import os
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from app.errors import ConfigError
from app.run import yaml_text
from app.run.config import (
    Config,
    DataConfig,
    config_name,
    dump_config,
    load_compare_config,
    load_config,
    load_kept_config,
    with_absolute_paths,
)
from app.run.config_errors import wrong_value
from app.run.options import CONFIGS


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("config") / "a.yaml"


def load(file, text, *overrides):
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_config(file, overrides)


def error(file, text, *overrides):
    """The message, less the name of the file, and the line and column, that it starts with."""
    with pytest.raises(ConfigError) as caught:
        load(file, text, *overrides)
    assert caught.value.exit_status == 2
    return re.sub(r"^line \d+, column \d+: (?!while|the key|mapping)", "", str(caught.value).removeprefix(f"{file}: "))


# --- The shipped files ---


@pytest.mark.parametrize("shipped", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_file_loads(shipped):
    assert load_compare_config(shipped).train.epochs > 0


def test_default_and_seed_are_the_same_experiment_and_the_defaults():
    assert load_config(CONFIGS / "default.yaml") == load_config(CONFIGS / "seed.yaml") == Config()


def test_default_shows_every_key():
    shown = yaml_text.parse((CONFIGS / "default.yaml").read_text(encoding="utf-8"), "").data
    assert keys(shown) == keys(msgspec.to_builtins(Config()))


def keys(data, prefix=""):
    return [
        name
        for key, value in data.items()
        for name in (keys(value, f"{prefix}{key}.") if isinstance(value, dict) else [f"{prefix}{key}"])
    ]


def test_quick_needs_no_network():
    assert load_config(CONFIGS / "quick.yaml").data.source == "sample"


# --- What decodes ---


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "null", "{}", "train:\n  # epochs: 3\nmodel:\n"])
def test_what_is_left_out_has_its_default(file, text):
    assert load(file, text) == Config()


def test_a_key_changes_nothing_but_itself(file):
    changed = load(file, "train: {epochs: 7}")
    assert changed.train == msgspec.structs.replace(Config().train, epochs=7)
    assert changed.model == Config().model


@pytest.mark.parametrize("form", ["relu", "custom.relu", "my_ops.py:swish", "/a b/ö.py:swish", "C:\\x.py:f"])
def test_an_operator_may_be_named_in_three_ways(file, form):
    assert load(file, "", f"model.activation='{form}'", f"baseline='{form}'").model.activation == form


@pytest.mark.parametrize("form", ["", "' '", "a.b", "my_ops.py", "my_ops.py:", "custom.", "x.txt:f", "3", "[relu]"])
def test_anything_else_names_no_operator(file, form):
    assert "expected an operator: a built-in one ('relu')" in error(file, "", f"model.activation={form}")


def test_overrides_apply_in_order_over_the_file(file):
    config = load(
        file,
        "train: {epochs: 9, batch_size: 7}",
        "train.epochs=1",
        "train.epochs=3",
        "model.hidden=[256]",
        "train.learning_rate=1e-2",
        "baseline=null",
        "output=runs/a=b",
        "data={source: sample}",
    )
    assert (config.train.epochs, config.train.batch_size, config.train.learning_rate) == (3, 7, 0.01)
    assert (config.model.hidden, config.baseline, config.output) == ((256,), None, "runs/a=b")
    assert config.data == DataConfig(source="sample")


# --- What a user reads ---


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("train: {batch_size: big}", "train.batch_size: found 'big' (text), expected a whole number of at least 1"),
        ("train: {batch_size: 0}", "train.batch_size: found 0, expected a whole number of at least 1"),
        ("train: {batch_size: true}", "train.batch_size: found true, expected a whole number of at least 1"),
        ("train: {epochs: }", "train.epochs: found nothing (null), expected a whole number of at least 1"),
        ("seed: -1", "seed: found -1, expected a whole number of at least 0"),
        (
            "train: {learning_rate: 0}",
            "train.learning_rate: found 0, expected a number greater than 0, in single precision",
        ),
        (
            "train: {momentum: 1}",
            "train.momentum: found 1, expected a number of at least 0 and less than 1, in single precision",
        ),
        ("model: {hidden: [9, 0]}", "model.hidden[1]: found 0, expected a whole number of at least 1"),
        (
            "data: {pixel_range: [1, -1]}",
            "data.pixel_range: found [1, -1], expected two numbers in a list, the lower first, such as [-1, 1]",
        ),
        (
            "data: {pixel_range: [1, 1]}",
            "data.pixel_range: found [1, 1], expected two numbers in a list, the lower first, such as [-1, 1]",
        ),
        ("data: {pixel_range: [a, 1]}", "data.pixel_range[0]: found 'a' (text), expected a number"),
        ("data: {sources: []}", "data.sources: found [], expected a list of at least one source"),
        ("output: ''", "output: found '' (text), expected the name of a folder or null"),
        (
            "engine: refrence",
            "engine: found 'refrence' (text), expected one of 'compiled', 'eager', 'reference'; "
            "did you mean 'reference'?",
        ),
        (
            "train: {optimizer: SGD}",
            "train.optimizer: found 'SGD' (text), expected one of 'adam', 'momentum', 'rmsprop', 'sgd'; did you mean "
            "'sgd'?",
        ),
        ("train: 3", "train: found 3, expected a section of `key: value` lines"),
        ("[1]", "$: found [1], expected a section of `key: value` lines"),
        (
            "model: {hiden: [1]}",
            "model.hiden: unknown key; did you mean 'hidden'? Known keys here: hidden, layers, activation, "
            "initializer, dropout",
        ),
        (
            "model: {layers: null, hiden: [1]}",
            "model.hiden: unknown key; did you mean 'hidden'? Known keys here: hidden, layers, activation, "
            "initializer, dropout",
        ),
        (
            "epochs: 3",
            "epochs: unknown key; did you mean 'train.epochs'? "
            "Known keys here: seed, data, model, train, engine, sparse, baseline, check, costs, report, dist, output",
        ),
        (
            "<<: {seed: 1}",
            "<<: unknown key. Known keys here: seed, data, model, train, engine, sparse, baseline, check, costs, "
            "report, dist, output",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place_and_what_is_allowed(file, text, message):
    assert error(file, text) == message


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.epochs=x", "train.epochs: found 'x' (text), expected a whole number of at least 1"),
        ("train.epochs.x=3", "train.epochs: found {'x': 3}, expected a whole number of at least 1"),
        ("train=3", "train: found 3, expected a section of `key: value` lines"),
        (
            "model.hiden=[1]",
            "model.hiden: unknown key; did you mean 'hidden'? Known keys here: hidden, layers, activation, "
            "initializer, dropout",
        ),
        ("train.epochs", "expected key=value, such as train.epochs=3"),
        ("=3", "expected key=value, such as train.epochs=3"),
        ("train..epochs=3", "expected key=value, such as train.epochs=3"),
        (
            "model.hidden=[3",
            "line 1, column 3: while parsing a flow sequence, expected ',' or ']', but got '<stream end>'",
        ),
    ],
)
def test_a_mistake_on_the_command_line_is_named_as_such(file, override, message):
    assert error(file, "seed: 1", override) == f"the command line, {override}: {message}"


def test_a_byte_on_the_command_line_that_is_no_text_is_shown_as_such(file):
    told = error(file, "seed: 1", "\udc80train.epochs=3")
    assert told == "the command line, '\\udc80train.epochs=3': expected key=value, such as train.epochs=3"


def test_an_override_of_a_thousand_levels_is_refused(file):
    assert "nested more than" in error(file, "", ".".join(["train"] * 5000) + "=3")


def test_a_missing_file_is_an_error_that_lists_the_shipped_ones():
    with pytest.raises(ConfigError, match=r"^nope\.yaml: no such file\. There are: .*best\.yaml, .*seed\.yaml$"):
        load_config("nope.yaml")


def test_a_folder_a_pipe_or_a_device_is_not_a_configuration(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, kind in ((tmp_path, "a folder"), (tmp_path / "pipe", "a pipe"), ("/dev/zero", "a device")):
        with pytest.raises(ConfigError, match=f"is {kind}, expected a file"):
            load_config(path)


def test_every_value_says_what_it_expects():
    data = msgspec.to_builtins(Config())
    for name in keys(data):
        assert ", expected " in wrong_value(data, Config, f"$.{name}")


# --- Names, and there and back ---


@pytest.mark.parametrize(
    ("path", "name"),
    [("configs/best.yaml", "best"), ("a b;c.yml", "a-b-c"), ("ü.yaml", "ü"), ("...yaml", "run"), ("/", "run")],
)
def test_a_run_is_named_after_its_file_and_cannot_climb(path, name):
    assert config_name(path) == name


WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip)
NUMBERS = st.floats(-1e3, 1e3, allow_nan=False)


@st.composite
def configs(draw):
    low = draw(NUMBERS)
    data = DataConfig(
        source=draw(WORDS),
        sources=tuple(draw(st.lists(WORDS, min_size=1, max_size=3))),
        folder=draw(WORDS | st.none()),
        pixel_range=(low, low + draw(st.floats(1, 9))),
    )
    train = msgspec.structs.replace(Config().train, learning_rate=draw(st.floats(1e-44, 3e38)))
    return Config(
        seed=draw(st.integers(0, 2**63 - 1)), data=data, train=train, output=draw(WORDS | st.none()), baseline=None
    )


@settings(max_examples=30, deadline=None)  # on a busy machine
@given(configs())
def test_what_is_dumped_reads_back_equal(file, config):
    file.write_text(dump_config(config), encoding="utf-8")
    assert load_kept_config(file) == config


def test_every_mistake_names_its_line_and_column(file):
    for text, place in (
        ("seed: 1\ntrain:\n  epocs: 3", "line 3, column 3: train.epocs: unknown key; did you mean 'epochs'?"),
        ("train:\n  epochs: 0", "line 2, column 11: train.epochs: found 0, expected a whole number of at least 1"),
        ("model: {hidden: [5, x]}", "line 1, column 21: model.hidden[1]: found 'x' (text)"),
        ("data:\n  pixel_range: [1, 0]", "line 2, column 16: data.pixel_range: found [1, 0]"),
    ):
        with pytest.raises(ConfigError) as caught:
            load(file, text)
        assert str(caught.value).startswith(f"{file}: {place}")


def test_none_is_taken_for_null_where_it_can_be_nothing_else(file):
    assert load(file, "baseline: none\ntrain: {checkpoint_every: none}") == load(file, "baseline: null")
    assert load(file, "", "baseline=none").baseline is None
    assert load(file, "", "output=none").output == "none"


def test_paths_in_a_yaml_start_from_its_folder(tmp_path, monkeypatch):
    (tmp_path / "project" / "configs").mkdir(parents=True)
    (tmp_path / "project" / "my_ops.py").touch()
    monkeypatch.chdir(tmp_path / "project")
    paths = "data: {source: ../images, folder: /kept}\noutput: ../../out\nmodel: {activation: ../my_ops.py:swish}"
    Path("configs/a.yaml").write_text(paths)
    config = load_config("configs/a.yaml")
    assert (config.data.source, config.data.folder, config.output) == ("images", "/kept", str(tmp_path / "out"))
    assert config.model.activation == "my_ops.py:swish"  # as it would be typed here, which is what tables show
    assert load_config("configs/a.yaml", ["data.source=there"]).data.source == "there"
    kept = with_absolute_paths(config)
    assert (kept.data.source, kept.output) == (str(tmp_path / "project" / "images"), config.output)
    assert with_absolute_paths(Config()) == Config()


def test_a_path_that_started_from_the_working_folder_is_told_how_to_be_written(tmp_path, monkeypatch):
    (tmp_path / "configs").mkdir()
    (tmp_path / "images").mkdir()
    monkeypatch.chdir(tmp_path)
    Path("configs/a.yaml").write_text("data: {source: images}")
    with pytest.raises(ConfigError, match=r"is relative to that folder.*write \.\./images"):
        load_config("configs/a.yaml")


# --- Nothing but a Config or a ConfigError, ever ---


def leaves():
    return st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=9)


def names():
    return st.sampled_from([part for name in keys(msgspec.to_builtins(Config())) for part in name.split(".")])


def yaml_of(data):
    """Any data as the library writes it, with its own tags for what YAML does not know."""
    text = io.StringIO()
    YAML(typ="safe", pure=True).dump(data, text)
    return text.getvalue()


@settings(max_examples=40, deadline=None)  # on a busy machine
@given(
    st.recursive(
        leaves() | st.dates(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names() | st.text(max_size=5), inner, max_size=5),
    )
)
def test_any_data_is_a_config_or_an_error(file, data):
    only_config_errors(file, yaml_of(data))


@settings(deadline=None)  # on a busy machine
@given(st.text(max_size=300) | st.text("{}[]:,-?&*!|>'\"%@`#\\ \n\tabU019.~e+", max_size=300) | st.binary(max_size=300))
def test_any_text_is_a_config_or_an_error(file, text):
    only_config_errors(file, text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))


@settings(deadline=None)  # on a busy machine
@given(names() | st.text(max_size=20), st.text(max_size=50))
def test_any_override_is_a_config_or_an_error(file, key, value):
    only_config_errors(file, "", f"{key}={value}", key + value)


def only_config_errors(file, text, *overrides):
    with contextlib.suppress(ConfigError):
        assert isinstance(load(file, text, *overrides), Config)


def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.yaml").write_text("train:\n  epochs: 7\n")
    assert load_config("~/mine.yaml").train.epochs == 7


# --- Numbers in the type that they are used in ---


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("train.learning_rate=1e39", "found 1e+39, expected a number greater than 0, in single precision"),
        ("train.learning_rate=1e-46", "expected a number greater than 0, in single precision"),
        ("train.weight_decay=1e39", "expected a number of at least 0, in single precision"),
        ("train.momentum=0.99999999", "less than 1, in single precision"),
        ("data.pixel_range=[0, 1e-43]", "some of its 256 shades are equal"),
        ("data.pixel_range=[1, 1.0000001]", "some of its 256 shades are equal"),
        ("data.pixel_range=[-1e308, 1e308]", "it is too wide"),
        ("dist.timeout=1e300", "found 1e+300, expected a number of seconds, greater than 0 and at most 1e9"),
        ("dist.timeout=0", "expected a number of seconds"),
    ],
)
def test_a_number_that_its_type_cannot_hold_is_refused(override, told):
    with pytest.raises(ConfigError, match=re.escape(told)):
        load_config(CONFIGS / "default.yaml", [override])


@pytest.mark.parametrize(
    "override",
    [
        "train.learning_rate=3e38",
        "train.learning_rate=1e-45",
        "train.momentum=0",
        "train.momentum=0.9999999",
        "train.weight_decay=0",
        "data.pixel_range=[-1e38, 1e38]",
        "data.pixel_range=[0, 1e-30]",
        "data.pixel_range=[1, 1.001]",
        f"seed={2**63 - 1}",
        f"train.batch_size={2**63 - 1}",
    ],
)
def test_a_number_that_its_type_can_hold_is_taken(override):
    key, _, number = override.partition("=")
    taken = operator.attrgetter(key)(load_config(CONFIGS / "default.yaml", [override]))
    assert taken == pytest.approx(np.float64(ast.literal_eval(number)), rel=1e-6)
