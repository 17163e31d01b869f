"""Training as long as its numbers are finite: what `train.on_nonfinite` says of a step after which they are not.

A step is bad if its loss, or anything that it leaves in the state, is NaN or infinite. Whole pieces are trained as
fast as the engine can, and looked at when they have ended; one with a bad step in it is taken back, and its steps are
taken one by one. So it costs a copy of the state for each piece, and the same steps are bad with every engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from app.data import Batches
from app.engine.watch import first_nonfinite, is_finite
from app.errors import AppError, OperatorError
from app.ranks.current import current
from app.training.learners import PerIteration
from app.training.learners.state import State
from app.training.stepping.blame import CAME_ONCE, blame
from app.training.stepping.steps import Steps, iteration, warnings_off
from app.training.watcher import Epoch, Place

_ADVICE = "\nThe weights kept are those from before it. train.on_nonfinite=skip leaves such a step out, and goes on."


def steps_for(on_nonfinite: str, record: Callable[[dict[str, Any]], None], say: Callable[[str], None]) -> Steps:
    """What takes steps as `train.on_nonfinite` says."""
    return Steps() if on_nonfinite == "ignore" else FiniteSteps(on_nonfinite == "skip", record, say)


class FiniteSteps(Steps):
    """Takes the steps of a piece, and stops at the first bad one, or with `skip` leaves all bad ones out."""

    def __init__(self, skip: bool, record: Callable[[dict[str, Any]], None], say: Callable[[str], None]):
        self._skip, self._record, self._say = skip, record, say
        self._skipped = 0

    def train(self, place: Place, batches: Batches) -> PerIteration:
        before = place.contestant.learner.state()
        with warnings_off():  # what NumPy would warn of is told below, and better
            done = self.attempt(place, batches, before)
        if _all_finite(done, place.contestant.learner.state()):
            return done
        return self._one_by_one(place, batches, before)

    def _one_by_one(self, place: Place, batches: Batches, state: State) -> PerIteration:
        """The same steps again, each looked at; a bad one leaves the state as it was before it."""
        learner = place.contestant.learner
        rows, bad = [], False
        learner.restore(state)
        for index in range(len(batches)):
            batch, at = batches[index : index + 1], iteration(place, index)
            with warnings_off():
                (loss,), (accuracy,) = done = self.attempt(place, batch, state)
            rows.append((loss, accuracy))
            after = learner.state()
            if _all_finite(done, after):
                state = after
                continue
            bad = True
            learner.restore(state)
            self._bad_step(place, place.done + index, float(loss), at, batch)
        if not bad:
            where = f"numbers were not finite between iteration {place.done} and {iteration(place, len(batches) - 1)}"
            self._happened(place, place.done, "again", where, CAME_ONCE)
        losses, accuracies = np.array(rows, np.float32).T
        return losses, accuracies

    def _bad_step(self, place: Place, number: int, loss: float, at: str, batch: Batches) -> None:
        told = not (self._skip and self._skipped)  # of many that are left out, the first is looked into
        what = self._blame(place, batch, training=True) if told else ""
        self._happened(place, number, "skip", f"{_became(loss)} in {at}", what)
        self._skipped += 1

    def _happened(self, place: Place, number: int, did: str, where: str, what: str) -> None:
        """Write down what happened, and end with it, or say it if it was looked into."""
        event = {"event": "nonfinite", "operator": place.contestant.operator, "epoch": place.epoch}
        self._record({**event, "iteration": number, "did": did if self._skip else "stop", "where": where, "what": what})
        told = f"{place.contestant.operator}: {where}.\n{what}"
        if not self._skip:
            raise OperatorError(told + _ADVICE)
        if what:
            self._say(
                f"{told}\nThe update is left out, and so are those of other such steps." if did == "skip" else told
            )

    def _blame(self, place: Place, batch: Batches, training: bool) -> str:
        """The step once more, operator by operator; the learner stands before it, and does so afterwards."""
        learner = place.contestant.learner
        before = learner.state()
        try:
            with warnings_off():
                looks = learner.looks(batch, training)
                # before the update changes what it got
                told = blame(first_nonfinite(looks), place.contestant.operator, place.contestant.activation)
                for _ in looks:  # to the end, where other ranks may wait for this one
                    pass
                return told
        except AppError as error:
            return f"It cannot be taken again operator by operator: {error}"
        finally:
            learner.restore(before)

    def measure(self, place: Place, tests: Batches) -> PerIteration:
        with warnings_off():
            losses, accuracies = super().measure(place, tests)
        if not self._skip and not is_finite(losses):
            index = int(np.argmin(np.isfinite(losses)))
            what = self._blame(place, tests[index : index + 1], training=False)
            where = f"{_became(float(losses[index]))} in batch {index} of the test images"
            self._happened(place, place.done, "stop", f"{where}, after epoch {place.epoch + 1}", what)
        return losses, accuracies

    # As a watcher, of epochs

    def begin(self, place: Place) -> None:
        self._skipped = 0

    def epoch(self, place: Place, result: Epoch) -> None:
        if self._skipped:
            self._say(
                f"{place.contestant.operator}: {self._skipped:,} of {place.iterations:,} updates of epoch "
                f"{place.epoch + 1} were left out, as numbers were not finite"
            )


def _all_finite(done: PerIteration, state: State) -> bool:
    """Whether all numbers are finite, at every rank."""
    finite = is_finite(done[0]) and all(map(is_finite, state.values()))
    return all(current().gather(finite))


def _became(loss: float) -> str:
    return "the weights became nan or infinite" if np.isfinite(loss) else f"the loss became {loss}"
