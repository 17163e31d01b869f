"""How a run ends, whichever way: what it keeps, and what it says of itself."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from app.custom.lookup import edited_since
from app.data import Dataset
from app.deployment.for_use import model_for_use
from app.errors import AppError, FileError, OperatorError
from app.ranks.current import current
from app.reporting.leaving import leave_report
from app.training.activation import Activation
from app.training.config import Config
from app.training.interruption import Interruption
from app.training.run_folder import RunFolder
from app.training.telling.console import Console
from app.training.telling.summary import outcome, summary
from app.training.watcher import Contestant


class Ending:
    """Keeps the summary, the weights and the network for use, and prints the summary."""

    def __init__(
        self,
        config: Config,
        dataset: Dataset,
        activations: Sequence[Activation],
        contestants: Sequence[Contestant],
        folder: RunFolder,
        console: Console,
        interruption: Interruption,
    ):
        self._config, self._dataset, self._activations = config, dataset, activations
        self._contestants, self._folder, self._console = contestants, folder, console
        self._interruption = interruption

    @contextlib.contextmanager
    def of(self) -> Iterator[None]:
        """What is done in the block is a run. If something ends it, that is raised, whatever goes wrong after it."""
        try:
            yield
        except BaseException as error:
            with contextlib.suppress(AppError, OSError):  # the disk that ended the run is still full
                self._end(can_go_on=not isinstance(error, OperatorError))
            raise
        self._end(can_go_on=False)

    def _end(self, can_go_on: bool) -> None:
        at_once = self._interruption.struck  # a second signal: what is kept now may be half changed, and takes time
        notes: list[str] = []
        try:
            if not at_once:
                notes = self._keep()
        except FileError:
            can_go_on = True  # as soon as there is room for what could not be written
            raise
        finally:
            text = summary(self._config, self._dataset, self._contestants, self._console.columns)
            if can_go_on:
                text += f"\nGo on with: {_command(self._folder.path, self._activations)}"
            told = outcome(self._config, self._contestants)
            self._console.conclude(text, told, str(self._folder.path))
        if not at_once:
            leave_report(self._folder.path, self._dataset, self._contestants, self._config, self._console)
        for note in notes:
            self._console.warn(note)

    def _keep(self) -> list[str]:
        """Write what the run leaves behind; gives what there is to say of it at the very end."""
        self._folder.save_summary(summary(self._config, self._dataset, self._contestants))
        for contestant in self._contestants:
            self._folder.save_weights(contestant.operator, contestant.learner.weights())
        notes = self._save_model()
        for home in dict.fromkeys(a.home for a in self._activations if a.home and edited_since(a.home)):
            notes.append(
                f"note: {home} was edited during the run. The run, and what it kept, are of the file as it was when "
                "the run began; `predict` and --resume will say that it has changed"
            )
        return notes

    def _save_model(self) -> list[str]:
        """Keep the network for use, if its operator is one that a file can refer to."""
        pixels, weights = self._dataset.train_images.shape[1], self._contestants[0].learner.weights()
        try:
            self._folder.save_model(model_for_use(self._config, self._activations[0], pixels, weights))
        except OperatorError as error:
            return [f"note: no model for `python -m app predict` was kept: {error}"]
        return []


def _command(folder: Path, activations: Sequence[Activation]) -> str:
    """What goes on with a run, as it can be typed here: with the Python, and the number of ranks, that it had."""
    python = Path(sys.executable)
    here = str(python.relative_to(Path.cwd())) if python.is_relative_to(Path.cwd()) else "python"
    launcher = Path(here).with_name("mpiexec") if here != "python" else "mpiexec"
    ranks = f"{launcher} -n {current().size} " if current().size > 1 else ""
    homes = dict.fromkeys(activation.home for activation in activations if activation.home)
    trusted = "".join(f" --custom-op {shlex.quote(home)}" for home in homes)
    return f"{ranks}{here} train.py --resume {shlex.quote(str(folder))}{trusted}"
