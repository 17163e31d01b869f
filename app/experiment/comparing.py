"""Compare operators over several seeds: a function of run folders.

A comparison is a folder with the run of each seed in a folder below it. `compare` trains the runs that are missing,
here or on the workers of an executor, then reads all of them and writes what they show. So an interrupted comparison
goes on, and workers need a shared folder and nothing else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, as_completed
from pathlib import Path

import msgspec
from threadpoolctl import threadpool_limits

from app.data import load
from app.errors import AppError, ConfigError, MissingFileError
from app.files import write_whole
from app.ranks.world import World
from app.run.activation import Activation, every_operator, find_all
from app.run.comparison import Comparison, compare_runs
from app.run.config import CompareConfig, Config, dump_config, load_kept_config, operators_of, with_absolute_paths
from app.run.console import Console
from app.run.events import METRICS
from app.run.folder import (
    COMPARISON,
    CONFIG,
    SUMMARY,
    folder_name,
    new_folder,
    require_folder,
    require_free,
)
from app.run.gradients import gradient_lines
from app.run.record import is_finished, read_run, read_runs, runs_of
from app.run.resume import check_sources, how_to_resume, operators_again
from app.run.run import Prepared, compile_networks, prepare, resume, train
from app.run.summary import comparison, comparison_data, introduction
from app.run.wording import count
from app.run.workers import died


def compare(
    config: CompareConfig,
    console: Console,
    executor: Executor | None = None,
    objects: Sequence[Activation] = (),
) -> Path:
    """Train several operators under equal conditions with several seeds, and test how the others differ from the first;
    return the folder of the comparison.

    An `executor` of `concurrent.futures`, or of a cluster, runs the trainings at the same time; its workers must find
    the operators' files, the data and the folder under the same paths. A folder `output` that was begun with the same
    configuration is continued.
    """
    config = _with_operators(config)
    activations = find_all(operators_of(config), config.model, objects)
    config = _with_validation(config)
    require_free(config)
    prepared = _introduce(config, activations, console)
    folder = new_folder(config.output, f"compare-{folder_name(config.operators or ())}", config)
    return _complete(folder, config, activations, prepared, console, executor)


def continue_comparison(
    folder: Path,
    console: Console,
    executor: Executor | None = None,
    custom_ops: Sequence[str] = (),
    objects: Sequence[Activation] = (),
    seeds: int | None = None,
) -> Path:
    """Train the runs that a comparison lacks; the results are as if it had not been interrupted. It may get more seeds
    than it was begun with."""
    require_folder(folder)
    if not (folder / CONFIG).is_file():
        raise AppError(f"{folder} holds no comparison: it has no {CONFIG}")
    config = load_kept_config(folder / CONFIG)
    if not isinstance(config, CompareConfig):
        raise ConfigError(f"{folder} holds a run, which is resumed with opsmith train --resume {folder}")
    activations = operators_again(folder, config, custom_ops, objects)
    if seeds is not None:
        config = _with_seeds(folder, config, seeds)
    return _complete(folder, config, activations, _introduce(config, activations, console), console, executor)


def compare_finished(folders: Sequence[Path], console: Console, output: str | None = None) -> Path:
    """Compare runs that are there, which differ in the seed alone; return the folder of the comparison. The folder of
    a comparison stands for its runs."""
    runs = [run for folder in folders for run in read_runs(folder)]
    for run in runs:
        if not is_finished(run.folder):
            raise MissingFileError(f"the run in {run.folder} is not finished: opsmith train --resume {run.folder}")
    configs = {folder: load_kept_config(folder / CONFIG) for folder in folders}
    seeds = {folder: runs_of(folder, config) for folder, config in configs.items() if isinstance(config, CompareConfig)}
    missing = {folder: number for folder, of in seeds.items() if (number := sum(not is_finished(run) for run in of))}
    result = compare_runs(runs, len(runs) + sum(missing.values()))
    folder = new_folder(output, f"compare-{folder_name(result.operators)}")
    _conclude(folder, result, console, report=True)
    for part, number in missing.items():
        console.warn(f"note: {count(number, 'seed')} of {part} not trained: opsmith compare --resume {part}")
    return folder


def _with_operators(config: CompareConfig) -> CompareConfig:
    """Return the configuration with the list of its operators, and refuse what cannot be compared."""
    if config.dist.shape != "none":
        raise ConfigError(f"a comparison runs in one process, but dist.shape={config.dist.shape} is for several")
    if config.seed + config.seeds > 2**63:
        raise ConfigError(f"seeds={config.seeds}: from seed={config.seed} on, there are {2**63 - config.seed} seeds")
    names = operators_of(config)
    if config.operators is None:
        names.reverse()  # the baseline first
    if len(names) < 2:
        raise ConfigError(
            f"only {names[0]} is named; a comparison needs two or more operators: --with relu,custom.relu, or in "
            'Python opsmith.compare(["relu", "tanh"])'
        )
    return msgspec.structs.replace(config, operators=tuple(names))


def _with_seeds(folder: Path, config: CompareConfig, seeds: int) -> CompareConfig:
    """Return the configuration of a comparison with more seeds, which is written to its folder."""
    if seeds < config.seeds:
        raise ConfigError(
            f"{folder} has {count(config.seeds, 'seed')}, and --seeds {seeds} would leave out some; to compare fewer, "
            f"name their folders: opsmith compare {' '.join(map(str, runs_of(folder, config)[:seeds]))}"
        )
    config = _with_operators(msgspec.structs.replace(config, seeds=seeds))
    write_whole(folder / CONFIG, dump_config(with_absolute_paths(config)).encode())
    return config


def _with_validation(config: CompareConfig) -> CompareConfig:
    """Return the configuration with the number of validation images: by default a twelfth of the training images."""
    data = config.data
    if data.validation is not None:
        return config
    held = len(load(data.source, data.sources, data.folder).train_images) // 12
    return msgspec.structs.replace(config, data=msgspec.structs.replace(data, validation=held))


def _complete(
    folder: Path,
    config: CompareConfig,
    activations: Sequence[Activation],
    prepared: Prepared,
    console: Console,
    executor: Executor | None,
) -> Path:
    """Train the runs that are missing in the folder of a comparison, and compare all."""
    runs = runs_of(folder, config)
    missing = [run for run in runs if not is_finished(run)]
    again = how_to_resume(folder, activations, "compare")
    for run in runs:
        if run not in missing and (start := read_run(run).start) is not None:
            check_sources(start.sources, prepared.start.sources, f"the run in {run} was trained with it")
    if len(missing) < len(runs):
        console.say(f"{len(runs) - len(missing)} of {count(len(runs), 'seed')} were trained before\n")
    try:
        if executor is not None and missing:
            compile_networks(config, prepared.dataset, prepared.learners, console)  # which workers find in the cache
            _train_at_once(missing, config, activations, console, executor)
        else:
            for run in missing:
                train_run(run, config_of(run, config), activations, console.for_seed())
                console.end_seed(read_run(run), runs.index(run) + 1, len(runs))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(again) from None
    finished = [read_run(run) for run in runs if is_finished(run)]
    if not finished:
        raise AppError(f"no seed was trained, so there is nothing to compare. {again}")
    _conclude(folder, compare_runs(finished, len(runs)), console, config.report)
    if len(finished) < len(runs):
        console.warn(f"note: {count(len(runs) - len(finished), 'seed')} not trained. {again}")
    return folder


def config_of(run: Path, config: CompareConfig) -> Config:
    """Return the configuration of a run of a comparison. What does not depend on the seed, the gradient check, costs
    and the report, is for the first run alone."""
    of_run = {name: getattr(config, name) for name in Config.__struct_fields__}
    of_run |= {"seed": int(run.name.rpartition("-")[2]), "output": str(run)}
    if of_run["seed"] != config.seed:
        of_run |= {"check": False, "costs": False, "report": False}
    return Config(**of_run)


def _introduce(config: CompareConfig, activations: Sequence[Activation], console: Console) -> Prepared:
    """Check the operators before any training, and print what is compared."""
    prepared = prepare(config, activations, console, World())
    text = introduction(config, prepared.dataset, prepared.learners, gradients=gradient_lines(prepared.checked))
    operators, epochs, seeds = len(activations), config.train.epochs, config.seeds
    console.say(
        f"{text}{operators} operators, each trained for {count(epochs, 'epoch')} with {count(seeds, 'seed')}: "
        f"{count(operators * epochs * seeds, 'epoch')} in total\n"
    )
    return prepared


def train_run(
    run: Path, config: Config, activations: Sequence[Activation], console: Console, alone: bool = True
) -> None:
    """Train a run of a comparison in its folder, or resume it there."""
    from app.report.report import write_report  # imported late: a run has other things to do first

    objects = every_operator(activations)
    if (run / METRICS).exists():
        resume(run, console, objects=objects, alone=alone, world=World(), write_report=write_report)
    else:
        train(config, console, objects, alone=alone, world=World(), write_report=write_report)


def train_in_worker(run: str, config: Config, homes: Mapping[str, str]) -> None:
    """Train a run of a comparison on a worker, which finds the operators in the files `homes`. It runs on one thread,
    because the number of threads changes the last bits of results, and all workers must agree.
    """
    with threadpool_limits(1, user_api="blas"):
        activations = find_all(operators_of(config), config.model, homes=homes)
        train_run(Path(run), config, activations, Console(False, None, brief=True), alone=False)


def _train_at_once(
    missing: Sequence[Path],
    config: CompareConfig,
    activations: Sequence[Activation],
    console: Console,
    executor: Executor,
) -> None:
    """Train the missing runs on the workers of an executor. An error of an operator ends all; a worker that dies costs
    its own run, which can be resumed."""
    homes = {one.name: os.path.abspath(one.home) for one in every_operator(activations) if one.home}
    jobs = {
        executor.submit(train_in_worker, str(run.absolute()), with_absolute_paths(config_of(run, config)), homes): run
        for run in missing
    }
    try:
        with console.busy(f"Training {count(len(jobs), 'seed')} at the same time"):
            for number, job in enumerate(as_completed(jobs), 1):
                run = jobs[job]
                try:
                    job.result()
                except AppError:
                    raise
                except Exception as error:
                    console.warn(f"note: the training in {run} ended early ({died(error)})")
                else:
                    console.end_seed(read_run(run), number, len(jobs))
    finally:
        for job in jobs:
            job.cancel()


def _conclude(folder: Path, result: Comparison, console: Console, report: bool) -> None:
    """Write what the runs of a comparison show, and print it."""
    data = comparison_data(result)
    write_whole(folder / COMPARISON, json.dumps(data, indent=2, allow_nan=False).encode() + b"\n")
    write_whole(folder / SUMMARY, comparison(result).encode() + b"\n")
    console.conclude(comparison(result, console.columns), {"event": "comparison", **data}, str(folder), "comparison")
    if report:
        from app.report.report import write_comparison

        with console.busy("Writing the report"):
            page = write_comparison(folder, result)
        console.say(f"The report is {page}")
