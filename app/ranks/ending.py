"""How ranks end: when one of them fails, all end, with one message and an exit status.

Rank 0 prints, and ends all through MPI's Abort. Another rank that fails tells rank 0, which raises the same error when
it next waits, so that it keeps what there is to keep. Where rank 0 does not end all in time, the rank does so itself.
"""

from __future__ import annotations

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
from app.ranks.current import current, entered
from app.ranks.launch import launched
from app.ranks.world import RankError

_PATIENCE, _STEP = 5.0, 0.5
"""Seconds for rank 0 to end all, and more for each rank."""
_PASSING_ON = 0.2
"""Seconds for mpiexec to pass on a message before it ends all."""
_LONGEST = 8000
"""Characters of a message."""


def run(command: Callable[[], int]) -> int:
    """Run a command as `command_line.run` does, as one of many ranks if a launcher started many."""
    launch = launched()
    if launch is None:
        return command_line.run(command)
    command_line.begin()
    heard = _silence() if launch.rank else None
    try:
        world = current()
        status = command()
        world.leave()
        return status
    except BaseException as error:
        if isinstance(error, SystemExit) and not error.code:
            current().leave()
            return 0
        _end(error, *_message_of(error, heard))


def _silence() -> io.StringIO:
    """Silence all ranks but rank 0. Returns what this rank writes to standard error."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until the process ends
    sys.stderr = heard = io.StringIO()
    return heard


def _message_of(error: BaseException, heard: io.StringIO | None) -> tuple[str, int]:
    """The message of an error, and the exit status."""
    at = error.__traceback__.tb_next if error.__traceback__ else None  # without the frame of `run`

    def again() -> int:
        raise error

    with redirect_stderr(io.StringIO()) as said:
        try:
            status = command_line.run(again)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else command_line.FAILED
            said.write(end.code if isinstance(end.code, str) else heard.getvalue() if heard else "")
        except BaseException:
            said.write(_trace(error, at))
            status = command_line.FAILED
    return said.getvalue().strip()[-_LONGEST:], status


def _trace(error: BaseException, at: TracebackType | None) -> str:
    return "".join(traceback.format_exception(type(error), error, at)).strip()


def _end(error: BaseException, message: str, status: int) -> NoReturn:
    """Print a message and end all ranks, or let rank 0 do so."""
    from app.ranks.mpi import MPIWorld  # imported late: few processes need it

    world = entered()
    if isinstance(world, MPIWorld) and world.rank:
        if not isinstance(error, (RankError, KeyboardInterrupt)):
            message = f"error: {world.name(world.rank)}: {message.removeprefix('error: ')}"
        world.tell(0, message.removeprefix("error: "), status, _PATIENCE + _STEP * min(world.rank, 8))
    if message:
        print(message, file=sys.__stderr__, flush=True)
    if isinstance(world, MPIWorld):
        time.sleep(_PASSING_ON)
        world.end(status)
    os._exit(status)
