"""What a comparison says while it goes on: a line for each seed and operator; on a terminal, live ones besides."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from app.training.config import TrainConfig
from app.training.telling.console import Console
from app.training.watcher import Contestant, Epoch, Place


class SeedConsole(Console):
    """Leaves out what a single run says of each epoch: there are many of them."""

    def begin_seed(self, seed: int, place: int, of: int, operators: Sequence[str], settings: TrainConfig) -> None:
        """The networks begin again, with another seed."""
        self.introduce(f"Seed {seed} ({place + 1} of {of})", operators, settings.epochs, settings.batch_size)

    def end_seed(self, entered: Sequence[Contestant]) -> None:
        """All of them are trained."""
        width = max(len(contestant.operator) for contestant in entered)
        for contestant in entered:
            seconds = statistics.median(epoch.seconds for epoch in contestant.epochs)
            accuracy = f"test accuracy {contestant.epochs[-1].accuracy:.4f}"
            self.say(f"  {contestant.operator:{width}}  {accuracy}  {seconds:.3f} s per epoch")

    def report(self, place: Place, loss: float, accuracy: float) -> None:
        pass

    def epoch(self, place: Place, result: Epoch) -> None:
        pass
