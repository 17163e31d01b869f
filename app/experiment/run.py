"""One run, from its beginning or from a checkpoint: data, networks, the comparison, and who watches it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

from app.data import Batches, load
from app.experiment.ending import Ending
from app.ranks.current import place
from app.training.activation import find_activations
from app.training.checkpoints.checkpoint import Checkpoint
from app.training.checkpoints.keeper import Checkpoints
from app.training.checkpoints.resuming import interrupted_run, where_it_goes_on
from app.training.checkpoints.run_state import RunState
from app.training.checkpoints.sources import check_sources, sources_of
from app.training.comparison import Comparison, Start
from app.training.config import Config, operators_of
from app.training.costs import measure_costs
from app.training.interruption import Interruption
from app.training.learners import make_learner
from app.training.metrics import Metrics, start_event
from app.training.run_folder import RunFolder
from app.training.stepping.finite import steps_for
from app.training.stepping.steps import warm_up
from app.training.sums import unseal
from app.training.telling.console import Console
from app.training.telling.summary import introduction
from app.training.together import InStep, begin_alike, ranks_of, ranks_told
from app.training.trusted import NOBODY, Trust
from app.training.watcher import Contestant, Watcher


def train(config: Config, name: str, console: Console | None = None, trust: Trust = NOBODY) -> None:
    """Train and compare. However a run ends, it says and keeps what it had."""
    _Run(config, console or Console(), trust).go(lambda: RunFolder.new(config, name))


def resume(path: Path, overrides: Sequence[str] = (), console: Console | None = None, trust: Trust = NOBODY) -> None:
    """Go on with a run that was interrupted, as if it had not been."""
    console = console or Console()
    with RunFolder.again(path) if place()[0] == 0 else nullcontext() as folder:
        config, found = interrupted_run(path, overrides, console.warn)

        def reopened() -> RunFolder:
            assert folder is not None, "only rank 0 writes"
            unseal(path)
            folder.go_on(config, b"" if found is None else found.metrics.tobytes())
            return folder

        start = None if found is None else found.start
        _Run(config, console, trust, found).go(reopened, where_it_goes_on(config, start))


class _Run:
    """What is trained on what, at one rank; nothing is yet when it is made."""

    def __init__(self, config: Config, console: Console, trust: Trust, found: Checkpoint | None = None):
        self._config, self._console, self._found = config, console, found
        self._world = ranks_of(config)
        self._activations = find_activations(operators_of(config), trust)  # before data is fetched in vain
        self._sources = sources_of(self._activations)
        if found is not None:
            check_sources(found.operators, self._sources)
        self._dataset = load(config.data.source, config.data.sources, config.data.folder)
        begin_alike(self._world, config, self._dataset, self._activations, found)

    def go(self, open_folder: Callable[[], RunFolder], note: str = "") -> None:
        """Train from the beginning, or from the checkpoint; rank 0 alone keeps what comes of it in the folder."""
        config, found = self._config, self._found
        with Interruption() as interruption:
            entered = self._enter(interruption, note)
            state = RunState(config, self._dataset, self._sources, entered)
            if found is not None:
                state.restore(found)
            with ExitStack() as kept:
                folder = kept.enter_context(open_folder()) if self._world.rank == 0 else None
                if folder is not None:
                    subjects = (config, self._dataset, self._activations, entered)
                    kept.enter_context(Ending(*subjects, folder, self._console, interruption).of())

                def record(event: dict[str, Any]) -> None:
                    if folder is not None:
                        folder.record(event)
                    self._console.record(event)

                self._compare(entered, folder, state, record, interruption)
                if folder is not None:
                    measure_costs(config, self._activations, record, self._console.warn, interruption.check)

    def _enter(self, interruption: Interruption, note: str) -> list[Contestant]:
        """Make the networks, say what will be trained, and let what is compiled at first use be compiled."""
        config, dataset = self._config, self._dataset
        pixels = dataset.train_images.shape[1]
        entered = [Contestant(a.name, make_learner(config, a, pixels), activation=a) for a in self._activations]
        told = introduction(config, dataset, entered, ranks_told(self._world, config)) + (f"{note}\n" if note else "")
        self._console.introduce(told, operators_of(config), config.train.epochs, config.train.batch_size)
        batches = Batches(dataset.train_images, dataset.train_labels, None, config.train.batch_size)
        for contestant in entered:
            interruption.check()
            warm_up(contestant, batches[:1])
        interruption.check()
        return entered

    def _compare(
        self,
        entered: Sequence[Contestant],
        folder: RunFolder | None,
        state: RunState,
        record: Callable[[dict[str, Any]], None],
        interruption: Interruption,
    ) -> None:
        config, found = self._config, self._found
        if found is None:
            record(start_event(self._dataset, entered))
        steps = steps_for(config.train.on_nonfinite, record, self._console.warn)
        watchers: list[Watcher] = [Metrics(record), self._console, steps]
        if self._world.size > 1:
            watchers.insert(0, InStep(self._world, config, interruption))
        if folder is not None:
            every, stopping = config.train.checkpoint_every, lambda: interruption.noted
            watchers.append(
                Checkpoints(
                    folder.path, lambda start: state.checkpoint(start, folder.metrics()), len(entered), every, stopping
                )
            )
        watchers.append(interruption)
        start = Start() if found is None else found.start
        Comparison(config, self._dataset, entered, watchers, start, steps).run()
