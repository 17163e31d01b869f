"""A run on many ranks: they begin alike, cut epochs into the same pieces, and stop at the same one.

Rank 0 alone writes the run's folder. That it alone is heard, and that all end if one fails, is not seen to here, but
where commands begin: see `app.ranks.ending`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.data import Dataset
from app.errors import ConfigError
from app.ranks.current import current
from app.ranks.same import compare, framework
from app.ranks.world import World
from app.run.callbacks import Callback, Position
from app.run.checkpoints import Checkpoint, data_hash
from app.run.config import Config, dump_config
from app.run.events import Epoch
from app.run.interruption import Interruption
from app.run.network import Activation
from app.run.resume import sources_of


def _of_one_process(config: Config) -> str:
    """The first setting that would have other results with many ranks; '' if there is none."""
    if config.train.clip_norm is not None:
        return "train.clip_norm"
    if config.model.layers is None:
        return "model.dropout" if config.model.dropout else ""
    kinds = [(number, layer.kind) for number, layer in enumerate(config.model.layers)]
    found = [f"model.layers[{number}], {kind}," for number, kind in kinds if kind in ("dropout", "batch_norm")]
    return found[0] if found else ""


def ranks_of(config: Config) -> World:
    """The ranks that work on a run, which wait for each other for as long as its configuration says."""
    world, settings = current(), config.dist
    if world.size > 1 and settings.shape == "none":
        raise ConfigError(
            f"mpiexec started {world.size} ranks, but dist.shape is none, by which each would do the whole work: set "
            "dist.shape=allreduce, or start one process"
        )
    if settings.shape != "none" and (named := _of_one_process(config)):
        raise ConfigError(
            f"{named} is for one process, as each rank would use its own part of a batch for it: leave it out, or set "
            "dist.shape=none"
        )
    if settings.shape == "pserver" and config.engine == "eager":
        raise ConfigError(
            "engine=eager adds up gradients at every rank, and has no dist.shape=pserver: set dist.shape=allreduce, or "
            "engine=compiled"
        )
    world.configure(settings.timeout)
    return world


def begin_alike(
    world: World, config: Config, dataset: Dataset, activations: Sequence[Activation], found: Checkpoint | None
) -> None:
    """Refuse ranks that would not work on the same run."""
    if world.size == 1:
        return
    sources = {f"source of {name}": source or "built-in" for name, source in sources_of(activations).items()}
    images = f"{len(dataset.train_images):,} and {len(dataset.test_images):,} images, {dataset.origin}"
    where = "the beginning" if found is None else str(found.start)
    compare(
        world,
        {
            "framework": framework(),
            "configuration": dump_config(config),
            "data set": f"{images} (hash {data_hash(dataset)[:12]})",
            "checkpoint": where,
            **sources,
        },
    )


def ranks_told(world: World, config: Config) -> str:
    """A line about the ranks of a run that may have many; '' for one that is not to."""
    if world.size == 1 and config.dist.shape != "none":
        return f"Ranks: 1, so dist.shape={config.dist.shape} shares nothing; mpiexec -n 2 (mpi4py's own) starts two"
    return world.said


class InStep(Callback):
    """Stands first among the callbacks, so that all that the others do is done, or not done, at every rank."""

    def __init__(self, world: World, config: Config, interruption: Interruption):
        self.every = config.train.checkpoint_every  # where rank 0, which writes checkpoints, ends a piece
        self._world, self._interruption = world, interruption
        interruption.wait_for_others()

    def piece(self, position: Position, losses: np.ndarray, accuracies: np.ndarray) -> None:
        answers = self._world.gather((position.seconds, self._interruption.heard))
        position.seconds = max(seconds for seconds, _ in answers)
        self._stop_if_asked([heard for _, heard in answers])

    def epoch(self, position: Position, result: Epoch) -> None:
        self._stop_if_asked(self._world.gather(self._interruption.heard))

    def _stop_if_asked(self, signals: Sequence[int]) -> None:
        if any(signals):
            self._interruption.note(max(signals))
