"""Everything that a training run can be told, with its defaults, limits and the two ways to say it.

A YAML file is laid over the defaults, then each `key=value` of the command line over that; after every layer
the whole is checked, so that an error can name the layer that brought it in.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from app.data import SOURCES
from app.errors import ConfigError
from app.training import yaml_text
from app.training.former import former_settings, updated, without_former

CONFIGS = Path(__file__).resolve().parents[2] / "configs"

# What each description says is what an error tells the user to expect.
Seed = Annotated[int, Meta(ge=0, description="a whole number of at least 0")]
Count = Annotated[int, Meta(ge=1, description="a whole number of at least 1")]
Bytes = Annotated[int, Meta(ge=0, description="a whole number of bytes, of at least 0")]
Rate = Annotated[float, Meta(gt=0, description="a number greater than 0")]
Share = Annotated[float, Meta(ge=0, lt=1, description="a number of at least 0 and less than 1")]
Decay = Annotated[float, Meta(ge=0, description="a number of at least 0")]
Number = Annotated[float, Meta(description="a number")]
Widths = Annotated[tuple[Count, ...], Meta(description="a list of whole numbers of at least 1, such as [100]")]
Interval = Annotated[tuple[Number, Number], Meta(description="two numbers in a list, the lower first, such as [-1, 1]")]
Seconds = Annotated[float, Meta(gt=0, le=1e9, description="a number of seconds, greater than 0 and at most 1e9")]
Switch = Annotated[bool, Meta(description="true or false")]
Folder = Annotated[str, Meta(pattern=r"\S", description="the name of a folder")]
Source = Annotated[str, Meta(pattern=r"\S", description="'auto', 'sample' or the name of a folder")]
Origin = Annotated[str, Meta(pattern=r"\S", description="an address, an npm:NAME@VERSION or 'sample'")]
Origins = Annotated[tuple[Origin, ...], Meta(min_length=1, description="a list of at least one source")]
Activation = Annotated[
    str,
    Meta(
        pattern=r"^(?:(?:custom\.)?[^\W\d]\w*|.+\.py:[^\W\d]\w*)\Z",
        description="an operator: a built-in one ('relu'), a shipped custom one ('custom.relu') "
        "or your own ('path/to/my_ops.py:swish')",
    ),
]


class DataConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which images are trained on and how their pixels are scaled."""

    source: Source = "auto"
    sources: Origins = SOURCES
    folder: Folder | None = None
    pixel_range: Interval = (-1.0, 1.0)


class ModelConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The layers between the pixels and the ten classes."""

    hidden: Widths = (100,)
    activation: Activation = "custom.relu"
    initializer: Literal["xavier", "kaiming"] = "xavier"


class TrainConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the weights are improved, and how often that is reported."""

    epochs: Count = 5
    batch_size: Count = 256
    optimizer: Literal["sgd", "momentum", "adam"] = "sgd"
    learning_rate: Rate = 0.01
    momentum: Share = 0.9
    weight_decay: Decay = 0.0
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    log_every: Count = 100
    checkpoint_every: Count | None = None
    on_nonfinite: Literal["stop", "skip", "ignore"] = "stop"
    eval_batch_size: Count = 1000


class DistConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the ranks that mpiexec started share the work."""

    shape: Literal["none", "allreduce", "pserver"] = "none"
    bucket: Bytes = 65536
    timeout: Seconds = 120.0


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One training run."""

    seed: Seed = 0
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    train: TrainConfig = TrainConfig()
    engine: Literal["compiled", "reference", "eager"] = "compiled"
    baseline: Activation | None = "relu"
    costs: Switch = True
    report: Switch = True
    dist: DistConfig = DistConfig()
    output: Folder | None = None


def load_config(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> Config:
    """The configuration in a YAML file, changed by overrides such as `train.epochs=3`."""
    where = os.path.expanduser(path)
    return _overridden(_changed(Config(), _read(where), where), overrides)


def load_run_config(
    path: str | os.PathLike[str], overrides: Sequence[str] = (), say: Callable[[str], None] = lambda note: None
) -> Config:
    """The configuration that a run has kept, which may be of an earlier release: `say` is told what is gone."""
    data = _read(str(path))
    if former := former_settings(data):
        say(
            f"note: the run was begun with {former}, which is not supported any more; what comes now is the same to "
            "rounding"
        )
    return _overridden(_changed(Config(), updated(data), str(path)), overrides)


def _overridden(config: Config, overrides: Sequence[str]) -> Config:
    for override in overrides:
        where = f"the command line, {_shown(override)}"
        config = _changed(config, _read_override(override, where), where)
    return config


def dump_config(config: Config) -> str:
    """The YAML that `load_config` reads back to an equal configuration."""
    return yaml_text.write(msgspec.to_builtins(config))


def operators_of(config: Config) -> list[str]:
    """The operators that a run compares: the configuration's own, and the baseline if that is another."""
    return list(dict.fromkeys(operator for operator in (config.model.activation, config.baseline) if operator))


def operators_typed(overrides: Sequence[str]) -> list[str]:
    """The operators that overrides name: these alone are the word of who typed them."""
    found: list[Any] = []
    for override in overrides:
        data = _read_override(override, f"the command line, {_shown(override)}")
        model = data.get("model")
        found += [data.get("baseline"), model.get("activation") if isinstance(model, dict) else None]
    return [operator for operator in found if isinstance(operator, str)]


def config_name(path: str | os.PathLike[str]) -> str:
    """What a run of this file is called: its stem, less anything that could lead out of a folder."""
    return re.sub(r"[^\w.-]+", "-", Path(path).stem).strip(".-") or "run"


def _read(path: str) -> Any:
    try:
        return yaml_text.read(path)
    except FileNotFoundError:
        shipped = ", ".join(os.path.relpath(file) for file in sorted(CONFIGS.glob("*.yaml")))
        raise ConfigError(f"{path}: no such file. There are: {shipped or 'none in configs/'}") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error


def _read_override(override: str, where: str) -> Any:
    """`{"train": {"epochs": 3}}` for `train.epochs=3`."""
    key, equals, text = override.partition("=")
    keys = key.strip().split(".")
    if not equals or not all(keys) or not key.isprintable():
        raise ConfigError(f"{where}: expected key=value, such as train.epochs=3")
    if len(keys) > yaml_text.MAX_DEPTH:
        raise ConfigError(f"{where}: nested more than {yaml_text.MAX_DEPTH} deep")
    data = yaml_text.parse(text, where)
    for name in reversed(keys):
        data = {name: data}
    return data


def _changed(config: Config, change: Any, where: str) -> Config:
    """`config` with one layer of plain data laid over it, checked."""
    change = without_former(change, where)
    data = _laid_over(msgspec.to_builtins(config), change)
    reason = ""
    try:
        changed = msgspec.convert(data, Config)
    except msgspec.ValidationError as error:
        problem_at = _path_in(str(error))
    else:
        problem_at, reason = _lost_in_float32(changed)
        if not problem_at:
            return changed
    from app.training import config_errors  # costs time, and is needed only now

    problem = config_errors.unknown_key(change, Config) or config_errors.wrong_value(data, Config, problem_at) + reason
    raise ConfigError(f"{where}: {problem}")


def _lost_in_float32(config: Config) -> tuple[str, str]:
    """The path of a number that networks, which compute in float32, could not use, and why; two empty texts if none."""
    train, (low, high) = config.train, config.data.pixel_range
    if not low < high:
        return "$.data.pixel_range", ""
    with np.errstate(all="ignore"):
        for name, most in (("learning_rate", math.inf), ("momentum", 1.0), ("weight_decay", math.inf)):
            value = getattr(train, name)
            used = np.float32(value)
            if not used < most or (used == 0) != (value == 0):
                return f"$.train.{name}", f"; in float32, in which it is used, it is {used:g}"
        # As a network scales its pixels
        grey = np.arange(256, dtype=np.float32) * np.float32((high - low) / 255) + np.float32(low)
        if not np.isfinite(grey).all():
            return "$.data.pixel_range", "; in float32, in which pixels are scaled, it is too wide"
        if not (np.diff(grey) > 0).all():
            return "$.data.pixel_range", "; in float32, in which pixels are scaled, some of its 256 shades are equal"
    return "", ""


def _laid_over(base: Any, change: Any) -> Any:
    if isinstance(base, dict) and change is None:
        return base  # a section whose every line is commented out
    if isinstance(base, dict) and isinstance(change, dict):
        return base | {key: _laid_over(base.get(key), value) for key, value in change.items()}
    return change


def _path_in(message: str) -> str:
    """msgspec says "Expected `int`, got `str` - at `$.train.epochs`", and no path when it is the root."""
    path = re.search(r" - at `(\$[^`]*)`$", message)
    return path[1] if path else "$"


def _shown(text: str) -> str:
    return text if text.isprintable() and len(text) <= 80 else repr(text[:80])
