"""A run: the networks of several operators, trained side by side with one seed, in one folder.

They start from the same weights and see the same batches, so that only the operators differ. They take turns, in
another order in every epoch, so that their times can be compared on a machine whose speed drifts. A run that ends early
leaves its checkpoint, from which it is resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from app.data import Batches, Dataset, epoch_order, load
from app.errors import AppError, OperatorError
from app.ranks.launch import launched
from app.ranks.world import World
from app.run.activation import Activation, find_all
from app.run.callbacks import Callback, ParameterMetrics, Position
from app.run.checkpoints import Checkpoint, Checkpoints, restore
from app.run.config import Config, operators_of
from app.run.console import Console
from app.run.costs import measure_costs
from app.run.events import Checked, Epoch, Event, Iteration, Record, Start, Tested
from app.run.finish import ReportWriter, finish
from app.run.folder import RunFolder, require_free
from app.run.gradients import check_gradients, gradient_lines
from app.run.learners import Learner, make_learner
from app.run.network import refuse_contradictions
from app.run.nonfinite import warnings_off
from app.run.ranks import begin_alike, ranks_of, ranks_text
from app.run.resume import (
    check_sources,
    interrupted_run,
    operators_again,
    saying_how_to_resume,
    source_hashes,
    where_it_goes_on,
)
from app.run.steps import NonfiniteError, compile_step, measure, take_steps
from app.run.summary import introduction


def train(
    config: Config,
    console: Console,
    objects: Sequence[Activation] = (),
    *,
    alone: bool = True,
    world: World | None = None,
    write_report: ReportWriter | None = None,
) -> Path | None:
    """Train the operators of a configuration; return the folder of the run.

    `objects` are operators; others are found by their names. `alone` tells whether no other training runs at
    the same time, so that times can be compared. `world` are the ranks that share the work, by default those of the
    configuration; only the first has a folder.
    """
    activations = find_all(operators_of(config), config.model, objects)  # before data is downloaded needlessly
    world = ranks_of(config) if world is None else world
    if world.rank == 0:
        require_free(config)
    return _run(config, activations, console, world, RunFolder.new, alone, write_report)


def resume(
    path: Path,
    console: Console,
    overrides: Sequence[str] = (),
    custom_ops: Sequence[str] = (),
    objects: Sequence[Activation] = (),
    *,
    alone: bool = True,
    world: World | None = None,
    write_report: ReportWriter | None = None,
) -> Path | None:
    """Resume the interrupted run in a folder; the results are as without the interruption. `objects` are the operators
    that cannot be imported. Files with others are executed only if `custom_ops` names them.
    """
    launch = launched() if world is None else None
    with nullcontext() if launch is not None and launch.rank else RunFolder.again(path) as folder:
        config, checkpoint = interrupted_run(path, overrides)
        activations = operators_again(path, config, custom_ops, objects)
        if checkpoint is not None:
            check_sources(checkpoint.start.sources, source_hashes(activations))

        def reopened(config: Config) -> RunFolder:
            assert folder is not None, "only rank 0 writes"
            folder.go_on(config, b"" if checkpoint is None else checkpoint.metrics.tobytes())
            return folder

        world = ranks_of(config) if world is None else world
        note = where_it_goes_on(config, checkpoint)
        return _run(config, activations, console, world, reopened, alone, write_report, checkpoint, note)


def _run(
    config: Config,
    activations: Sequence[Activation],
    console: Console,
    world: World,
    open_folder: Callable[[Config], RunFolder],
    alone: bool,
    write_report: ReportWriter | None,
    checkpoint: Checkpoint | None = None,
    note: str = "",
) -> Path | None:
    """Train from the beginning or from a checkpoint. The folder is opened once training can begin."""
    dataset, learners, start, checked = prepare(config, activations, console, world, checkpoint)
    console.say(introduction(config, dataset, learners, ranks_text(world, config), gradient_lines(checked), note))
    compile_networks(config, dataset, learners, console)
    console.start_training([learner.operator for learner in learners], config.train.epochs, dataset.tested_on)
    if checkpoint is not None:
        restore(checkpoint, start, learners)

    with (
        open_folder(config) if world.rank == 0 else nullcontext() as folder,
        saying_how_to_resume(folder, activations, console),
    ):

        def record(event: Event) -> None:
            if folder is not None:
                folder.record(event)
            console.record(event)

        for event in (start, *checked) if checkpoint is None else ():
            record(event)
        callbacks: list[Callback] = [ParameterMetrics(record), console]
        if folder is not None:
            callbacks.append(Checkpoints(config, learners, folder))
        try:
            first = 0 if checkpoint is None else checkpoint.epoch
            train_epochs(config, dataset, learners, record, callbacks, first, alone)
            test_at_end(config, dataset, learners, record)
        except OperatorError as error:  # which a resumed run would raise again
            if isinstance(error, NonfiniteError):
                record(error.event)
            if folder is not None:
                with suppress(AppError, OSError):
                    finish(config, dataset, learners, folder, console, write_report)
            raise
        if folder is None:
            return None
        if alone:
            with console.busy("Timing each operator alone"):
                measure_costs(config, activations, len(dataset.train_images), record, console.warn)
        finish(config, dataset, learners, folder, console, write_report)
        return folder.path


def train_epochs(
    config: Config,
    dataset: Dataset,
    learners: Sequence[Learner],
    record: Record,
    callbacks: Sequence[Callback] = (),
    first: int = 0,
    alone: bool = True,
) -> None:
    """Train every network for one epoch, then all of them for the next, and so on, from the first epoch on."""
    settings = config.train
    tests = Batches(dataset.test_images, dataset.test_labels, None, settings.eval_batch_size)
    try:
        for epoch in range(first, settings.epochs):
            order = epoch_order(config.seed, epoch, len(dataset.train_images))
            batches = Batches(dataset.train_images, dataset.train_labels, order, settings.batch_size)
            for learner in in_turns(learners, config.seed + epoch):
                position = Position(learner, epoch, len(batches))
                for callback in callbacks:
                    callback.begin_epoch(position)
                for stop in stops(len(batches), settings.log_every):
                    losses, accuracies = take_steps(position, batches[position.done : stop])
                    position.done = stop
                    if (stop - 1) % settings.log_every == 0:
                        loss, accuracy = float(losses[-1]), float(accuracies[-1])
                        record(Iteration(learner.operator, epoch, stop - 1, loss, accuracy))
                    for callback in callbacks:
                        callback.advance(position)
                learner.end_epoch()
                loss, accuracy = overall(*measure(position, tests), tests)
                record(Epoch(learner.operator, epoch, position.seconds, accuracy, loss, alone))
                for callback in callbacks:
                    callback.end_epoch(position)
            for callback in callbacks:
                callback.end_round(epoch)
    finally:
        for callback in callbacks:
            callback.end()


class Prepared(NamedTuple):
    """What a run begins with."""

    dataset: Dataset
    learners: list[Learner]
    start: Start
    checked: list[Checked]
    """The results of the gradient checks; a resumed run was checked when it began."""


def prepare(
    config: Config,
    activations: Sequence[Activation],
    console: Console,
    world: World,
    checkpoint: Checkpoint | None = None,
) -> Prepared:
    """Load the data, check the gradients of custom operators, and build a network for each operator."""
    sources = source_hashes(activations)  # before they run: they may keep state
    data = config.data
    images = load(data.source, data.sources, data.folder)
    dataset = images.hold_back(data.validation, config.seed) if data.validation else images
    refuse_contradictions(config, len(dataset.train_images))
    checked = check_gradients(config, activations, dataset, world, console) if checkpoint is None else []
    begin_alike(world, config, dataset, activations, checkpoint)
    learners = [make_learner(config, activation, dataset.image_shape) for activation in activations]
    engines = {learner.operator: learner.engine_text() for learner in learners}
    start = Start.now(dataset, images.digest(), engines, sources)
    return Prepared(dataset, learners, start, checked)


def compile_networks(config: Config, dataset: Dataset, learners: Sequence[Learner], console: Console) -> None:
    """Compile before training, which is timed; an operator's errors in its first step are raised here."""
    batches = Batches(dataset.train_images, dataset.train_labels, None, config.train.batch_size)
    for learner in learners:
        with console.busy(f"Preparing the network of {learner.operator}"):
            compile_step(learner, batches[:1])


def in_turns(learners: Sequence[Learner], turn: int) -> list[Learner]:
    """Rotate the order of networks, because the first one may be faster."""
    turn %= len(learners)
    return [*learners[turn:], *learners[:turn]]


PIECE = 100
"""The maximum number of iterations between two moves of the progress bar, or from Ctrl-C to the end."""


def stops(iterations: int, log_every: int) -> list[int]:
    """Return the iterations after which an epoch pauses: those that are reported, the last, and the one before it, as
    the last step is recorded. Where two of them are far apart, it pauses in between, too."""
    needed = sorted({*range(1, iterations, log_every), iterations - 1, iterations} - {0})
    return [stop for begin, end in pairwise([0, *needed]) for stop in (*range(begin + PIECE, end, PIECE), end)]


def overall(losses: np.ndarray, accuracies: np.ndarray, tests: Batches) -> tuple[float, float]:
    """Combine the losses and accuracies of batches; the last batch may be smaller."""
    sizes = np.full(len(tests), tests.batch_size, dtype=np.float64)
    sizes[-1] = tests.count - tests.batch_size * (len(tests) - 1)
    right = np.rint(accuracies * sizes).sum()  # a whole number of images, so that the accuracy is exact
    return float(np.average(losses, weights=sizes)), float(right / tests.count)


def test_at_end(config: Config, dataset: Dataset, learners: Sequence[Learner], record: Record) -> None:
    """Test trained networks on the test images if their epochs were tested on validation images."""
    if dataset.final_images is None or dataset.final_labels is None:
        return
    tests = Batches(dataset.final_images, dataset.final_labels, None, config.train.eval_batch_size)
    for learner in learners:
        with warnings_off():
            loss, accuracy = overall(*learner.measure(tests), tests)
        record(Tested(learner.operator, accuracy, loss))
