"""Training steps: errors are located in an iteration and an operator, and steps that produce NaN or inf are found."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import numpy as np

from app.custom.read_only import inputs_watched
from app.data import Batches
from app.engine.watch import first_nonfinite, is_finite
from app.errors import AppError, OperatorError
from app.ranks.current import current
from app.run.callbacks import Callback, Contestant, Position
from app.run.events import Epoch, Nonfinite, Record
from app.run.finite import CAME_ONCE, blame
from app.run.learners import Learner, PerIteration
from app.run.learners.learner import State

_ADVICE = "\ntrain.on_nonfinite=skip skips such steps and continues."


class Steps(Callback):
    """Takes training steps. `on_nonfinite` says what a step does whose loss or weights are NaN or infinite: end the
    run, be undone, or nothing."""

    def __init__(
        self,
        on_nonfinite: Literal["stop", "skip", "ignore"] = "ignore",
        record: Record = lambda event: None,
        say: Callable[[str], None] = lambda words: None,
    ):
        self._ignore, self._skip = on_nonfinite == "ignore", on_nonfinite == "skip"
        self._record, self._say = record, say
        self._skipped = 0
        """The updates skipped in this epoch."""

    def train(self, position: Position, batches: Batches) -> PerIteration:
        """Take a step for each batch; return the loss and the accuracy before each step. The steps alone are timed,
        without the search for NaN and infinity."""
        learner = position.contestant.learner
        before = learner.state()
        try:
            with self._warnings(), current().time_limit():
                start = time.perf_counter()
                done = learner.train(batches)
                position.seconds += time.perf_counter() - start
        except Exception as error:
            known = _known(error, position.contestant)
            if current().size > 1:  # a step cannot be replayed without the other ranks
                raise known  # noqa: B904 - which may be the same
            self._one_by_one(position, batches, before)
            learner.restore(before)
            again = "Replaying the steps raised no error, so an operator keeps state between calls."
            raise _with(known, f"This happened {_between(position, batches)}. {again}") from error
        if self._is_fine(done, learner.state()):
            return done
        done, bad = self._one_by_one(position, batches, before)
        if not bad:
            where = f"values were not finite {_between(position, batches)}"
            self._happened(position, position.done, "again", where, CAME_ONCE)
        return done

    def _warnings(self) -> AbstractContextManager[Any]:
        """NumPy's warnings are off where a message replaces them."""
        return nullcontext() if self._ignore else warnings_off()

    def _is_fine(self, done: PerIteration, state: State) -> bool:
        """Return whether all values are finite on every rank, or need not be."""
        return self._ignore or all(current().gather(is_finite(done[0]) and all(map(is_finite, state.values()))))

    def _one_by_one(self, position: Position, batches: Batches, state: State) -> tuple[PerIteration, bool]:
        """Replay the steps one by one. An error tells its origin, and leaves the state as before the failing step. A
        non-finite step is undone; the second result says whether there was one.
        """
        learner = position.contestant.learner
        rows, bad = [], False
        learner.restore(state)
        for index in range(len(batches)):
            batch, at = batches[index : index + 1], iteration(position, index)
            try:
                with self._warnings():
                    (loss,), (accuracy,) = done = learner.train(batch)
            except Exception as error:
                known = _known(error, position.contestant)
                if current().size > 1:
                    raise known  # noqa: B904
                learner.restore(state)
                explained = _looked_into(known, learner, batch)
                learner.restore(state)
                raise _with(explained, f"This happened in {at}.") from error
            rows.append((loss, accuracy))
            after = learner.state()
            if self._is_fine(done, after):
                state = after
                continue
            bad = True
            learner.restore(state)
            self._bad_step(position, position.done + index, float(loss), at, batch)
        losses, accuracies = np.array(rows, np.float32).T
        return (losses, accuracies), bad

    def _bad_step(self, position: Position, number: int, loss: float, at: str, batch: Batches) -> None:
        is_first = not (self._skip and self._skipped)  # only the first skipped step is examined
        what = self._blame(position, batch, training=True) if is_first else ""
        self._happened(position, number, "skip", f"{_became(loss)} in {at}", what)
        self._skipped += 1

    def _happened(self, position: Position, number: int, did: str, where: str, what: str) -> None:
        """Record the event, and raise an error or print a warning."""
        operator, done = position.contestant.operator, did if self._skip else "stop"
        self._record(Nonfinite(operator, position.epoch, number, done, where, what))
        message = f"{position.contestant.operator}: {where}.\n{what}"
        if not self._skip:
            raise OperatorError(message + _ADVICE)
        if what:
            self._say(
                f"{message}\nThis update is skipped, and so is every later one with NaN or infinite values."
                if did == "skip"
                else message
            )

    def _blame(self, position: Position, batch: Batches, training: bool) -> str:
        """Replay the step operator by operator. The learner is in the state before the step, and is restored to it."""
        learner = position.contestant.learner
        before = learner.state()
        try:
            with warnings_off():
                looks = learner.looks(batch, training)
                # before the update changes its inputs
                message = blame(first_nonfinite(looks), position.contestant.operator, position.contestant.activation)
                for _ in looks:  # run to the end, because other ranks may wait for this one
                    pass
                return message
        except AppError as error:
            return f"The step cannot be replayed operator by operator: {error}"
        finally:
            learner.restore(before)

    def measure(self, position: Position, tests: Batches) -> PerIteration:
        """Return the loss and the accuracy of each batch."""
        with self._warnings(), current().time_limit():
            losses, accuracies = position.contestant.learner.measure(tests)
        if not (self._skip or self._ignore) and not is_finite(losses):
            index = int(np.argmin(np.isfinite(losses)))
            what = self._blame(position, tests[index : index + 1], training=False)
            where = f"{_became(float(losses[index]))} in test batch {index}"
            self._happened(position, position.done, "stop", f"{where}, after epoch {position.epoch + 1}", what)
        return losses, accuracies

    # Callback for epochs

    def begin(self, position: Position) -> None:
        self._skipped = 0

    def epoch(self, position: Position, result: Epoch) -> None:
        if self._skipped:
            self._say(
                f"{position.contestant.operator}: {self._skipped:,} of {position.iterations:,} updates of epoch "
                f"{position.epoch + 1} were skipped because of NaN or infinite values"
            )


def _became(loss: float) -> str:
    if np.isfinite(loss):
        return "the weights became NaN or infinite"
    return f"the loss became {'NaN' if np.isnan(loss) else loss}"


def warm_up(contestant: Contestant, batches: Batches) -> None:
    """Warm up a learner. This raises the errors of an operator that appear in its first step."""
    try:
        with inputs_watched(), warnings_off():
            contestant.learner.warm_up(batches)
    except Exception as error:
        known = _known(error, contestant)
        raise known if current().size > 1 else _looked_into(known, contestant.learner, batches)  # noqa: B904


def warnings_off() -> Any:
    """Suppress NumPy's floating-point warnings inside the block; errors that the user enabled are still raised."""
    return np.errstate(**{kind: "ignore" for kind, does in np.geterr().items() if does == "warn"})  # type: ignore[arg-type]


def iteration(position: Position, index: int) -> str:
    """Return the name of the iteration at this offset from the current position."""
    return f"iteration {position.done + index} of epoch {position.epoch + 1}"


def _known(error: Exception, contestant: Contestant) -> AppError:
    """Convert an exception to an AppError. A user's function may raise any exception, with a note that names the
    function."""
    if isinstance(error, AppError):
        return error
    message = "; ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    return OperatorError(f"{contestant.operator} raised {message}")


def _between(position: Position, batches: Batches) -> str:
    last = iteration(position, len(batches) - 1)
    return f"in {last}" if len(batches) == 1 else f"between iteration {position.done} and {last}"


def _looked_into(error: AppError, learner: Learner, batches: Batches) -> AppError:
    """Replay the steps operator by operator, and return that error, which locates its origin better."""
    try:
        for _ in learner.looks(batches, training=True):
            pass
    except AppError as found:
        return found
    except Exception:  # the error that is already known
        return error
    return error


def _with(error: AppError, words: str) -> AppError:
    return type(error)(f"{error}\n{words}")
