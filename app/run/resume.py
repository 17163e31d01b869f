"""Resumes an interrupted run: finds its checkpoint and checks that nothing relevant has changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from app.custom.source_hash import is_same_source, source_hash
from app.errors import AppError, ConfigError, OperatorError
from app.nn import Layer
from app.run.checkpoints import CHECKPOINT, Checkpoint, read_checkpoint
from app.run.config import CompareConfig, Config, load_kept_config, with_absolute_paths
from app.run.folder import CONFIG, SUMMARY
from app.run.network import Activation, every_operator

_FREE = {"check", "data.folder", "data.sources"}
"""Settings that may change: the data source (the images are compared), and the check, which is finished."""


def check_config(before: Mapping[str, Any], now: Config) -> None:
    """Refuse to resume with a configuration that would change the results."""
    try:
        begun_with = msgspec.convert(before, Config)  # with defaults for keys newer than the run
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"the run was started with a configuration that this release does not know: {error}"
        ) from error
    begun, here = (msgspec.to_builtins(with_absolute_paths(config)) for config in (begun_with, now))
    pairs = _changes(begun, here)
    changes = {key: pair for key, *pair in pairs if key not in _FREE and not key.startswith("dist.")}
    constant = begun_with.train.schedule == "constant"
    if constant and now.train.epochs > begun_with.train.epochs:
        del changes["train.epochs"]  # more of them do not change the finished ones
    if changes:
        listing = ", ".join(f"{key} was {_shown(old)} and is {_shown(new)}" for key, (old, new) in changes.items())
        may = (
            "train.epochs may grow"
            if constant
            else f"train.epochs may not, because train.schedule={now.train.schedule} depends on it"
        )
        raise ConfigError(
            f"a run is resumed with its own settings, but {listing}. "
            f"Only {', '.join(sorted(_FREE))} may change, and {may}; for others, start a new run"
        )


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _changes(before: Any, now: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Return each setting that differs, by path, with both values."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in now:
            yield from _changes(before[key], now[key], f"{path}.{key}" if path else key)
    elif before != now:
        yield path, before, now


def interrupted_run(run: Path, overrides: Sequence[str]) -> tuple[Config, Checkpoint | None]:
    """Return the configuration of a resumed run and its checkpoint, if there is one."""
    config = load_kept_config(run / CONFIG, overrides)
    if isinstance(config, CompareConfig):
        raise ConfigError(f"{run} holds a comparison, which cannot be resumed: run `compare` again, into a new folder")
    if (run / CHECKPOINT).exists():
        found = read_checkpoint(run / CHECKPOINT)
        check_config(found.config, config)
        return config, found
    if (run / SUMMARY).exists():
        raise AppError(f"the run in {run} is finished: there is nothing to resume")
    check_config(msgspec.to_builtins(load_kept_config(run / CONFIG)), config)
    return config, None


def where_it_goes_on(config: Config, found: Checkpoint | None) -> str:
    """Return a line with the position where the run resumes."""
    if found is None:
        return "There is no checkpoint yet, so the run starts from the beginning."
    if found.epoch >= config.train.epochs:
        return "All epochs are trained; what follows them is done again."
    return f"Resuming in epoch {found.epoch + 1}/{config.train.epochs}."


def sources_of(activations: Sequence[Activation]) -> dict[str, str | None]:
    """Return the hash of each operator's source; None for built-in operators."""
    return {activation.name: _source_of(activation.operator) for activation in every_operator(activations)}


def _source_of(operator: Callable[..., Any]) -> str | None:
    thing: Any = getattr(operator, "__self__", operator)  # a PyLayer is called through its apply
    try:
        return source_hash(type(thing) if isinstance(thing, Layer) else thing)
    except OperatorError:
        return None


def check_sources(
    before: Mapping[str, str | None], now: Mapping[str, str | None], since: str = "the run was interrupted"
) -> None:
    """Refuse operators that have changed."""
    changed = [name for name, source in now.items() if not is_same_source(source, before.get(name, source))]
    if changed:
        raise OperatorError(
            f"the source of {' and of '.join(changed)}, or of a function that it calls, has changed since {since}. "
            "Restore it, or start a new run"
        )
