"""What of a configuration may change while a run is interrupted: what its results do not depend on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from app.errors import ConfigError
from app.training.config import Config
from app.training.former import updated

_FREE = {"data.folder", "data.sources", "train.checkpoint_every"}
"""Where data is found, as the images themselves are compared; how often a checkpoint is written."""


def check_config(before: Mapping[str, Any], now: Config) -> None:
    """Refuse to go on under a configuration that gives other results than the one that the run was begun with."""
    try:
        begun_with = msgspec.convert(updated(before), Config)  # with the defaults of keys that are newer than the run
    except msgspec.ValidationError as error:
        raise ConfigError(f"the run was begun with a configuration that this release does not know: {error}") from error
    pairs = _changes(msgspec.to_builtins(begun_with), msgspec.to_builtins(now))
    changes = {key: pair for key, *pair in pairs if key not in _FREE and not key.startswith("dist.")}
    constant = begun_with.train.schedule == "constant"
    if constant and now.train.epochs > begun_with.train.epochs:
        del changes["train.epochs"]  # more of them change none of those that were done
    if changes:
        told = ", ".join(f"{key} was {_shown(old)} and is {_shown(new)}" for key, (old, new) in changes.items())
        may = (
            "train.epochs may grow"
            if constant
            else f"train.epochs stays, as train.schedule={now.train.schedule} depends on it"
        )
        raise ConfigError(
            f"a run goes on with the settings that it was begun with, but {told}. "
            f"Only {', '.join(sorted(_FREE))} may change, and {may}; for others, begin a run anew"
        )


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _changes(before: Any, now: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Each setting that differs, by its path, with both of its values."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in now:
            yield from _changes(before[key], now[key], f"{path}.{key}" if path else key)
    elif before != now:
        yield path, before, now
