"""A run: N operators over M seeds. `train.py` is the case of one seed, `compare` that of several.

All operators start from the same weights and see the same batches, so that only the operators differ. However a run
ends, it keeps and says what it has.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from app.custom.lookup import edited_since
from app.data import Batches, Dataset, load
from app.errors import AppError, FileError, OperatorError
from app.ranks.current import current
from app.run.answers import answers, keep
from app.run.callbacks import Callback, Contestant
from app.run.checkpoints import Checkpoint, Checkpoints, RunState
from app.run.config import Config
from app.run.console import COMPILING, Console
from app.run.costs import COMPARED_SECONDS, COMPARED_SIZES, SECONDS, SIZES, measure_costs
from app.run.events import Cost, Epoch, Event, Record, with_seed
from app.run.finite import steps_for
from app.run.folder import COMPARISON, RunFolder, write_sums
from app.run.interruption import Interruption
from app.run.learners import make_learner
from app.run.loop import Start, TrainingLoop
from app.run.metrics import Metrics, start_event
from app.run.network import Activation, model_for_use
from app.run.ranks import InStep, begin_alike, ranks_of, ranks_told
from app.run.resume import check_sources, sources_of
from app.run.statistics import Difference, Outcome, as_data, differences
from app.run.steps import warm_up, warnings_off
from app.run.summary import comparison, introduction, outcome, plain, summary, verdicts

ReportWriter = Callable[[Path], Path]
"""Makes the report of what lies in a run's folder; gives the page."""


@dataclass
class Result:
    """What a run gives its caller."""

    config: Config
    folder: Path | None
    """Where it is kept; None at all ranks but the first."""
    epochs: dict[str, list[list[Epoch]]]
    """For each operator, and each seed that was finished, its epochs."""
    weights: dict[str, dict[str, np.ndarray]]
    """For each operator the weights of its network, by their paths; those of the first seed."""
    differences: list[Difference] = field(default_factory=list)
    """How the operators differ from the first one. Only a comparison tests this."""


class Run:
    """What is trained on what, at one rank. Nothing is trained, and no folder is made, before `go`."""

    def __init__(
        self,
        config: Config,
        activations: Sequence[Activation],
        console: Console,
        *,
        seeds: Sequence[int] | None = None,
        found: Checkpoint | None = None,
        write_report: ReportWriter | None = None,
    ):
        self._config, self._activations, self._console = config, activations, console
        self._compared = seeds is not None
        """Whether differences are tested; without, it is one run by the configuration's own seed."""
        self._seeds = [config.seed] if seeds is None else seeds
        self._found, self._write_report = found, write_report
        self._sources = sources_of(activations)
        if found is not None:
            check_sources(found.operators, self._sources)
        self._world = ranks_of(config)
        self._dataset = load(config.data.source, config.data.sources, config.data.folder)
        begin_alike(self._world, config, self._dataset, activations, found)
        self._outcomes = [Outcome(activation.name) for activation in activations]
        self._finished = 0
        self._costs: list[Cost] = []
        self._scores: dict[str, np.ndarray] = {}
        """What the networks of the first seed answered to the test images."""

    def go(self, open_folder: Callable[[], RunFolder], note: str = "") -> Result:
        """Train from the beginning, or from the checkpoint. Only rank 0 opens and writes the folder."""
        with Interruption() as self._interruption:
            first = self._enter(self._seeds[0])
            self._introduce(first, note)
            self._warm_up(first)
            state = RunState(self._config, self._dataset, self._sources, first)
            if self._found is not None:
                state.restore(self._found)
            with ExitStack() as kept:
                folder = kept.enter_context(open_folder()) if self._world.rank == 0 else None
                if folder is not None:
                    kept.enter_context(self._ending(first, folder))
                self._train_all(first, folder, state)
        return self._result(first, folder)

    def _enter(self, seed: int) -> list[Contestant]:
        """The operators in their networks, with the first weights that a seed gives."""
        config, image = self._with(seed), self._dataset.image_shape
        return [Contestant(a.name, make_learner(config, a, image), activation=a) for a in self._activations]

    def _with(self, seed: int) -> Config:
        return msgspec.structs.replace(self._config, seed=seed)

    def _introduce(self, entered: Sequence[Contestant], note: str) -> None:
        ranks, seeds = ranks_told(self._world, self._config), self._seeds if self._compared else ()
        told = introduction(self._config, self._dataset, entered, ranks, seeds)
        self._console.say(told + (f"{note}\n" if note else ""))

    def _warm_up(self, entered: Sequence[Contestant]) -> None:
        """Let what is compiled at first use be compiled."""
        data = self._dataset
        batches = Batches(data.train_images, data.train_labels, None, self._config.train.batch_size)
        what = COMPILING if self._config.engine == "compiled" else "Trying"
        for contestant in entered:
            self._interruption.check()
            with self._console.busy(f"{what} {contestant.operator}"):
                warm_up(contestant, batches[:1])
        self._interruption.check()

    def _train_all(self, first: list[Contestant], folder: RunFolder | None, state: RunState) -> None:
        def record(event: Event) -> None:
            if folder is not None:
                folder.record(event)
            self._console.record(event)

        if self._found is None:
            record(start_event(self._dataset, first))
        for seed in self._seeds:
            entered = first
            if self._finished:
                entered = self._enter(seed)
                self._warm_up(entered)
            self._train(entered, seed, record, folder, state)
        if folder is not None:
            sizes, seconds = (COMPARED_SIZES, COMPARED_SECONDS) if self._compared else (SIZES, SECONDS)
            with self._console.busy("Timing the operators by themselves"):
                warn, check = self._console.warn, self._interruption.check
                self._costs = measure_costs(self._config, self._activations, record, warn, check, sizes, seconds)

    def _train(
        self, entered: list[Contestant], seed: int, record: Record, folder: RunFolder | None, state: RunState
    ) -> None:
        """Train every operator with one seed."""
        if self._compared:
            run_record, record = record, lambda event: run_record(with_seed(event, seed))
        self._begin_seed(entered, seed)
        steps = steps_for(self._config.train.on_nonfinite, record, self._console.warn)
        callbacks: list[Callback] = [Metrics(record), self._console, steps]
        if self._world.size > 1:
            callbacks.insert(0, InStep(self._world, self._config, self._interruption))
        if folder is not None and not self._compared:
            callbacks.append(self._checkpoints(folder, state))
        callbacks.append(self._interruption)
        # Each seed begins with another operator: the first one may have it easier.
        turn = self._finished % len(entered)
        turns = [*entered[turn:], *entered[:turn]]
        start = Start() if self._found is None else self._found.start
        TrainingLoop(self._with(seed), self._dataset, turns, callbacks, start, steps).run()
        for result, contestant in zip(self._outcomes, entered, strict=True):
            result.epochs.append(contestant.epochs)
            if self._compared:
                self._note(result, contestant)
        self._finished += 1
        if self._compared:
            self._console.end_seed(entered)

    def _begin_seed(self, entered: Sequence[Contestant], seed: int) -> None:
        title = f"Seed {seed} ({self._finished + 1} of {len(self._seeds)})" if self._compared else ""
        settings = self._config.train
        self._console.start_training([c.operator for c in entered], settings.epochs, settings.batch_size, title)

    def _checkpoints(self, folder: RunFolder, state: RunState) -> Checkpoints:
        def make(start: Start) -> Checkpoint:
            return state.checkpoint(start, folder.metrics())

        every = self._config.train.checkpoint_every
        return Checkpoints(folder.path, make, len(self._activations), every, lambda: self._interruption.noted)

    def _note(self, result: Outcome, contestant: Contestant) -> None:
        """Keep what a trained network is worth, for the tests between operators."""
        scores = self._scores_of(contestant)
        result.right.append(scores.argmax(axis=1) == self._dataset.test_labels)
        result.add_weights(contestant.learner.weights())
        result.how = contestant.learner.how()
        if not self._finished:
            self._scores[contestant.operator] = scores

    def _scores_of(self, contestant: Contestant) -> np.ndarray:
        data = self._dataset
        tests = Batches(data.test_images, data.test_labels, None, self._config.train.eval_batch_size)
        with warnings_off():
            return contestant.learner.scores(tests)

    # The end

    @contextmanager
    def _ending(self, entered: Sequence[Contestant], folder: RunFolder) -> Iterator[None]:
        """End the run that is made in the block. If an exception ends it, that is raised whatever goes wrong later."""
        try:
            yield
        except BaseException as error:
            with suppress(AppError, OSError):  # the disk that ended the run is still full
                self._end(entered, folder, can_go_on=not self._compared and not isinstance(error, OperatorError))
            raise
        self._end(entered, folder, can_go_on=False)

    def _end(self, entered: Sequence[Contestant], folder: RunFolder, can_go_on: bool) -> None:
        at_once = self._interruption.struck  # a second signal: what is kept now may be half changed, and takes time
        text, data = self._told(entered, None)
        notes: list[str] = []
        try:
            if not at_once:
                notes = self._keep(entered, folder, text, data)
        except FileError:
            can_go_on = not self._compared  # as soon as there is room for what could not be written
            raise
        finally:
            text, data = self._told(entered, self._console.columns)
            if can_go_on:
                text += f"\nGo on with: {_resume_command(folder.path, self._activations)}"
            self._console.conclude(text, data, str(folder.path))
        if not at_once:
            report_run(folder.path, self._dataset, lambda: self._all_scores(entered), self._console, self._writer())
        for note in notes:
            self._console.warn(note)

    def _told(self, entered: Sequence[Contestant], columns: int | None) -> tuple[str, dict[str, Any]]:
        """What is said of the run at its end: for people, who have so many columns, and as data."""
        if not self._compared:
            return summary(self._config, self._dataset, entered, columns), outcome(self._config, entered)
        for result in self._outcomes:  # a seed that was not finished with all operators counts for none
            result.shorten(self._finished)
        found = self._differences()
        told = verdicts(found, self._finished)
        text = comparison(self._outcomes, found, told, self._costs, len(self._seeds), columns)
        data = as_data(self._outcomes, found, self._seeds[: self._finished], self._costs)
        return text, {"event": "comparison", **data, "verdicts": plain(told)}

    def _differences(self) -> list[Difference]:
        return differences(self._outcomes) if self._compared and self._finished else []

    def _keep(self, entered: Sequence[Contestant], folder: RunFolder, text: str, data: dict[str, Any]) -> list[str]:
        """Write what the run leaves behind; gives what there is to say about it at the very end."""
        folder.save_summary(text)
        for contestant in entered:
            folder.save_weights(contestant.operator, contestant.learner.weights())
        if self._compared:
            kept = {key: value for key, value in data.items() if key != "event"}
            folder.save_text(COMPARISON, json.dumps(kept, indent=2, allow_nan=False) + "\n")
            notes = []
        else:
            notes = self._save_model(entered[0], folder)
        for home in dict.fromkeys(a.home for a in self._activations if a.home and edited_since(a.home)):
            notes.append(
                f"note: {home} was edited during the run. The run used the file as it was when the run began; "
                "`predict` and --resume will say that it has changed"
            )
        return notes

    def _save_model(self, first: Contestant, folder: RunFolder) -> list[str]:
        """Keep the network for use, if its operator is one that a file can refer to."""
        image, weights = self._dataset.image_shape, first.learner.weights()
        try:
            folder.save_model(model_for_use(self._config, self._activations[0], image, weights))
        except OperatorError as error:
            return [f"note: no model for `python -m app predict` was kept: {error}"]
        return []

    def _all_scores(self, entered: Sequence[Contestant]) -> dict[str, np.ndarray]:
        """What the networks of the first seed answer to the test images."""
        return self._scores or {contestant.operator: self._scores_of(contestant) for contestant in entered}

    def _writer(self) -> ReportWriter | None:
        return self._write_report if self._config.report else None

    def _result(self, entered: Sequence[Contestant], folder: RunFolder | None) -> Result:
        return Result(
            self._config,
            None if folder is None else folder.path,
            {result.operator: result.epochs for result in self._outcomes},
            {contestant.operator: contestant.learner.weights() for contestant in entered},
            self._differences(),
        )


def report_run(
    folder: Path,
    dataset: Dataset,
    scores: Callable[[], Mapping[str, np.ndarray]],
    console: Console,
    write: ReportWriter | None,
) -> None:
    """Keep the networks' answers to the test images and the hashes of all files, and write the report.

    A run whose report cannot be written has not failed, so the reason is a note. Without a writer only hashes are kept.
    """
    if write is None:
        write_sums(folder)
        return
    try:
        with console.busy("Writing the report"):
            try:
                with warnings_off():
                    keep(answers(dataset, scores()), folder)
            finally:
                write_sums(folder)
            page = write(folder)
        console.say(f"The report is {page}")
    except Exception as error:
        console.warn(f"note: there is no whole report of this run: {error}")


def _resume_command(folder: Path, activations: Sequence[Activation]) -> str:
    """The command that resumes a run, as it can be typed here: with the same Python and number of ranks."""
    python = Path(sys.executable)
    here = str(python.relative_to(Path.cwd())) if python.is_relative_to(Path.cwd()) else "python"
    launcher = Path(here).with_name("mpiexec") if here != "python" else "mpiexec"
    ranks = f"{launcher} -n {current().size} " if current().size > 1 else ""
    homes = dict.fromkeys(activation.home for activation in activations if activation.home)
    trusted = "".join(f" --custom-op {shlex.quote(home)}" for home in homes)
    return f"{ranks}{here} train.py --resume {shlex.quote(str(folder))}{trusted}"
