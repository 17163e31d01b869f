"""The configuration of a training run: options, defaults, limits, YAML files and overrides.

A YAML file overrides the defaults, and each `key=value` of the command line overrides the file. The configuration is
validated after every layer, so that an error can name the layer that caused it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from app.data import SOURCES
from app.errors import ConfigError
from app.printing import without_passwords
from app.run import yaml_text
from app.run.config_errors import hint, problem, sections, unexpected
from app.run.events import METRICS
from app.run.layers import OPERATOR, Count, Dense, Dropout, LayerConfig, Share
from app.run.options import CONFIGS, configuration_file
from app.run.yaml_text import Document

# Errors quote these descriptions as what is expected.
Seed = Annotated[int, Meta(ge=0, description="a whole number of at least 0")]
Held = Annotated[int, Meta(ge=0, description="a whole number of images, of at least 0")]
_LEAST, _MOST = 1e-45, 3.4e38  # of float32, in which they are used
Rate = Annotated[float, Meta(ge=_LEAST, le=_MOST, description="a number greater than 0, in single precision")]
Decay = Annotated[float, Meta(ge=0, le=_MOST, description="a number of at least 0, in single precision")]
Number = Annotated[float, Meta(ge=-_MOST, le=_MOST, description="a number, in single precision")]
Widths = Annotated[tuple[Count, ...], Meta(description="a list of whole numbers of at least 1, such as [100]")]
Layers = Annotated[
    tuple[LayerConfig, ...],
    Meta(description="a list of layers, such as [{type: conv, channels: 6, kernel: 5}, {type: dense, units: 84}]"),
]
Interval = Annotated[
    tuple[Number, ...],
    Meta(min_length=2, max_length=2, description="two numbers in a list, the lower first, such as [-1, 1]"),
]
Switch = Annotated[bool, Meta(description="true or false")]
Check = Annotated[bool | Literal["warn"], Meta(description="true, warn or false")]
Folder = Annotated[str, Meta(pattern=r"\S", description="the name of a folder")]
Source = Annotated[str, Meta(pattern=r"\S", description="'auto', 'sample' or the name of a folder")]
Origin = Annotated[str, Meta(pattern=r"\S", description="an address, an npm:NAME@VERSION or 'sample'")]
Origins = Annotated[tuple[Origin, ...], Meta(min_length=1, description="a list of at least one source")]
Activation = Annotated[
    str,
    Meta(
        pattern=OPERATOR,
        description="an operator: a built-in one ('relu'), a shipped custom one ('custom.relu') "
        "or your own ('path/to/my_ops.py:swish'), each perhaps with settings ('custom.leaky_relu(slope=0.2)')",
    ),
]

Operators = Annotated[
    tuple[Activation, ...], Meta(min_length=1, description="a list of at least one operator, such as [relu, tanh]")
]


class DataConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The training images and the scaling of their pixels."""

    source: Source = "auto"
    sources: Origins = SOURCES
    folder: Folder | None = None
    validation: Held | None = None
    pixel_range: Interval = (-1.0, 1.0)


class ModelConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The layers between the pixels and the ten classes: widths of dense layers, or a list of layers of any kind."""

    hidden: Widths = (100,)
    layers: Layers | None = None
    activation: Activation = "custom.relu"
    initializer: Literal["xavier", "kaiming"] = "xavier"
    dropout: Share = 0.0

    @property
    def all_layers(self) -> tuple[LayerConfig, ...]:
        """Return the listed layers, or else a dense layer for each width, followed by dropout if enabled."""
        if self.layers is not None:
            return self.layers
        dropout = (Dropout(share=self.dropout),) if self.dropout else ()
        return tuple(layer for width in self.hidden for layer in (Dense(units=width), *dropout))


class TrainConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The optimiser, its schedule and the reporting interval."""

    epochs: Count = 5
    batch_size: Count = 256
    optimizer: Literal["sgd", "momentum", "adam", "rmsprop"] = "sgd"
    learning_rate: Rate = 0.01
    momentum: Share = 0.9
    weight_decay: Decay = 0.0
    clip_norm: Rate | None = None
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    log_every: Count = 100
    eval_batch_size: Count = 1000


class DistConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the ranks started by mpiexec share the work."""

    shape: Literal["none", "allreduce", "pserver"] = "none"


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The configuration of one training run."""

    seed: Seed = 0
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    train: TrainConfig = TrainConfig()
    engine: Literal["compiled", "reference", "eager"] = "compiled"
    sparse: Literal["auto", "off"] = "auto"
    baseline: Activation | None = "relu"
    operators: Operators | None = None
    """The operators that are trained, in place of the activation and the baseline."""
    check: Check = True
    """Whether a wrong gradient of a custom operator ends the run before training. "warn" only prints a warning."""
    costs: Switch = True
    report: Switch = True
    dist: DistConfig = DistConfig()
    output: Folder | None = None


class CompareConfig(Config, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The configuration of a comparison: that of its runs, and the number of seeds."""

    seeds: Count = 5


C = TypeVar("C", bound=Config)


def load_config(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> Config:
    """Load the configuration in a YAML file and apply overrides such as `train.epochs=3`."""
    return _load(Config(), path, overrides)


def load_compare_config(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> CompareConfig:
    """Load the configuration of a comparison. Operators and seeds are optional in the YAML file."""
    return _load(CompareConfig(), path, overrides)


def _load(default: C, path: str | os.PathLike[str], overrides: Sequence[str]) -> C:
    where = configuration_file(path)
    config, folder = _changed(default, _read(where)), Path(where).parent
    if not (folder / METRICS).exists():  # in the folder of a run, see `load_kept_config`
        config = msgspec.convert(_from_working_folder(msgspec.to_builtins(config), folder), type(config))
    return _overridden(config, overrides)


def load_kept_config(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Load the configuration stored in a run's folder. Its paths are absolute or relative to the original working
    folder.
    """
    document = _read(str(path), links=False)
    if document.data is None or (isinstance(document.data, dict) and "output" not in document.data):
        raise ConfigError(
            f"{path} was cut off or edited: it has no `output`, which a run writes last of all settings. If nothing "
            "else is missing, add output: null"
        )
    default = CompareConfig() if isinstance(document.data, dict) and "seeds" in document.data else Config()
    return _overridden(_changed(default, document), overrides)


def with_settings(config: C, settings: Mapping[str, Any], where: str) -> C:
    """Apply keyword arguments to a configuration. A key such as `epochs` may omit its section."""
    home = sections(Config)
    data: dict[str, Any] = {}
    for key, value in settings.items():
        if key not in home and not hasattr(config, key):
            raise ConfigError(f"{where} has no setting {key!r}{hint(key, [*home, *config.__struct_fields__])}")
        value = _writable(value, f"{where}: {key}")
        change = {home[key]: {key: value}} if key in home and not hasattr(config, key) else {key: value}
        data = _laid_over(data, change)
    return _changed(config, Document(where, data))


def _writable(value: Any, where: str) -> Any:
    """Return a value with NumPy's numbers as Python's. Sets, and numbers and text that YAML files cannot have, and the
    files of a run cannot hold, are refused."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, str) and yaml_text.UNUSABLE.search(value):
        raise ConfigError(f"{where}: {value!r}: text with {yaml_text.NAMELESS}")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ConfigError(f"{where}: {value} is not a number of at most 64 bits")
    if isinstance(value, (set, frozenset)):
        raise ConfigError(f"{where}: {value!r} is a set, which has no order; write a list")
    if isinstance(value, dict):
        return {key: _writable(item, where) for key, item in value.items()}
    return [_writable(item, where) for item in value] if isinstance(value, (list, tuple)) else value


def _overridden(config: C, overrides: Sequence[str]) -> C:
    for override in overrides:
        config = _changed(config, _read_override(override))
    return config


def dump_config(config: Config) -> str:
    """Return YAML that `load_config` reads back as an equal configuration."""
    return yaml_text.write(msgspec.to_builtins(config))


def with_absolute_paths(config: Config) -> Config:
    """Return the configuration with absolute paths and without passwords of sources, for storing in a run's folder.

    Operators in files keep their names, because the run's metrics and tables use them.
    """
    data = config.data
    source = data.source if data.source in _NO_FOLDERS else _absolute(data.source)
    folder = None if data.folder is None else _absolute(data.folder)
    output = None if config.output is None else _absolute(config.output)
    sources = tuple(map(without_passwords, data.sources))
    data = msgspec.structs.replace(data, source=source, folder=folder, sources=sources)
    return msgspec.structs.replace(config, data=data, output=output)


_NO_FOLDERS = ("auto", "sample")


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


_OPERATORS = ("activation", "baseline", "operators")


def _from_working_folder(value: Any, folder: Path, key: str = "") -> Any:
    """Return the data of a YAML file with paths that start from the working folder, not from the file's."""
    if isinstance(value, dict):
        return {name: _from_working_folder(item, folder, name) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_from_working_folder(item, folder, key) for item in value]
    if key in ("source", "folder", "output"):
        return _from(value, folder)
    if key in _OPERATORS and isinstance(value, str) and ".py:" in value:
        file, _, function = value.rpartition(".py:")
        return f"{_from(f'{file}.py', folder)}:{function}"
    return value


def _from(path: str | None, folder: Path) -> str | None:
    """Convert a path relative to `folder` to one relative to the working folder."""
    if path is None or path in _NO_FOLDERS or path.startswith("~"):
        return path
    if os.path.isabs(path) or folder in (Path(), Path.cwd()):
        return path
    absolute = os.path.abspath(folder / path)
    here = os.path.relpath(absolute)
    return absolute if here.startswith(os.pardir) else here


def operators_of(config: Config) -> list[str]:
    """Return the operators of a run, in order: those of `operators`, or the activation, and the baseline if it
    differs."""
    named = (config.model.activation, config.baseline) if config.operators is None else config.operators
    return list(dict.fromkeys(operator for operator in named if operator))


def reference_of(config: Config) -> str:
    """Return the operator that the others are compared with: the first of `operators`, or the baseline."""
    return operators_of(config)[0 if config.operators else -1]


def config_name(path: str | os.PathLike[str]) -> str:
    """Return the name of a run of this file: its stem without path separators."""
    return re.sub(r"[^\w.-]+", "-", Path(path).stem).strip(".-") or "run"


def _read(path: str, links: bool = True) -> Document:
    try:
        return yaml_text.read(path, links)
    except FileNotFoundError:
        shipped = sorted(file.stem for file in CONFIGS.glob("*.yaml"))
        raise ConfigError(
            f"{path}: no such file{hint(path, shipped) or '.'} Shipped configurations, which need no path: "
            f"{', '.join(shipped)}"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error


def _read_override(override: str) -> Document:
    """`{"train": {"epochs": 3}}` for `train.epochs=3`."""
    where = f"the command line, {_shown(override)}"
    key, equals, text = override.partition("=")
    keys = key.strip().split(".")
    if not equals or not all(keys) or not key.isprintable():
        raise ConfigError(f"{where}: expected key=value, such as train.epochs=3")
    if len(keys) > yaml_text.MAX_DEPTH:
        raise ConfigError(f"{where}: nested more than {yaml_text.MAX_DEPTH} deep")
    document = yaml_text.parse(text, where)
    if "#" in document.rest:
        raise ConfigError(f"{where}: what follows # is a comment in YAML, and would be lost; quote it: {key}='\"...\"'")
    data = document.data
    for name in reversed(keys):
        data = {name: data}
    return Document(where, data)


def _with_one_network(config: C, change: Document) -> C:
    """Refuse a change that sets `hidden` or `dropout` beside `layers`, which is the whole network and replaces them."""
    model, default = config.model, ModelConfig()
    changed = change.data.get("model") if isinstance(change.data, dict) else None
    if model.layers is None or not isinstance(changed, dict):
        return config
    for name in ("hidden", "dropout"):
        if name in changed and getattr(model, name) != getattr(default, name):
            mistake = f"model.{name} has no effect beside model.layers, the whole network: remove one"
            raise change.error(f"$.model.{name}", mistake, of_key=True)
    model = msgspec.structs.replace(model, hidden=default.hidden, dropout=default.dropout)
    return msgspec.structs.replace(config, model=model)


def _changed(config: C, change: Document) -> C:
    """Apply one layer of plain data to `config` and validate the result."""
    kind = type(config)
    data = _laid_over(msgspec.to_builtins(config), change.data)
    if config.operators is not None and _names_operators(change.data):
        data["operators"] = None
    try:
        changed = msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise change.error(*problem(data, kind, error)) from None
    low, high = changed.data.pixel_range
    if not low < high:
        mistake = f"data.pixel_range: {unexpected(data['data']['pixel_range'], Interval)}"
        raise change.error("$.data.pixel_range", mistake)
    names = changed.operators or ()
    for place, name in enumerate(names):
        if name in names[:place]:
            raise change.error(f"$.operators[{place}]", f"operators: {name} is named twice; each is trained once")
    return _with_one_network(changed, change)


def _names_operators(change: Any) -> bool:
    """Whether a change sets the activation or the baseline, and not `operators`, which would be in their place."""
    if not isinstance(change, Mapping) or "operators" in change:
        return False
    model = change.get("model")
    return "baseline" in change or (isinstance(model, Mapping) and "activation" in model)


def _laid_over(base: Any, change: Any) -> Any:
    if isinstance(base, dict) and change is None:
        return base  # a section with all lines commented out
    if isinstance(base, dict) and isinstance(change, dict):
        return base | {key: _laid_over(base.get(key), value) for key, value in change.items()}
    return change


def _shown(text: str) -> str:
    return text if text.isprintable() and len(text) <= 80 else repr(text[:80])
