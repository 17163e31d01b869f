"""Running a batch on threads: how many are worth it, and workers that stay alive.

Starting a thread takes as long as a small batch does, and a batch may be run at every call.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np

from app.engine.compiled import blas, runtime
from app.engine.compiled.native_code import Entry
from app.engine.compiled.steps import Lowered, Step
from app.errors import AppError, OperatorError
from app.graph.program import Operator
from app.ops.lowering import Drawing

FOR_EACH = 750_000
"""The number of operations that is worth another thread: in the network of seed.yaml, 9 rows of a batch. With 8 rows,
one and two threads took equally long."""


class Worth:
    """The number of threads that steps are worth, remembered for each size of a batch."""

    def __init__(self, steps: Sequence[Step]):
        self._are_known = all(step.has_known_cost or step.is_alone for step in steps)
        self._steps = [step for step in steps if not step.is_free]
        self._operations: dict[int, int] = {}

    def threads(self, n: int, most: int) -> int:
        """Return the number of threads, up to `most`, for batches of n rows.

        In a small batch, waiting for the others takes longer than doing their share. A user's function has an unknown
        cost, and gets all threads.
        """
        if most == 1 or not self._are_known:
            return most
        if n not in self._operations:
            self._operations[n] = sum(step.operations(n) for step in self._steps)
        return min(most, max(1, self._operations[n] // FOR_EACH))


# Running a function on threads

Lookup = Callable[[str, int], np.ndarray]
"""Returns the array of a variable for a batch size."""


def run_on_threads(threads: int, function: Entry, arguments: tuple[Any, ...], lowered: Lowered, array: Lookup) -> None:
    """Run a generated function on threads, with BLAS on one thread inside each; `array` gives the variables of a step
    for which it calls Python."""
    shared = runtime.sharing(threads)
    callback = Callback(shared, lowered, array)
    raised: list[tuple[int, BaseException]] = []

    def work(number: int) -> None:
        try:
            run(number, threads)
        except BaseException as error:
            raised.append((number, error))
        finally:
            shared[runtime.LEFT] = 1

    run = function.bound((shared, *arguments))
    on_threads(work, threads, shared)
    del callback  # which compiled code called by its address
    raise_problem(lowered, raised, shared)


def raise_problem(lowered: Lowered, raised: list[tuple[int, BaseException]], shared: np.ndarray) -> None:
    """Raise the error that a thread raised or reported, naming the operator."""
    if raised:
        thread, error = raised[0]
        if isinstance(error, (AppError, KeyboardInterrupt)):
            raise error
        running = runtime.running(shared, thread)
        users = lowered.steps[running].users if running >= 0 else []
        labels = " or ".join(op.definition.label for op in users) or "a compiled operator"
        raise OperatorError(f"{labels}: its function raised {type(error).__name__}: {error}") from error
    if shared[runtime.PROBLEM] >= 0:
        step = lowered.steps[runtime.running(shared, int(shared[runtime.PROBLEM]))]
        problems = [getattr(part.op.definition.lowering, "problem", "") for part in step.everything]
        what = " or ".join(filter(None, problems)) or "it returned a shape other than the declared one"
        raise OperatorError(f"{step.op.definition.label}: {what} (at {step.op})")


class Callback:
    """What compiled code calls for steps that are Python functions, while this object exists. Arrays are looked up once
    for each batch size."""

    def __init__(self, shared: np.ndarray, lowered: Lowered, array: Lookup):
        self._shared, self._lowered, self._array = shared, lowered, array
        self._calls: dict[tuple[int, int], Callable[[], None]] = {}
        shared[runtime.CALLBACK] = id(self)

    def __call__(self) -> None:
        place = runtime.running(self._shared, 0), int(self._shared[runtime.SIZE])
        if place not in self._calls:
            self._calls[place] = self._call(*place)
        self._calls[place]()

    def _call(self, step: int, n: int) -> Callable[[], None]:
        op = self._lowered.steps[step].op
        if isinstance(op.definition.lowering, Drawing):
            return self._draw(op, n)
        arrays = [self._array(str(name), n) for name in op.inputs]
        call: Callable[[], None] = op.definition.lowering.calls(arrays, *op.attributes.values())
        return call

    def _draw(self, op: Operator, n: int) -> Callable[[], None]:
        lowered, output = self._lowered, self._array(op.outputs[0], n)
        likes = [np.broadcast_to(np.zeros((), lowered.dtype(str(x))), lowered.shape_at(str(x), n)) for x in op.inputs]

        def call() -> None:
            output[...] = op.definition.kernel(*likes, **op.attributes)

        return call


# Threads that stay

Job = Callable[[int], object]


class _Worker:
    """A thread that does one job after the other. Jobs must not raise."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Job, int]] = SimpleQueue()
        threading.Thread(target=self._work, name="opsmith", daemon=True).start()

    def _work(self) -> None:
        while True:
            job, number = self._jobs.get()
            job(number)
            del job

    def start(self, job: Job, number: int) -> None:
        self._jobs.put((job, number))

    def wait(self) -> None:
        """Wait until the jobs before are done. It can be repeated after an interrupt."""
        finished: SimpleQueue[int] = SimpleQueue()
        self.start(finished.put, 0)
        finished.get()


_idle: list[_Worker] = []


def _idle_worker() -> _Worker:
    try:
        return _idle.pop()
    except IndexError:  # another thread may have taken the last one
        return _Worker()


def on_threads(job: Job, threads: int, shared: np.ndarray) -> None:
    """Run a job on threads numbered from 0, of which this one is the first, with BLAS on one thread inside each. A job
    must not raise.

    Ctrl-C, and what other signal handlers raise, may come between any two calls. Before this thread has reached the
    first barrier, the others wait there, and have to be told that it will not come. In any case they are waited for, as
    they use memory of the caller.
    """
    workers: list[_Worker] = []
    interrupt: BaseException | None = None
    user = object()
    try:
        blas.limit(user)
        for number in range(1, threads):
            workers.append(_idle_worker())
            workers[-1].start(job, number)
        job(0)
    except BaseException as error:
        shared[runtime.LEFT] = 1
        interrupt = error
    while True:
        try:
            for worker in workers:
                worker.wait()
            blas.release(user)
            break
        except BaseException as error:
            interrupt = error
    _idle.extend(workers)
    if interrupt is not None:
        raise interrupt


if hasattr(os, "register_at_fork"):  # a forked process has none of the threads
    os.register_at_fork(after_in_child=_idle.clear)
