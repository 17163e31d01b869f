"""How ranks end together: whatever goes wrong with one of them, all end, and one of them says what it was.

A rank that fails tells the others, which learn it when they next wait for it. Each unwinds, so that what has to be
kept is kept, and reports here. Then the first of those that have come speaks, and has the launcher end all. A rank
that is stuck, or busy, is not waited for.
"""

from __future__ import annotations

import atexit
import io
import os
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr
from types import TracebackType
from typing import NoReturn

from app import command_line
from app.dist import world as worlds
from app.dist.errors import RankError
from app.dist.launch import launched, line, watch
from app.dist.mpi import MPIWorld
from app.dist.notices import Fault

_PATIENCE, _PATIENCE_AFTER_CTRL_C = 4.0, 60.0
"""Seconds for the other ranks to unwind: nothing is wrong with them when it was Ctrl-C that ended the run."""
_SPEAKER = 3.0
"""Seconds for the rank whose turn it is to speak."""
_PASSING_ON = 0.2
"""Seconds for the launcher to pass on what was said, before it is asked to end all."""
_STOPPED = (command_line.INTERRUPTED, command_line.TERMINATED)
_LONGEST = 8000
"""Characters of a message."""


def run(command: Callable[[], int]) -> int:
    """Run a command as `command_line.run` does, as one of many ranks if a launcher has started many."""
    launch = launched()
    if launch is None:
        return command_line.run(command)
    watch(launch)
    command_line.begin()
    last_words = _silence() if launch.rank else None
    try:
        world = worlds.current()
        status = command()
        if isinstance(world, MPIWorld):
            world.leave()
    except BaseException as error:
        if isinstance(error, SystemExit) and not error.code:
            status = 0
        else:
            _end(error, *_told(error, last_words))
    line.tell(line.SPOKEN)
    return status


def join() -> worlds.World:
    """Enter the world from a program that is not run by `run`: what ends it, orderly or not, then ends as there."""
    launch = launched()
    if launch is not None:
        watch(launch)
        sys.excepthook = _uncaught
        atexit.register(_leave)
    return worlds.current()


def _leave() -> None:
    world = worlds.entered()
    try:
        if isinstance(world, MPIWorld):
            world.leave()
    except BaseException as error:
        _end(error, *_told(error, None))
    line.tell(line.SPOKEN)


def _uncaught(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    if isinstance(error, (RankError, KeyboardInterrupt)):
        _end(error, *_told(error, None))
    _end(error, _trace(error, at), command_line.FAILED)


def _silence() -> io.StringIO:
    """Let rank 0 alone be heard; gives what this one would have said on standard error."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until the end
    sys.stderr = _LastWords()
    return sys.stderr


class _LastWords(io.StringIO):
    """Keeps the end of what is written to it."""

    def write(self, text: str) -> int:
        kept = (self.getvalue() + text)[-_LONGEST:]
        self.seek(0)
        self.truncate()
        return super().write(kept)


def _end(error: BaseException, said: str, status: int) -> NoReturn:
    """End this rank and all others after an error; the exit status is that of the error which is told."""
    world = worlds.entered()
    if not isinstance(world, MPIWorld):
        _end_alone(said, status)
    text = said[-_LONGEST:] or _unsaid(status)
    fault = Fault(world.rank, text, status, own=not _of_another(error))
    line.tell(line.SPOKEN)
    world.notices.faults[world.rank] = fault
    world.notices.send(fault)
    stopped = status in _STOPPED
    _wait(world, _PATIENCE_AFTER_CTRL_C if stopped else _PATIENCE, lambda: _there(world) == set(range(world.size)))
    if world.rank != min(world.notices.faults):
        _wait(world, _SPEAKER, lambda: False)
    text, status = _verdict(world)
    if text:
        print(text, file=sys.__stderr__, flush=True)
        time.sleep(_PASSING_ON)
    world.end(status)
    os._exit(status)


def _of_another(error: BaseException | None) -> bool:
    """Whether it went wrong with another rank, or on the way out because of that."""
    while error is not None:
        if isinstance(error, RankError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _told(error: BaseException, last_words: io.StringIO | None) -> tuple[str, int]:
    """What the command line says of an error, and the exit status."""
    at = error.__traceback__.tb_next if error.__traceback__ else None  # without the frame of `run`

    def again() -> int:
        raise error

    with redirect_stderr(io.StringIO()) as said:
        try:
            status = command_line.run(again)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
            said.write(end.code if isinstance(end.code, str) else last_words.getvalue() if last_words else "")
        except BaseException:
            said.write(_trace(error, at))
            status = command_line.FAILED
    return said.getvalue().strip(), status


def _unsaid(status: int) -> str:
    """What is told of a rank that ended by itself, and left no word of it."""
    return f"ended with exit status {status}"


def _trace(error: BaseException, at: TracebackType | None) -> str:
    return "".join(traceback.format_exception(type(error), error, at)).strip()


def _end_alone(said: str, status: int) -> NoReturn:
    """End a rank that has not met the others. The first that fails has the launcher end all, most often before the
    others, which fail for the same reason, have spoken."""
    launch = launched()
    time.sleep(0.3 * min(launch.rank if launch else 0, 8))
    print(said, file=sys.__stderr__, flush=True)
    os._exit(status)


def _there(world: MPIWorld) -> set[int]:
    """The ranks that are not waited for any longer."""
    notices = world.notices
    return {*notices.faults, *notices.left, *notices.missing}


def _wait(world: MPIWorld, patience: float, done: Callable[[], bool]) -> None:
    end = time.monotonic() + patience
    while not done() and time.monotonic() < end:
        time.sleep(0.005)
        world.notices.look()


def _verdict(world: MPIWorld) -> tuple[str, int]:
    """What is said of the faults of all ranks, and the exit status."""
    faults = world.notices.faults
    own = {rank: faults[rank] for rank in sorted(faults) if faults[rank].own}
    if not own:  # a rank that is not there any more
        first = faults[min(faults)]
        return first.text, first.status
    texts = {fault.text for fault in own.values()}
    first = own[min(own)]
    if first.status in _STOPPED or (len(own) == world.size and len(texts) == 1):
        return first.text, first.status
    if len(own) == world.size and {fault.status for fault in own.values()} == {first.status}:
        if first.text == _unsaid(first.status):  # of the usage of a command, rank 0 has told by itself
            return "", first.status
    rest = first.text.removeprefix("error: ")
    return f"error: {world.name(first.rank)}: {rest}", first.status
