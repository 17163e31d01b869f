"""A run on several ranks: all ranks check that they start equal.

Only rank 0 writes the run's folder. Muting the other ranks, and ending all ranks if one fails, are done where commands
start: see `opsmith.ranks.ending`.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.data import Dataset
from app.errors import ConfigError
from app.ranks.launch import has_launcher, launched
from app.ranks.same import compare, framework
from app.ranks.world import World, connect
from app.run.activation import Activation
from app.run.checkpoints import Checkpoint
from app.run.config import Config, dump_config
from app.run.resume import source_hashes


def _of_one_process(config: Config) -> str:
    """Return the first setting whose results would differ on several ranks; '' if there is none."""
    if config.train.clip_norm is not None:
        return "train.clip_norm"
    if config.model.layers is None:
        return "model.dropout" if config.model.dropout else ""
    kinds = [(number, layer.kind) for number, layer in enumerate(config.model.layers)]
    names = [f"model.layers[{number}], {kind}," for number, kind in kinds if kind in ("dropout", "batch_norm")]
    return names[0] if names else ""


def ranks_of(config: Config) -> World:
    """Return the ranks of a run, connected to each other."""
    launch, settings = launched(), config.dist
    if launch is not None and settings.shape == "none":
        raise ConfigError(
            f"mpiexec started {launch.size or 'several'} ranks, but dist.shape is none, by which each would do the "
            "whole work: set dist.shape=allreduce, or start one process"
        )
    if settings.shape != "none" and (named := _of_one_process(config)):
        raise ConfigError(
            f"{named} is for one process, as each rank would use its own part of a batch for it: leave it out, or set "
            "dist.shape=none"
        )
    if settings.shape != "none" and config.engine == "eager":
        raise ConfigError(
            "engine=eager is for one process, as what ranks share is a Program: set engine=compiled, or dist.shape=none"
        )
    if settings.shape == "none":
        return World()
    world = connect()
    if world.size == 1 and not has_launcher():
        raise ConfigError(
            f"dist.shape={settings.shape} is for several processes, and mpiexec did not start this one. "
            "`make train-mpi` installs it and starts two; later: .venv/bin/mpiexec -n 2 .venv/bin/python train.py. "
            "For one process: dist.shape=none"
        )
    return world


def begin_alike(
    world: World, config: Config, dataset: Dataset, activations: Sequence[Activation], checkpoint: Checkpoint | None
) -> None:
    """Raise an error if the ranks would not work on the same run."""
    if world.size == 1:
        return
    sources = {f"source of {name}": source or "built-in" for name, source in source_hashes(activations).items()}
    images = f"{len(dataset.train_images):,} and {len(dataset.test_images):,} images, {dataset.origin}"
    where = "the beginning" if checkpoint is None else f"epoch {checkpoint.epoch}"
    compare(
        world,
        {
            "framework": framework(),
            "configuration": dump_config(config),
            "data set": f"{images} (hash {dataset.digest()[:12]})",
            "checkpoint": where,
            **sources,
        },
    )


def ranks_text(world: World, config: Config) -> str:
    """Return a line about the ranks of a run; '' if it is not distributed."""
    if world.size == 1 and config.dist.shape != "none":
        return f"Ranks: 1, so dist.shape={config.dist.shape} shares nothing; mpiexec -n 2 (mpi4py's own) starts two"
    return world.description
