"""A run: N operators over M seeds. `train.py` trains one seed, `compare` several.

All operators start from the same weights and see the same batches, so that only the operators differ. A run that ends
early leaves its checkpoint, from which it can be resumed; a comparison keeps what the finished seeds gave.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from app.custom.lookup import edited_since
from app.data import Batches, Dataset, load
from app.errors import AppError, OperatorError
from app.ranks.world import World, current
from app.run.answers import answers, keep
from app.run.callbacks import Callback, Contestant
from app.run.checkpoints import CHECKPOINT, Checkpoint, Checkpoints, capture, data_hash, restore
from app.run.comparison import Comparison, Outcomes, compare
from app.run.config import Config, with_absolute_paths
from app.run.console import COMPILING, Console
from app.run.costs import measure_costs
from app.run.events import Checked, Cost, End, Epoch, Event, Record, with_seed
from app.run.folder import COMPARISON, RunFolder, source_file
from app.run.gradients import check_gradients, gradient_lines
from app.run.learners import make_learner
from app.run.loop import TrainingLoop
from app.run.metrics import Metrics, start_event
from app.run.network import Activation, every_operator, model_for_use, refuse_contradictions
from app.run.profiles import keep as keep_profiles
from app.run.profiles import of_layers
from app.run.ranks import InStep, begin_alike, ranks_of, ranks_text
from app.run.resume import check_sources, sources_of
from app.run.steps import Steps, warm_up, warnings_off
from app.run.summary import comparison, introduction, outcome, plain, summary, verdicts
from app.run.training import Job, Trained, test_at_end, train_one, trained
from app.run.workers import OpenExecutor, died, run_all

ReportWriter = Callable[[Path], Path]
"""Writes the report of a run's folder; returns the page."""


@dataclass
class Result:
    """The result of a run."""

    config: Config
    folder: Path | None
    """The folder of the run; None on all ranks but the first."""
    epochs: dict[str, list[list[Epoch]]]
    """The epochs of each operator for each finished seed."""
    weights: dict[str, dict[str, np.ndarray]]
    """The network weights of each operator, by path; those of the first seed."""
    comparison: Comparison | None = None
    """None for a run that is no comparison, or finished no seed."""
    text: str = ""
    """The tables and verdicts in summary.txt."""
    data: dict[str, Any] = field(default_factory=dict)
    """The same as plain data."""
    tested: dict[str, list[float]] = field(default_factory=dict)
    """The test accuracies of each operator, if its epochs were tested on validation images."""
    image: tuple[int, int] = (28, 28)
    """The rows and columns of the images."""


class Run:
    """A run on one rank. `go` creates the folder and trains; the constructor does neither."""

    def __init__(
        self,
        config: Config,
        activations: Sequence[Activation],
        console: Console,
        *,
        seeds: Sequence[int] | None = None,
        workers: OpenExecutor | None = None,
        found: Checkpoint | None = None,
        write_report: ReportWriter | None = None,
    ):
        self._config, self._activations, self._console = config, activations, console
        self._workers = workers
        """Runs the trainings of a comparison in parallel; without an executor they run in this process."""
        self._compared = seeds is not None
        """Whether differences are tested; otherwise the run has only the configuration's seed."""
        self._seeds = [config.seed] if seeds is None else seeds
        self._found, self._write_report = found, write_report
        self._sources = sources_of(activations)
        if found is not None:
            check_sources(found.operators, self._sources)
        self._world = World() if self._compared else ranks_of(config)
        self._dataset = self._data_set()
        refuse_contradictions(config, len(self._dataset.train_images))
        self._checked: list[Checked] = []
        """The results of the gradient checks. A resumed run was checked when it began."""
        if found is None:
            self._checked = check_gradients(config, activations, self._dataset, self._world, console)
        begin_alike(self._world, config, self._dataset, activations, found)
        self._trained: dict[int, dict[str, Trained]] = {}
        """The results of a comparison, by seed and operator name."""
        self._costs: list[Cost] = []

    def _data_set(self) -> Dataset:
        """Load the data set and hold back validation images: by default a twelfth for a comparison."""
        data = self._config.data
        dataset, held = load(data.source, data.sources, data.folder), data.validation
        if held is None and self._compared:
            held = len(dataset.train_images) // 12
            data = msgspec.structs.replace(data, validation=held)
            self._config = msgspec.structs.replace(self._config, data=data)
        return dataset.hold_back(held, self._config.seed) if held else dataset

    def go(self, open_folder: Callable[[Config], RunFolder], note: str = "") -> Result:
        """Train from the beginning or from the checkpoint. Only rank 0 opens and writes the folder."""
        first = self._enter(self._seeds[0])
        self._introduce(first, note)
        self._warm_up(first)
        if self._found is not None:
            restore(self._found, self._dataset, first)
        if self._world.rank:
            self._train_all(first, None)
            return self._result(first, None)
        with open_folder(self._config) as folder, self._resumable(folder):
            for activation in every_operator(self._activations):
                if not activation.has_name:
                    folder.save_text(source_file(activation.name), activation.source)
            try:
                self._train_all(first, folder)
            except BaseException as error:
                if self._compared or isinstance(error, OperatorError):  # which cannot be resumed: keep what there is
                    with suppress(AppError, OSError):  # the disk may still be full
                        self._end(first, folder)
                raise
            self._end(first, folder)
        return self._result(first, folder)

    def _enter(self, seed: int) -> list[Contestant]:
        """Build the operators' networks with the initial weights of a seed."""
        config, image = self._with(seed), self._dataset.image_shape
        return [Contestant(a.name, make_learner(config, a, image), activation=a) for a in self._activations]

    def _with(self, seed: int) -> Config:
        return msgspec.structs.replace(self._config, seed=seed)

    def _introduce(self, entered: Sequence[Contestant], note: str) -> None:
        ranks, seeds = ranks_text(self._world, self._config), self._seeds if self._compared else ()
        text = introduction(self._config, self._dataset, entered, ranks, seeds, gradient_lines(self._checked))
        self._console.say(text + (f"{note}\n" if note else ""))

    def _warm_up(self, entered: Sequence[Contestant]) -> None:
        """Compile before training."""
        data = self._dataset
        batches = Batches(data.train_images, data.train_labels, None, self._config.train.batch_size)
        what = COMPILING if self._config.engine == "compiled" else "Running a first step with {}"
        for contestant in entered:
            with self._console.busy(what.format(contestant.operator)):
                warm_up(contestant, batches[:1])

    def _train_all(self, first: list[Contestant], folder: RunFolder | None) -> None:
        def record(event: Event) -> None:
            if folder is not None:
                folder.record(event)
            self._console.record(event)

        if self._found is None:
            record(start_event(self._dataset, first))
            for checked in self._checked:
                record(checked)
        if self._workers is not None:
            self._train_side_by_side(record)
        else:
            for seed in self._seeds:
                entered = first
                if self._finished:
                    entered = self._enter(seed)
                    self._warm_up(entered)
                self._train(entered, seed, record, folder)
        if folder is not None:
            with self._console.busy("Timing each operator alone"):
                images = len(self._dataset.train_images)
                self._costs = measure_costs(self._config, self._activations, images, record, self._console.warn)

    def _train(self, entered: list[Contestant], seed: int, record: Record, folder: RunFolder | None) -> None:
        """Train every operator with one seed, in turns."""
        if self._compared:
            run_record, record = record, lambda event: run_record(with_seed(event, seed))
        self._begin_seed(entered, seed)
        steps = Steps(record)
        callbacks: list[Callback] = [Metrics(record), self._console]
        if self._world.size > 1:
            callbacks.insert(0, InStep(self._world))
        if folder is not None and not self._compared:
            callbacks.append(self._checkpoints(folder, entered))
        first_epoch = 0 if self._found is None else self._found.epoch
        turns = self._turns(entered, self._finished)
        with self._world.time_limit(self._config.dist.timeout):
            TrainingLoop(self._with(seed), self._dataset, turns, callbacks, first_epoch, steps).run()
            for contestant in entered:
                test_at_end(contestant, self._dataset, self._config, record)
        if self._compared:
            keep = seed == self._seeds[0]
            self._trained[seed] = {c.operator: trained(c, self._dataset, self._config, keep) for c in entered}
            self._console.end_seed(entered, self._dataset.tested_on)

    @staticmethod
    def _turns(entered: Sequence[Contestant], number: int) -> list[Contestant]:
        """Rotate the order of operators with the seed, because the first position may be faster."""
        turn = number % len(entered)
        return [*entered[turn:], *entered[:turn]]

    @property
    def _finished(self) -> int:
        """Return the number of seeds finished by all operators."""
        return len(self._finished_seeds())

    def _finished_seeds(self) -> list[int]:
        return [seed for seed in self._seeds if len(self._trained.get(seed, {})) == len(self._activations)]

    def _train_side_by_side(self, record: Record) -> None:
        """Train all operators with all seeds on the workers."""
        width = max(len(activation.name) for activation in self._activations)
        assert self._workers is not None
        with self._workers() as executor:
            jobs = self._jobs()
            self._console.say(f"Training {len(jobs)} networks in parallel")
            begun, ended = time.monotonic(), 0

            def check() -> None:
                seconds = time.monotonic() - begun
                self._console.waiting(f"  {ended} of {len(jobs)} networks trained after {seconds:.0f} s")

            def done(job: Job, found: Trained) -> None:
                nonlocal ended
                ended += 1
                seed = job.config.seed
                for event in found.events:
                    record(with_seed(event, seed))
                self._trained.setdefault(seed, {})[job.operator] = found
                accuracy = f"{self._dataset.tested_on} accuracy {found.epochs[-1].test_accuracy:.4f}"
                self._console.say(f"  {job.operator:{width}}  seed {seed}  {accuracy}")

            def lost(job: Job, error: BaseException, again: bool) -> None:
                seed = job.config.seed
                now = (
                    "trying again"
                    if again
                    else f"this was the second time, so seed {seed} is left out for all operators"
                )
                self._console.warn(
                    f"note: the training of {job.operator} with seed {seed} failed ({died(error)}); {now}"
                )

            try:
                run_all(executor, train_one, jobs, done, lost, check)
            finally:
                self._console.end()

    def _jobs(self) -> list[Job]:
        data = data_hash(self._dataset)
        return [
            Job(
                with_absolute_paths(self._with(seed)),
                activation.name,
                {one.name: os.path.abspath(one.home) for one in every_operator([activation]) if one.home},
                {one.name: self._sources[one.name] for one in every_operator([activation])},
                self._config.seed,
                data,
                seed == self._seeds[0],
            )
            for seed in self._seeds
            for activation in self._activations
        ]

    def _begin_seed(self, entered: Sequence[Contestant], seed: int) -> None:
        title = f"Seed {seed} ({self._finished + 1} of {len(self._seeds)})" if self._compared else ""
        settings, tested_on = self._config.train, self._dataset.tested_on
        self._console.start_training(
            [c.operator for c in entered], settings.epochs, settings.batch_size, title, tested_on
        )

    def _checkpoints(self, folder: RunFolder, entered: list[Contestant]) -> Checkpoints:
        data = data_hash(self._dataset)

        def make(epoch: int) -> Checkpoint:
            return capture(self._config, self._sources, data, entered, epoch, folder.metrics())

        return Checkpoints(folder.path, make)

    def _outcomes(self) -> Outcomes:
        """Return the results of every operator for the seeds that all operators finished."""
        return {a.name: [self._trained[seed][a.name] for seed in self._finished_seeds()] for a in self._activations}

    # The end

    @contextmanager
    def _resumable(self, folder: RunFolder) -> Iterator[None]:
        """Say how to resume a run that ends early."""
        try:
            yield
        except BaseException as error:
            resume = f"Resume with: {_resume_words(folder.path, self._activations)}"
            if not self._compared and isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt(resume) from None
            if not self._compared and not isinstance(error, OperatorError):
                with suppress(OSError):
                    self._console.warn(resume)
            raise

    def _end(self, entered: Sequence[Contestant], folder: RunFolder) -> None:
        text, data = self._outcome(entered, None)
        notes = self._keep(entered, folder, text, data)
        self._console.conclude(*self._outcome(entered, self._console.columns), str(folder.path))
        write = self._write_report if self._config.report else None
        report_run(folder.path, self._dataset, lambda: self._results(entered), self._console, write, self._activations)
        for note in notes:
            self._console.warn(note)
        folder.remove(CHECKPOINT)  # the last step: the run is finished

    def _outcome(self, entered: Sequence[Contestant], columns: int | None) -> tuple[str, dict[str, Any]]:
        """Return the outcome of the run: as text of this width, and as data."""
        if not self._compared:
            return summary(self._config, self._dataset, entered, columns), outcome(self._config, entered)
        found = self._comparison()
        sentences = verdicts(found)
        text = comparison(found, sentences, self._costs, len(self._seeds), columns)
        return text, {"event": "comparison", **msgspec.to_builtins(found), "verdicts": plain(sentences)}

    def _comparison(self) -> Comparison:
        return compare(self._outcomes(), self._finished_seeds(), self._costs, self._workers is None)

    def _keep(self, entered: Sequence[Contestant], folder: RunFolder, text: str, data: dict[str, Any]) -> list[str]:
        """Write the files of the run; return the final messages."""
        folder.save_summary(text)
        for operator, weights in self._weights(entered).items():
            folder.save_weights(operator, weights, self._sources)
        if self._compared:
            kept = {key: value for key, value in data.items() if key != "event"}
            folder.save_text(COMPARISON, json.dumps(kept, indent=2, allow_nan=False) + "\n")
            notes = []
        else:
            notes = self._save_model(entered[0], folder)
        folder.record(End())
        self._console.record(End())
        for home in filter(edited_since, _homes(self._activations)):
            notes.append(
                f"note: {home} was edited during the run, which used the earlier version. `predict` and "
                "`demo` will report the change"
            )
        return notes

    def _save_model(self, first: Contestant, folder: RunFolder) -> list[str]:
        """Keep the network for use, if its operator is one that a file can refer to."""
        image, weights = self._dataset.image_shape, first.learner.weights()
        try:
            folder.save_model(model_for_use(self._config, self._activations[0], image, weights))
        except OperatorError as error:
            return [f"note: the network was not saved for `opsmith predict`: {error}"]
        return []

    def _weights(self, entered: Sequence[Contestant]) -> dict[str, dict[str, np.ndarray]]:
        """The weights of the networks that were trained here, or with the first seed."""
        if self._workers is None:
            return {contestant.operator: contestant.learner.weights() for contestant in entered}
        return {operator: found.weights for operator, found in self._of_first_seed().items()}

    def _of_first_seed(self) -> dict[str, Trained]:
        """What was finished with the first seed of a comparison."""
        found = self._trained.get(self._seeds[0], {})
        return {a.name: found[a.name] for a in self._activations if a.name in found}

    def _results(self, entered: Sequence[Contestant]) -> list[Trained]:
        """The results of the networks of the first seed, for the report."""
        of_first = self._of_first_seed()
        if len(of_first) < len(entered) and self._workers is None:
            return [trained(contestant, self._dataset, self._config, keep=True) for contestant in entered]
        return list(of_first.values())

    def _result(self, entered: Sequence[Contestant], folder: RunFolder | None) -> Result:
        text, data = self._outcome(entered, None)
        of_seeds: Mapping[str, Sequence[Trained | Contestant]] = {c.operator: [c] for c in entered}
        if self._compared:
            of_seeds = self._outcomes()
        return Result(
            self._config,
            None if folder is None else folder.path,
            {name: [one.epochs for one in each] for name, each in of_seeds.items()},
            self._weights(entered),
            self._comparison() if self._compared and self._finished else None,
            text,
            data,
            {name: [one.tested.accuracy for one in each if one.tested] for name, each in of_seeds.items()},
            self._dataset.image_shape,
        )


def report_run(
    folder: Path,
    dataset: Dataset,
    results: Callable[[], Sequence[Trained]],
    console: Console,
    write: ReportWriter | None,
    activations: Sequence[Activation] = (),
) -> None:
    """Keep the networks' answers to the test images and what is known of the operators, and write the report.

    A run whose report cannot be written has not failed, so the reason is a note. Without a writer nothing is kept.
    """
    if write is None:
        return
    try:
        with console.busy("Writing the report"):
            with warnings_off():
                found = results()
                if scores := {one.operator: one.scores for one in found if one.scores is not None}:
                    keep(answers(dataset, scores), folder)
                profiles = [one.profile for one in found if one.profile is not None]
                if profiles := [*profiles, *of_layers(activations)]:
                    keep_profiles(profiles, folder)
            page = write(folder)
        console.say(f"The report is {page}")
    except Exception as error:
        console.warn(f"note: the report of this run is incomplete: {error}")


def _homes(activations: Sequence[Activation]) -> list[str]:
    """Return the user's files that define operators of a run."""
    return list(dict.fromkeys(one.home for one in every_operator(activations) if one.home))


def _resume_words(folder: Path, activations: Sequence[Activation]) -> str:
    """How to resume a run: a command, or a call where an operator has to be handed over."""
    unnamed = [activation for activation in every_operator(activations) if not activation.has_name]
    if not unnamed:
        return _resume_command(folder, activations)
    names, files = (", ".join(words(a.name) for a in unnamed) for words in (str, source_file))
    return f"opsmith.resume({str(folder)!r}, [{names}])  (define {names} again first; the source is in {files})"


def _resume_command(folder: Path, activations: Sequence[Activation]) -> str:
    """The command that resumes a run, as it can be typed here: with the same Python and number of ranks."""
    programs = Path(sys.executable).parent
    here = programs.relative_to(Path.cwd()) if programs.is_relative_to(Path.cwd()) else Path()
    launcher = here / "mpiexec"
    ranks = f"{launcher} -n {current().size} " if current().size > 1 else ""
    trusted = "".join(f" --custom-op {shlex.quote(home)}" for home in _homes(activations))
    return f"{ranks}{here / 'opsmith'} train --resume {shlex.quote(str(folder))}{trusted}"
