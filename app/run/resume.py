"""Resumes an interrupted run: finds its checkpoint and operators, and checks that nothing relevant has changed."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from app.custom.foreign import parts_of
from app.custom.references import ChangedOperatorError
from app.engine.compiled.fingerprint import full_fingerprint
from app.errors import AppError, ConfigError, OperatorError
from app.nn import Layer
from app.ops.definition import OpDef
from app.ranks.world import current
from app.run.activation import Activation, as_passed, every_operator, find_all, passed_only
from app.run.checkpoints import CHECKPOINT, Checkpoint, read_checkpoint
from app.run.config import Config, load_kept_config, operators_of, with_absolute_paths
from app.run.console import Console
from app.run.folder import CONFIG, SUMMARY, RunFolder, refuse_comparison
from app.run.layers import operators_named_in
from app.run.trust import require_named

_FREE = {"check", "data.folder", "data.sources"}
"""Settings that may change: the data source (the images are compared), and the check, which is finished."""


def check_config(before: Mapping[str, Any], now: Config) -> None:
    """Refuse to resume with a configuration that would change the results."""
    changed = {
        key: pair
        for key, *pair in changes(before, msgspec.to_builtins(with_absolute_paths(now)))
        if key not in _FREE and not key.startswith("dist.")
    }
    constant = now.train.schedule == "constant"
    epochs, _ = changed.get("train.epochs", (None, None))
    if constant and isinstance(epochs, int) and now.train.epochs > epochs:
        del changed["train.epochs"]  # more of them do not change the finished ones
    if changed:
        listing = ", ".join(f"{key} was {_shown(old)} and is {_shown(new)}" for key, (old, new) in changed.items())
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


def changes(before: Any, now: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Return each setting that differs, by path, with both values."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in now:
            yield from changes(before.get(key), now[key], f"{path}.{key}" if path else key)
    elif before != now:
        yield path, before, now


def interrupted_run(run: Path, overrides: Sequence[str] = ()) -> tuple[Config, Checkpoint | None]:
    """Return the configuration of a resumed run and its checkpoint, if there is one."""
    config = load_kept_config(run / CONFIG, overrides)
    refuse_comparison(run, config)
    if (run / CHECKPOINT).exists():
        checkpoint = read_checkpoint(run / CHECKPOINT)
        check_config(checkpoint.config, config)
        return config, checkpoint
    if (run / SUMMARY).exists():
        raise AppError(
            f"the run in {run} is finished: there is nothing to resume. To train with other settings, start a new run, "
            f"such as --config {shlex.quote(str(run / CONFIG))} train.epochs={2 * config.train.epochs} output=null"
        )
    check_config(msgspec.to_builtins(with_absolute_paths(load_kept_config(run / CONFIG))), config)
    return config, None


def operators_again(
    path: Path, config: Config, custom_ops: Sequence[str], objects: Sequence[Activation], call: str = "opsmith.resume"
) -> list[Activation]:
    """Return the operators of a run in a folder, found by name or passed as objects in a call."""
    by_name, names = {a.name: a for a in objects}, operators_of(config)
    needed = list(dict.fromkeys([*names, *operators_named_in(config.model.all_layers)]))
    unknown = [name for name in by_name if name not in needed]
    if unknown:
        raise ConfigError(f"the run in {path} has no operator {', '.join(unknown)}; it has {', '.join(needed)}")
    missing = [name for name in needed if name not in by_name]
    if lost := passed_only(missing):
        raise ConfigError(
            f"{', '.join(lost)} cannot be imported, because it was defined in a notebook's cell or similar: define it "
            f"again as it was, and call {call}({str(path)!r}, {as_passed(lost)})"
        )
    require_named(missing, custom_ops, str(path))
    return find_all(names, config.model, objects)


def where_it_goes_on(config: Config, checkpoint: Checkpoint | None) -> str:
    """Return a line with the position where the run resumes."""
    if checkpoint is None:
        return "There is no checkpoint yet, so the run starts from the beginning."
    if checkpoint.epoch >= config.train.epochs:
        return "All epochs are trained; what follows them is done again."
    return f"Resuming in epoch {checkpoint.epoch + 1}/{config.train.epochs}."


def how_to_resume(folder: Path, activations: Sequence[Activation], command: str = "train") -> str:
    """How to resume a run: a command, or a call where an operator has to be handed over. It is on lines of its own, to
    be copied from a terminal of 80 columns."""
    if passed := passed_only(activation.name for activation in every_operator(activations)):
        return f"Resume with:\nopsmith.resume({str(folder)!r}, {as_passed(passed)})"
    programs = Path(sys.executable).parent
    here = programs.relative_to(Path.cwd()) if programs.is_relative_to(Path.cwd()) else Path()
    arguments = [f"{here / 'mpiexec'} -n {current().size}"] if current().size > 1 else []
    arguments += [f"{here / 'opsmith'} {command}", f"--resume {shlex.quote(str(folder))}"]
    lines = [""]
    for word in [*arguments, *(f"--custom-op {shlex.quote(home)}" for home in homes_of(activations))]:
        if len(lines[-1]) + len(word) > _WIDTH:
            lines.append("   ")
        lines[-1] += f" {word}"
    return "Resume with:\n" + " \\\n".join(lines)[1:]


_WIDTH = 76
"""The columns of a line of a command, without the end that continues it."""


@contextmanager
def saying_how_to_resume(
    folder: RunFolder | None, activations: Sequence[Activation], console: Console
) -> Iterator[None]:
    """Say how to resume a run that ends early."""
    try:
        yield
    except BaseException as error:
        if folder is not None and not console.brief and not isinstance(error, OperatorError):
            command = how_to_resume(folder.path, activations)
            if isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt(command) from None
            with suppress(OSError):
                console.warn(command)
        raise


def homes_of(activations: Sequence[Activation]) -> list[str]:
    """Return the user's files that define operators of a run."""
    return list(dict.fromkeys(one.home for one in every_operator(activations) if one.home))


def source_hashes(activations: Sequence[Activation]) -> dict[str, str | None]:
    """Return the hash of each operator's source; None for built-in operators."""
    return {activation.name: _source_hash(activation.operator) for activation in every_operator(activations)}


def _source_hash(operator: Callable[..., Any]) -> str | None:
    thing: Any = getattr(operator, "__self__", operator)  # a PyLayer is called through its apply
    if isinstance(thing, OpDef) and not thing.custom:
        return None
    return full_fingerprint(*parts_of(type(thing) if isinstance(thing, Layer) else thing))


def check_sources(
    before: Mapping[str, str | None], now: Mapping[str, str | None], since: str = "the run was interrupted"
) -> None:
    """Refuse operators that have changed."""
    changed = [name for name, source in now.items() if source != before.get(name, source)]
    if changed:
        problem = f"the source of {' and of '.join(changed)}, or of a function that it calls, has changed since {since}"
        raise ChangedOperatorError(problem, "Restore it, or start a new run", changed[0])
