"""Workers for the trainings of a comparison: local processes, or any executor. A training whose worker dies
is retried once; if that fails too, its seed is excluded for all operators.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from app.errors import AppError, ConfigError
from app.ranks import cores
from app.signals import die_with_parent, kill_group

OpenExecutor = Callable[[], AbstractContextManager[Executor]]
"""Starts workers; the context manager shuts them down."""

T = TypeVar("T")
R = TypeVar("R")

_LOOK = 0.2
"""Seconds between two checks for a signal."""


def run_all(
    executor: Executor,
    work: Callable[[T], R],
    jobs: Sequence[T],
    done: Callable[[T, R], None],
    lost: Callable[[T, BaseException, bool], None],
    check: Callable[[], None],
) -> None:
    """Do all jobs on an executor's workers, and call `done` as each one completes. An AppError ends all jobs. For any
    other error, such as a dead worker, `lost` is called with whether the job will be retried. `check` is called
    periodically and may raise.
    """
    waiting = {executor.submit(work, job): (job, 1) for job in jobs}
    try:
        while waiting:
            ended, _ = wait(waiting, _LOOK, FIRST_COMPLETED)
            check()
            for future in ended:
                job, times = waiting.pop(future)
                try:
                    result = future.result()
                except AppError:
                    raise
                except Exception as error:
                    lost(job, error, times == 1)
                    if times == 1:
                        waiting[executor.submit(work, job)] = job, 2
                else:
                    done(job, result)
    finally:
        for future in waiting:
            future.cancel()


class WorkerError(RuntimeError):
    """A process ended before it had finished its call."""


class Processes(Executor):
    """Local processes. One that dies loses only its own job, and is replaced.

    A process imports from the same places as this one, never from the working folder. All die with this process.
    """

    def __init__(self, count: int):
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="opsmith-worker")
        self._idle = [_Worker() for _ in range(count)]
        self._all = list(self._idle)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a function in the next idle process."""
        return self._threads.submit(self._run, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes, without waiting for their calls if `wait` is false."""
        if not wait:
            self._kill()
        self._threads.shutdown(cancel_futures=cancel_futures)
        self._kill()

    def _kill(self) -> None:
        for worker in self._all:
            worker.kill()

    def __exit__(self, kind: Any, error: Any, at: Any) -> bool | None:
        self.shutdown(wait=error is None, cancel_futures=error is not None)
        return None

    def _run(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        worker = self._idle.pop()  # one per thread
        try:
            return worker.call(fn, args, kwargs)
        except WorkerError:
            worker = _Worker()
            self._all.append(worker)
            raise
        finally:
            self._idle.append(worker)


class _Worker:
    """A process that makes one call after the other. Functions and results travel as pickles through its pipes.

    (The processes of `multiprocessing` import modules of Python itself from the working folder when they start.)
    """

    def __init__(self) -> None:
        path = [os.path.abspath(entry) for entry in sys.path if entry]
        program = f"import sys; sys.path[:] = {path!r}; from {__name__} import serve; serve({os.getpid()})"
        options = ["-I", *(["-B"] if sys.dont_write_bytecode else []), "-X", f"utf8={sys.flags.utf8_mode}"]
        self._process = subprocess.Popen(
            [sys.executable, *options, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # with the processes that operators start; Ctrl-C is for the parent
        )

    def call(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call a function in the process; return its result, or raise its exception."""
        call = pickle.dumps((fn, args, kwargs))
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(call)
            self._process.stdin.flush()
            is_result, value = pickle.load(self._process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            self.kill()
            raise WorkerError("its worker died") from error
        if is_result:
            return value
        raise value

    def kill(self) -> None:
        """End the process at once."""
        if hasattr(os, "killpg"):
            kill_group(self._process.pid)
        self._process.kill()
        self._process.wait()


def serve(parent: int) -> None:
    """Make the calls that arrive on standard input, until this process is killed."""
    die_with_parent(parent)
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what operators print, also in native code, is no answer
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    cores.limit(1)
    while True:
        try:
            fn, args, kwargs = pickle.load(calls)
        except EOFError:
            return
        try:
            answer = True, fn(*args, **kwargs)
        except Exception as error:
            answer = False, error
        try:
            content = pickle.dumps(answer)
            pickle.loads(content)
        except Exception:  # an exception of the user's that cannot be pickled
            content = pickle.dumps((False, RuntimeError(f"{type(answer[1]).__name__}: {answer[1]}")))
        answers.write(content)
        answers.flush()


def executor_of(workers: str) -> OpenExecutor | None:
    """Return the executor for `--workers`, a number of processes; None for this process alone."""
    if not workers.isdecimal() or int(workers) < 1:
        raise ConfigError(f"--workers takes a number of processes of at least 1, found {workers!r}")
    count = int(workers)
    return None if count == 1 else lambda: Processes(count)


def died(error: BaseException) -> str:
    """Return a short reason why a training was lost."""
    words = str(error).strip().partition("\n")[0]
    return (
        "its worker died" if isinstance(error, (BrokenProcessPool, WorkerError)) else f"{type(error).__name__}: {words}"
    )
