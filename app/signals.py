"""Ends a command at its second Ctrl-C, and child processes with their parent, whatever native code is running.

Python handles signals between its own instructions, so native code that does not return keeps it from handling any.
SIGTERM and SIGHUP keep their default action, which ends the process at once; files stay whole, because each is written
beside its place and then moved into it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
import warnings
from contextlib import suppress

_SAME = 0.2
"""Seconds within which two signals are one Ctrl-C, which a launcher passed on after the terminal had sent it, too."""
_LOOK = 0.5
"""Seconds between two checks whether the parent is alive, where the kernel does not tell."""
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


def end_at_second_interrupt() -> None:
    """Let a watching process kill this one at its second SIGINT. The first raises KeyboardInterrupt, as usual."""
    at_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not hasattr(os, "fork") or not at_default or threading.current_thread() is not threading.main_thread():
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    command = os.getpid()
    if not forked():
        try:
            _count_interrupts(reading, command)
        finally:
            os._exit(0)
    os.close(reading)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)  # to which the signal handler of C writes each number


def _count_interrupts(reading: int, command: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to this process, too
    die_with_parent(command)
    os.dup2(reading, 0)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    for stream in (1, 2):  # whose readers wait for the end of the command alone
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    count, last = 0, -_SAME
    while numbers := os.read(0, 64):
        if signal.SIGINT in numbers and time.monotonic() - last > _SAME:
            count, last = count + 1, time.monotonic()
        if count == 2:
            os.kill(command, signal.SIGKILL)


def forked() -> int:
    """`os.fork`, without the warning about threads: the child uses none of this process's threads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


def die_with_parent(parent: int) -> None:
    """In a child process: be killed when the parent ends, for whatever reason and whatever this process does."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    elif hasattr(os, "fork"):
        guard(parent)
    if hasattr(os, "getppid") and os.getppid() != parent:  # it ended before
        os._exit(1)


def kill_group(process: int) -> None:
    """Kill a child process that leads a group or a session, and the processes that it has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)


def guard(parent: int) -> None:
    """Let another process kill this one when the parent has ended."""
    child = os.getpid()
    if forked():
        return
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.closerange(0, os.sysconf("SC_OPEN_MAX"))
        while os.getppid() == child:
            try:
                os.kill(parent, 0)
            except ProcessLookupError:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            time.sleep(_LOOK)
    finally:
        os._exit(0)
