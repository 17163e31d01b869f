"""Handling of steps that produce NaN or inf: stop or skip, and find the operator that caused it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from app.checking.before_training import check_gradient
from app.data import Batches
from app.engine.watch import OperatorRun, first_nonfinite, is_finite
from app.errors import AppError, OperatorError
from app.ranks.current import current
from app.run.callbacks import Position
from app.run.events import Epoch, Nonfinite, Record
from app.run.learners import PerIteration
from app.run.learners.learner import State
from app.run.network import Activation
from app.run.steps import Steps, iteration, warnings_off

_ADVICE = "\nThe weights kept are those from before it. train.on_nonfinite=skip leaves such a step out, and goes on."


def steps_for(on_nonfinite: str, record: Record, say: Callable[[str], None]) -> Steps:
    """Return the class of steps for the setting `train.on_nonfinite`."""
    return Steps() if on_nonfinite == "ignore" else FiniteSteps(on_nonfinite == "skip", record, say)


class FiniteSteps(Steps):
    """Runs training steps. It stops at the first non-finite step, or with `skip` undoes every non-finite step."""

    def __init__(self, skip: bool, record: Record, say: Callable[[str], None]):
        self._skip, self._record, self._say = skip, record, say
        self._skipped = 0

    def train(self, position: Position, batches: Batches) -> PerIteration:
        before = position.contestant.learner.state()
        with warnings_off():  # replaces NumPy's warnings by the message below
            done = self.attempt(position, batches, before)
        if _all_finite(done, position.contestant.learner.state()):
            return done
        return self._one_by_one(position, batches, before)

    def _one_by_one(self, position: Position, batches: Batches, state: State) -> PerIteration:
        """Replay the steps one by one with a check after each; a non-finite step is undone."""
        learner = position.contestant.learner
        rows, bad = [], False
        learner.restore(state)
        for index in range(len(batches)):
            batch, at = batches[index : index + 1], iteration(position, index)
            with warnings_off():
                (loss,), (accuracy,) = done = self.attempt(position, batch, state)
            rows.append((loss, accuracy))
            after = learner.state()
            if _all_finite(done, after):
                state = after
                continue
            bad = True
            learner.restore(state)
            self._bad_step(position, position.done + index, float(loss), at, batch)
        if not bad:
            where = (
                f"numbers were not finite between iteration {position.done} and {iteration(position, len(batches) - 1)}"
            )
            self._happened(position, position.done, "again", where, CAME_ONCE)
        losses, accuracies = np.array(rows, np.float32).T
        return losses, accuracies

    def _bad_step(self, position: Position, number: int, loss: float, at: str, batch: Batches) -> None:
        told = not (self._skip and self._skipped)  # only the first skipped step is examined
        what = self._blame(position, batch, training=True) if told else ""
        self._happened(position, number, "skip", f"{_became(loss)} in {at}", what)
        self._skipped += 1

    def _happened(self, position: Position, number: int, did: str, where: str, what: str) -> None:
        """Record the event, and raise an error or print a warning."""
        operator, done = position.contestant.operator, did if self._skip else "stop"
        self._record(Nonfinite(operator, position.epoch, number, done, where, what))
        told = f"{position.contestant.operator}: {where}.\n{what}"
        if not self._skip:
            raise OperatorError(told + _ADVICE)
        if what:
            self._say(
                f"{told}\nThe update is left out, and so are those of other such steps." if did == "skip" else told
            )

    def _blame(self, position: Position, batch: Batches, training: bool) -> str:
        """Replay the step operator by operator. The learner is in the state before the step, and is restored to it."""
        learner = position.contestant.learner
        before = learner.state()
        try:
            with warnings_off():
                looks = learner.looks(batch, training)
                # before the update changes its inputs
                told = blame(first_nonfinite(looks), position.contestant.operator, position.contestant.activation)
                for _ in looks:  # run to the end, because other ranks may wait for this one
                    pass
                return told
        except AppError as error:
            return f"It cannot be taken again operator by operator: {error}"
        finally:
            learner.restore(before)

    def measure(self, position: Position, tests: Batches) -> PerIteration:
        with warnings_off():
            losses, accuracies = super().measure(position, tests)
        if not self._skip and not is_finite(losses):
            index = int(np.argmin(np.isfinite(losses)))
            what = self._blame(position, tests[index : index + 1], training=False)
            where = f"{_became(float(losses[index]))} in batch {index} of the images that it is tested on"
            self._happened(position, position.done, "stop", f"{where}, after epoch {position.epoch + 1}", what)
        return losses, accuracies

    # Callback for epochs

    def begin(self, position: Position) -> None:
        self._skipped = 0

    def epoch(self, position: Position, result: Epoch) -> None:
        if self._skipped:
            self._say(
                f"{position.contestant.operator}: {self._skipped:,} of {position.iterations:,} updates of epoch "
                f"{position.epoch + 1} were left out, as numbers were not finite"
            )


def _all_finite(done: PerIteration, state: State) -> bool:
    """Return whether all values are finite on every rank."""
    finite = is_finite(done[0]) and all(map(is_finite, state.values()))
    return all(current().gather(finite))


def _became(loss: float) -> str:
    return "the weights became nan or infinite" if np.isfinite(loss) else f"the loss became {loss}"


CAME_ONCE = "Taken again, from the same weights, they were finite: an operator remembers something."
"""The message if replaying the steps gave finite values."""
_LARGE = 1e12
"""Values above this are close to overflowing float32."""


def blame(look: OperatorRun | None, operator: str, activation: Activation | None = None) -> str:
    """Return the inputs and outputs of the first operator that produced NaN or inf; `operator` is the network's."""
    if look is None:
        return CAME_ONCE
    lines = [f"Replaying the step, {look.operator} is the first operator that turns finite inputs into NaN or inf:"]
    named = [("got", pair) for pair in look.inputs] + [("made", pair) for pair in look.outputs]
    named = [(did, (name, array)) for did, (name, array) in named if array.dtype.kind in "biuf"]
    width = max(len(name) for _, (name, _) in named)
    lines += [f"  {did:4}  {name:{width}}  {statistics(array)}" for did, (name, array) in named]
    if any(_largest(array) > _LARGE for _, array in look.inputs):
        checked = check_gradient(activation.operator, operator, activation.settings) if activation is not None else None
        wrong = f"{operator}: {checked.words}." if checked is not None and checked.wrong else ""
        lines.append(wrong or "Numbers had grown that large before: is train.learning_rate too large?")
    return "\n".join(lines)


def statistics(array: np.ndarray) -> str:
    """Describe the type, the shape and the range of an array."""
    about = f"{array.dtype.name}{list(array.shape)}"
    if not array.size:
        return about
    finite = array[np.isfinite(array)].astype(np.float64)
    about += f"  min {finite.min():.4g}, max {finite.max():.4g}, mean {finite.mean():.4g}" if finite.size else ""
    if finite.size == array.size:
        return f"{about}, all finite"
    kinds = {"nan": int(np.isnan(array).sum()), "infinite": int(np.isinf(array).sum())}
    found = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number)
    return f"{about}; not finite: {array.size - finite.size:,} of {array.size:,} ({found})"


def _largest(array: np.ndarray) -> float:
    return float(np.max(np.abs(array.astype(np.float64)), initial=0.0)) if array.dtype.kind == "f" else 0.0
