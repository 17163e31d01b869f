"""Runs training steps and locates errors: the iteration and the operator."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.custom.read_only import inputs_watched
from app.data import Batches
from app.errors import AppError, OperatorError
from app.ranks.current import current
from app.run.callbacks import Callback, Contestant, Position
from app.run.learners import Learner, PerIteration
from app.run.learners.learner import State


class Steps(Callback):
    """Runs training steps. NaN and inf are not errors."""

    def train(self, position: Position, batches: Batches) -> PerIteration:
        """Take a step for each batch; return the loss and the accuracy before each step."""
        return self.attempt(position, batches, position.contestant.learner.state())

    def measure(self, position: Position, tests: Batches) -> PerIteration:
        """Return the loss and the accuracy of each batch."""
        return position.contestant.learner.measure(tests)

    def attempt(self, position: Position, batches: Batches, before: State) -> PerIteration:
        """Take the steps. An error names its origin and leaves the state as before the failing step."""
        try:
            return position.contestant.learner.train(batches)
        except Exception as error:
            known = _known(error, position.contestant)
            if current().size > 1:  # a step cannot be replayed without the other ranks
                raise known  # noqa: B904 - which may be the same
            position.contestant.learner.restore(before)
            raise _located(known, position, batches, before) from error


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
    told = "; ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    return OperatorError(f"{contestant.operator} raised {told}")


def _located(error: AppError, position: Position, batches: Batches, before: State) -> AppError:
    """Add the failing iteration to an error by replaying the steps one by one."""
    learner = position.contestant.learner
    for index in range(len(batches)):
        state, batch = learner.state(), batches[index : index + 1]
        try:
            learner.train(batch)
        except Exception as again:
            learner.restore(state)
            told = _looked_into(_known(again, position.contestant), learner, batch)
            learner.restore(state)
            return _with(told, f"This was in {iteration(position, index)}.")
    learner.restore(before)
    last = iteration(position, len(batches) - 1)
    where = f"in {last}" if len(batches) == 1 else f"between iteration {position.done} and {last}"
    return _with(
        error, f"This was {where}. Taken again, no step raised anything: an operator remembers something between calls."
    )


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
