"""Taking the steps of training, and telling what goes wrong in one: in which iteration, and through which operator."""

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
    """Takes the steps of a piece, whatever becomes of the numbers."""

    def train(self, position: Position, batches: Batches) -> PerIteration:
        """Take a step for each batch; gives the loss and the accuracy before each step."""
        return self.attempt(position, batches, position.contestant.learner.state())

    def measure(self, position: Position, tests: Batches) -> PerIteration:
        """The loss and the accuracy of each batch."""
        return position.contestant.learner.measure(tests)

    def attempt(self, position: Position, batches: Batches, before: State) -> PerIteration:
        """Take the steps; an error tells where it came from, and leaves the state as it was before that step."""
        try:
            return position.contestant.learner.train(batches)
        except Exception as error:
            known = _known(error, position.contestant)
            if current().size > 1:  # no step can be taken again without the other ranks
                raise known  # noqa: B904 - which may be the same
            position.contestant.learner.restore(before)
            raise _located(known, position, batches, before) from error


def warm_up(contestant: Contestant, batches: Batches) -> None:
    """Let a learner warm up, and meet those faults of an operator that its first step shows."""
    try:
        with inputs_watched(), warnings_off():
            contestant.learner.warm_up(batches)
    except Exception as error:
        known = _known(error, contestant)
        raise known if current().size > 1 else _looked_into(known, contestant.learner, batches)  # noqa: B904


def warnings_off() -> Any:
    """NumPy's warnings of numbers that are not finite are not given inside; errors, where a user set them, are."""
    return np.errstate(**{kind: "ignore" for kind, does in np.geterr().items() if does == "warn"})  # type: ignore[arg-type]


def iteration(position: Position, index: int) -> str:
    """What an iteration is called that comes so many after those that are done."""
    return f"iteration {position.done + index} of epoch {position.epoch + 1}"


def _known(error: Exception, contestant: Contestant) -> AppError:
    """An error as one of ours: a user's function over Tensors may raise anything, with a note that names it."""
    if isinstance(error, AppError):
        return error
    told = "; ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    return OperatorError(f"{contestant.operator} raised {told}")


def _located(error: AppError, position: Position, batches: Batches, before: State) -> AppError:
    """The error with the iteration that it came from, found by taking the steps again, one by one."""
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
    """The error of the same steps taken operator by operator, which knows more of where it came from."""
    try:
        for _ in learner.looks(batches, training=True):
            pass
    except AppError as found:
        return found
    except Exception:  # the one that is known already
        return error
    return error


def _with(error: AppError, words: str) -> AppError:
    return type(error)(f"{error}\n{words}")
