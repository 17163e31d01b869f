"""A run that was interrupted: what there is of it, and how it is told that it goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from app.errors import FileError
from app.training.checkpoints.changes import check_config
from app.training.checkpoints.checkpoint import Checkpoint
from app.training.checkpoints.keeper import newest
from app.training.comparison import Start
from app.training.config import Config, load_run_config, operators_of
from app.training.run_folder import CONFIG


def interrupted_run(
    run: Path, overrides: Sequence[str], say: Callable[[str], None]
) -> tuple[Config, Checkpoint | None]:
    """The configuration under which a run goes on, and the checkpoint that it goes on from, if there is one."""
    config = load_run_config(run / CONFIG, overrides, say)
    found = newest(run, say)
    if found is None:
        check_config(msgspec.to_builtins(load_run_config(run / CONFIG)), config)
    else:
        check_config(found.config, config)
        if found.start.turn >= len(operators_of(config)) or min(found.start) < 0:
            raise FileError(f"a checkpoint of {run} says that the run goes on at {found.start}, where it cannot be")
    return config, found


def where_it_goes_on(config: Config, start: Start | None) -> str:
    """A line that says from where."""
    if start is None:
        return "No checkpoint was written yet, so the run begins from its beginning."
    if start.epoch >= config.train.epochs:
        return f"This run is finished: {start.epoch} of {start.epoch} epochs are done. What it keeps is written again."
    operator, epoch = operators_of(config)[start.turn], f"epoch {start.epoch + 1}/{config.train.epochs}"
    return f"Going on with {operator} in {epoch}" + (f", after {start.done} iterations." if start.done else ".")
