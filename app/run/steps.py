"""Training steps: an error names the iteration and the operator, and a step that gives NaN or infinity ends the run."""

from __future__ import annotations

import time
from typing import Any, NoReturn

import numpy as np

from app.custom.read_only import inputs_watched
from app.data import Batches
from app.engine.watch import first_nonfinite, is_finite
from app.errors import AppError, OperatorError, ShapeError
from app.ranks.world import current
from app.run.callbacks import Contestant, Position
from app.run.events import Nonfinite, Record
from app.run.finite import CAME_ONCE, blame
from app.run.learners import Learner, PerIteration
from app.run.learners.learner import State


class Steps:
    """Takes training steps. A step whose loss or weights are NaN or infinite ends the run with an error that names the
    operator."""

    def __init__(self, record: Record = lambda event: None):
        self._record = record

    def train(self, position: Position, batches: Batches) -> PerIteration:
        """Take a step for each batch; return the loss and the accuracy before each step. The steps alone are timed,
        without the search for NaN and infinity."""
        before = position.contestant.learner.state()
        start = time.perf_counter()
        results = self._take(position, 0, batches, before)
        position.seconds += time.perf_counter() - start
        if not _is_fine(results, position.contestant.learner.state()):
            self._stop(position, batches, before)
        return results

    @staticmethod
    def _take(position: Position, index: int, batches: Batches, before: State) -> PerIteration:
        """Take the steps from an offset on. An error says where it happened, and leaves the state as `before`."""
        try:
            with warnings_off():
                return position.contestant.learner.train(batches)
        except Exception as error:
            app_error = _as_app_error(error, position.contestant)
            if current().size > 1:  # where a rank alone says what happened, and ends the others
                raise app_error  # noqa: B904 - which may be the same
            position.contestant.learner.restore(before)
            app_error = _shape_named(app_error, position.contestant.learner, batches)
            position.contestant.learner.restore(before)
            where = _between(position.done + index, position.done + index + len(batches) - 1, position.epoch)
            raise type(app_error)(f"{app_error}\nThis happened {where}.") from error

    def _stop(self, position: Position, batches: Batches, state: State) -> NoReturn:
        """Replay the steps one by one from the state before them, and raise an error for the first bad one. It leaves
        the state as before that step."""
        learner = position.contestant.learner
        learner.restore(state)
        for index in range(len(batches)):
            batch = batches[index : index + 1]
            results = self._take(position, index, batch, state)
            after = learner.state()
            if not _is_fine(results, after):
                learner.restore(state)
                number = position.done + index
                where = f"{_became(float(results[0][0]))} {_between(number, number, position.epoch)}"
                self._end(position, number, where, _blame(position, batch, training=True))
            state = after
        last = position.done + len(batches) - 1
        where = f"values were not finite {_between(position.done, last, position.epoch)}"
        self._end(position, position.done, where, CAME_ONCE)

    def _end(self, position: Position, iteration: int, where: str, what: str) -> NoReturn:
        operator = position.contestant.operator
        self._record(Nonfinite(operator, position.epoch, iteration, where, what))
        raise OperatorError(f"{operator}: {where}.\n{what}")

    def measure(self, position: Position, tests: Batches) -> PerIteration:
        """Return the loss and the accuracy of each batch."""
        with warnings_off():
            losses, accuracies = position.contestant.learner.measure(tests)
        if not is_finite(losses):
            index = int(np.argmin(np.isfinite(losses)))
            where = f"{_became(float(losses[index]))} in test batch {index}, after epoch {position.epoch + 1}"
            self._end(position, position.done, where, _blame(position, tests[index : index + 1], training=False))
        return losses, accuracies


def _is_fine(results: PerIteration, state: State) -> bool:
    """Return whether all values are finite on every rank."""
    return all(current().gather(is_finite(results[0]) and all(map(is_finite, state.values()))))


def _blame(position: Position, batch: Batches, training: bool) -> str:
    """Replay a step operator by operator. The learner is in the state before the step, and is restored to it."""
    contestant = position.contestant
    before = contestant.learner.state()
    try:
        with warnings_off():
            looks = contestant.learner.looks(batch, training)
            # before the update changes its inputs
            message = blame(first_nonfinite(looks))
            for _ in looks:  # run to the end, because other ranks may wait for this one
                pass
            return message
    except AppError as error:
        return f"The step cannot be replayed operator by operator: {error}"
    finally:
        contestant.learner.restore(before)


def _became(loss: float) -> str:
    if np.isfinite(loss):
        return "the weights became NaN or infinite"
    return f"the loss became {'NaN' if np.isnan(loss) else loss}"


def _between(first: int, last: int, epoch: int) -> str:
    iteration = f"iteration {last} of epoch {epoch + 1}"
    return f"in {iteration}" if first == last else f"between iteration {first} and {iteration}"


def warm_up(contestant: Contestant, batches: Batches) -> None:
    """Warm up a learner. This raises the errors of an operator that appear in its first step."""
    try:
        with inputs_watched(), warnings_off():
            contestant.learner.warm_up(batches)
    except Exception as error:
        app_error = _as_app_error(error, contestant)
        raise app_error if current().size > 1 else _shape_named(app_error, contestant.learner, batches)  # noqa: B904


def warnings_off() -> Any:
    """Suppress NumPy's floating-point warnings inside the block; errors that the user enabled are still raised."""
    return np.errstate(**{kind: "ignore" for kind, does in np.geterr().items() if does == "warn"})  # type: ignore[arg-type]


def _as_app_error(error: Exception, contestant: Contestant) -> AppError:
    """Convert an exception to an AppError. A user's function may raise any exception, with a note that names the
    function."""
    if isinstance(error, AppError):
        return error
    message = "; ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    return OperatorError(f"{contestant.operator} raised {message}")


def _shape_named(error: AppError, learner: Learner, batches: Batches) -> AppError:
    """Return an error that names the operator whose result has another shape than it declared, in place of one of an
    operator after it. The last batch, which may be smaller, is run operator by operator."""
    try:
        for _ in learner.looks(batches[len(batches) - 1 :], training=True) if isinstance(error, ShapeError) else ():
            pass
    except ShapeError as named:
        return named
    except Exception:  # the error that is already known
        return error
    return error
