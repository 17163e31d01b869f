"""Worker processes for the runs of a comparison: an executor that starts a process for each call."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from app.ranks import cores
from app.signals import die_with_parent, kill_group


class WorkerError(RuntimeError):
    """A process ended before it had finished its call."""


class Processes(ThreadPoolExecutor):
    """Runs each call in a new process. A process that dies loses only its own call, and all die with this process.

    A process imports from the same places as this one, never from the working folder. (Those of `multiprocessing`
    import modules of Python itself from there when they start.)
    """

    def __init__(self, count: int):
        super().__init__(count, thread_name_prefix="opsmith-worker")
        self._running: set[subprocess.Popen[bytes]] = set()
        self._failed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a function in a process of its own."""
        return super().submit(self._call, fn, args, kwargs)

    def __exit__(self, kind: Any, error: Any, at: Any) -> bool | None:
        self._failed = error is not None
        self.shutdown(wait=False, cancel_futures=self._failed)
        for process in [*self._running] if self._failed else ():
            _kill(process)
        self.shutdown()
        return None

    def _call(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        path = [os.path.abspath(entry) for entry in sys.path if entry]
        program = f"import sys; sys.path[:] = {path!r}; from {__name__} import serve; serve({os.getpid()})"
        options = ["-I", *(["-B"] if sys.dont_write_bytecode else []), "-X", f"utf8={sys.flags.utf8_mode}"]
        process = subprocess.Popen(
            [sys.executable, *options, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # with the processes that operators start; Ctrl-C is for the parent
        )
        self._running.add(process)
        if self._failed:
            _kill(process)
        try:
            is_result, value = pickle.loads(process.communicate(pickle.dumps((fn, args, kwargs)))[0])
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            raise WorkerError("its worker died") from error
        finally:
            _kill(process)
            self._running.discard(process)
        if is_result:
            return value
        raise value


def _kill(process: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        kill_group(process.pid)
    process.kill()


def serve(parent: int) -> None:
    """Make the call that arrives on standard input, and write the result to standard output."""
    die_with_parent(parent)
    calls, results = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what operators print, also in native code, is no result
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    cores.limit(1)
    fn, args, kwargs = pickle.load(calls)
    try:
        result = True, fn(*args, **kwargs)
    except Exception as error:
        result = False, error
    try:
        content = pickle.dumps(result)
        pickle.loads(content)
    except Exception:  # an exception of the user's that cannot be pickled
        content = pickle.dumps((False, RuntimeError(f"{type(result[1]).__name__}: {result[1]}")))
    with results:
        results.write(content)


def died(error: BaseException) -> str:
    """Return a short reason why a training was lost."""
    message = str(error).strip().partition("\n")[0]
    return (
        "its worker died"
        if isinstance(error, (BrokenProcessPool, WorkerError))
        else f"{type(error).__name__}: {message}"
    )
