"""What ranks tell each other beside their work: short messages, which a rank finds when it waits for others.

They travel apart from the collectives, so that they arrive also when these have come to a halt.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Asking(msgspec.Struct, tag=True):
    """A rank has waited for long, and asks who else is there."""

    rank: int


class Waiting(msgspec.Struct, tag=True):
    """The answer: a rank is there, and waits in the same or in another call."""

    rank: int
    call: int
    name: str


class Left(msgspec.Struct, tag=True):
    """A rank has done all that it had to do."""

    rank: int


class Fault(msgspec.Struct, tag=True):
    """A rank ends because something went wrong."""

    rank: int
    text: str
    status: int
    own: bool
    """Whether it went wrong with this rank, rather than with one that it waited for."""


class Missing(msgspec.Struct, tag=True):
    """Ranks that gave no answer."""

    rank: int
    ranks: tuple[int, ...]


Notice = Asking | Waiting | Left | Fault | Missing
_read = msgspec.msgpack.Decoder(Notice).decode


class Notices:
    """The notices between one rank and all others, over a communicator of their own."""

    def __init__(self, communicator: Any, byte: Any, status: Any):
        self._communicator, self._byte, self._status = communicator, byte, status
        self._others = [rank for rank in range(communicator.size) if rank != communicator.rank]
        self._sent: list[tuple[bytes, Any]] = []  # what MPI may still be reading from
        self.asking: set[int] = set()
        self.waiting: dict[int, Waiting] = {}
        self.left: set[int] = set()
        self.missing: set[int] = set()
        self.faults: dict[int, Fault] = {}

    def send(self, notice: Notice, *to: int) -> None:
        """Tell these ranks, or every other one; returns at once."""
        text = msgspec.msgpack.encode(notice)
        for rank in to or self._others:
            self._sent.append((text, self._communicator.Isend([text, self._byte], dest=rank)))

    def look(self) -> None:
        """Take in what has arrived."""
        self._sent = [(text, request) for text, request in self._sent if not request.Test()]
        while (message := self._communicator.Improbe(status=self._status)) is not None:
            text = bytearray(self._status.Get_count(self._byte))
            message.Recv([text, self._byte])
            self._note(_read(text))

    def _note(self, notice: Notice) -> None:
        if isinstance(notice, Asking):
            self.asking.add(notice.rank)
        elif isinstance(notice, Waiting):
            self.waiting[notice.rank] = notice
        elif isinstance(notice, Left):
            self.left.add(notice.rank)
        elif isinstance(notice, Missing):
            self.missing.update(notice.ranks)
        else:
            self.faults[notice.rank] = notice
