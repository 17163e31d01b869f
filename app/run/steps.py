"""Training steps: an error names the iteration and the operator, and a step that gives NaN or infinity ends the run."""

from __future__ import annotations

import time

import numpy as np

from app.custom.read_only import inputs_watched
from app.data import Batches
from app.engine.watch import first_nonfinite, is_finite
from app.errors import AppError, OperatorError, ShapeError
from app.ranks.world import current
from app.run.callbacks import Position
from app.run.events import Nonfinite
from app.run.learners import Learner, PerIteration
from app.run.learners.learner import State
from app.run.nonfinite import NOT_REPRODUCED, described, warnings_off


class NonfiniteError(OperatorError):
    """A step or a test that gave NaN or infinity."""

    event: Nonfinite
    """What the run records of it."""


def take_steps(position: Position, batches: Batches) -> PerIteration:
    """Take a step for each batch; return the loss and the accuracy before each step. The steps alone are timed, without
    the search for NaN and infinity."""
    before = position.learner.state()
    start = time.perf_counter()
    results = _train(position, position.done, batches, before)
    position.seconds += time.perf_counter() - start
    if not _is_fine(results, position.learner.state()):
        raise _error_of_first_bad(position, batches, before)
    return results


def measure(position: Position, tests: Batches) -> PerIteration:
    """Return the loss and the accuracy of each batch."""
    with warnings_off():
        losses, accuracies = position.learner.measure(tests)
    if not is_finite(losses):
        index = int(np.argmin(np.isfinite(losses)))
        where = f"{_became(float(losses[index]))} in test batch {index}, after epoch {position.epoch + 1}"
        what = _first_nonfinite(position.learner, tests[index : index + 1], training=False)
        raise _error(position, position.done, where, what)
    return losses, accuracies


def _train(position: Position, first: int, batches: Batches, before: State) -> PerIteration:
    """Train from an iteration on. An error says where it happened, and leaves the state as `before`."""
    learner = position.learner
    try:
        with warnings_off():
            return learner.train(batches)
    except Exception as error:
        app_error = _as_app_error(error, learner)
        if current().size > 1:  # where a rank alone says what happened, and ends the others
            raise app_error  # noqa: B904 - which may be the same
        learner.restore(before)
        app_error = _shape_named(app_error, learner, batches)
        learner.restore(before)
        where = _between(first, first + len(batches) - 1, position.epoch)
        raise type(app_error)(f"{app_error}\nThis happened {where}.") from error


def _error_of_first_bad(position: Position, batches: Batches, state: State) -> NonfiniteError:
    """Replay the steps one by one from the state before them; return the error for the first bad one. The state is left
    as before that step."""
    learner = position.learner
    learner.restore(state)
    for index in range(len(batches)):
        batch, iteration = batches[index : index + 1], position.done + index
        results = _train(position, iteration, batch, state)
        after = learner.state()
        if not _is_fine(results, after):
            learner.restore(state)
            where = f"{_became(float(results[0][0]))} {_between(iteration, iteration, position.epoch)}"
            return _error(position, iteration, where, _first_nonfinite(learner, batch, training=True))
        state = after
    last = position.done + len(batches) - 1
    where = f"values were not finite {_between(position.done, last, position.epoch)}"
    return _error(position, position.done, where, NOT_REPRODUCED)


def _error(position: Position, iteration: int, where: str, what: str) -> NonfiniteError:
    operator = position.learner.operator
    error = NonfiniteError(f"{operator}: {where}.\n{what}")
    error.event = Nonfinite(operator, position.epoch, iteration, where, what)
    return error


def _is_fine(results: PerIteration, state: State) -> bool:
    """Return whether all values are finite on every rank."""
    return all(current().allgather(is_finite(results[0]) and all(map(is_finite, state.values()))))


def _first_nonfinite(learner: Learner, batch: Batches, training: bool) -> str:
    """Replay a step operator by operator. The learner is in the state before the step, and is restored to it."""
    before = learner.state()
    try:
        with warnings_off():
            runs = learner.replay(batch, training)
            # before the update changes its inputs
            message = described(first_nonfinite(runs))
            for _ in runs:  # run to the end, because other ranks may wait for this one
                pass
            return message
    except AppError as error:
        return f"The step cannot be replayed operator by operator: {error}"
    finally:
        learner.restore(before)


def _became(loss: float) -> str:
    if np.isfinite(loss):
        return "the weights became NaN or infinite"
    return f"the loss became {'NaN' if np.isnan(loss) else loss}"


def _between(first: int, last: int, epoch: int) -> str:
    iteration = f"iteration {last} of epoch {epoch + 1}"
    return f"in {iteration}" if first == last else f"between iteration {first} and {iteration}"


def compile_step(learner: Learner, batches: Batches) -> None:
    """Compile a network's step and run it without effect. This raises the errors of an operator in its first step."""
    try:
        with inputs_watched(), warnings_off():
            learner.compile(batches)
    except Exception as error:
        app_error = _as_app_error(error, learner)
        raise app_error if current().size > 1 else _shape_named(app_error, learner, batches)  # noqa: B904


def _as_app_error(error: Exception, learner: Learner) -> AppError:
    """Convert an exception to an AppError. A user's function may raise any exception, with a note that names the
    function."""
    if isinstance(error, AppError):
        return error
    message = "; ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    return OperatorError(f"{learner.operator} raised {message}")


def _shape_named(error: AppError, learner: Learner, batches: Batches) -> AppError:
    """Return an error that names the operator whose result has another shape than it declared, in place of one of an
    operator after it. The last batch, which may be smaller, is run operator by operator."""
    try:
        for _ in learner.replay(batches[len(batches) - 1 :], training=True) if isinstance(error, ShapeError) else ():
            pass
    except ShapeError as named:
        return named
    except Exception:  # the error that is already known
        return error
    return error
