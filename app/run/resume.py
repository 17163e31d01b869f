"""Resumes an interrupted run: finds its checkpoint and checks that nothing relevant has changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from app.custom.source_hash import is_same_source, source_hash
from app.errors import ConfigError, FileError, OperatorError
from app.nn import Layer
from app.run.checkpoints import Checkpoint, newest
from app.run.config import CompareConfig, Config, load_kept_config, operators_of, with_absolute_paths
from app.run.folder import CONFIG
from app.run.former import updated
from app.run.loop import Start
from app.run.network import Activation, every_operator

_FREE = {"check", "data.folder", "data.sources", "train.checkpoint_every"}
"""Settings that may change: the data source (the images are compared), the checkpoint interval, the finished check."""


def check_config(before: Mapping[str, Any], now: Config) -> None:
    """Refuse to resume with a configuration that would change the results."""
    try:
        begun_with = msgspec.convert(updated(before)[0], Config)  # with defaults for keys newer than the run
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


def interrupted_run(
    run: Path, overrides: Sequence[str], say: Callable[[str], None]
) -> tuple[Config, Checkpoint | None]:
    """Return the configuration of a resumed run and its checkpoint, if there is one."""
    config = load_kept_config(run / CONFIG, overrides, say)
    if isinstance(config, CompareConfig):
        raise ConfigError(f"{run} holds a comparison, which cannot be resumed: run `compare` again, into a new folder")
    found = newest(run, say)
    if found is None:
        check_config(msgspec.to_builtins(load_kept_config(run / CONFIG)), config)
    else:
        check_config(found.config, config)
        if found.start.turn >= len(operators_of(config)) or min(found.start) < 0:
            raise FileError(f"a checkpoint of {run} has the invalid position {found.start}")
    return config, found


def where_it_goes_on(config: Config, start: Start | None) -> str:
    """Return a line with the position where the run resumes."""
    if start is None:
        return "There is no checkpoint yet, so the run starts from the beginning."
    if start.epoch >= config.train.epochs:
        return f"This run is finished: {start.epoch} of {start.epoch} epochs. Its files are written again."
    operator, epoch = operators_of(config)[start.turn], f"epoch {start.epoch + 1}/{config.train.epochs}"
    return f"Resuming {operator} in {epoch}" + (f", after {start.done} iterations." if start.done else ".")


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
