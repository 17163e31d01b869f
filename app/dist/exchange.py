"""How ranks without common memory give each other their parts of some arrays: all of them in one message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from app.engine.team import Parted

Send = Callable[[np.ndarray, np.ndarray, list[int]], None]
"""Sends these bytes to all ranks, and receives into the other array what each has sent, of which the sizes are told."""


def in_one_message(parts: Sequence[Parted], rank: int, send: Send) -> Callable[[], None]:
    """What gives every rank the parts of all others."""
    ranks = len(parts[0].ends) - 1 if parts else 0
    pieces = [[_bytes(numbers)[slice(*_part(numbers, ends, r))] for numbers, ends in parts] for r in range(ranks)]
    sizes = [sum(piece.size for piece in of_rank) for of_rank in pieces]
    everything = np.empty(sum(sizes), np.uint8)
    starts = np.cumsum([0, *sizes]).tolist()
    places = [_cut(everything[a:b], of_rank) for (a, b), of_rank in zip(pairwise(starts), pieces, strict=True)]
    mine = np.empty(sizes[rank] if sizes else 0, np.uint8)

    def exchange() -> None:
        if not parts:
            return
        np.concatenate(pieces[rank], out=mine)
        send(mine, everything, sizes)
        for other in (*range(rank), *range(rank + 1, ranks)):
            for place, piece in zip(places[other], pieces[other], strict=True):
                piece[:] = place

    return exchange


def _bytes(numbers: np.ndarray) -> np.ndarray:
    return numbers.view(np.uint8)


def _part(numbers: np.ndarray, ends: Sequence[int], rank: int) -> tuple[int, int]:
    return ends[rank] * numbers.itemsize, ends[rank + 1] * numbers.itemsize


def _cut(message: np.ndarray, pieces: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A message in pieces of such sizes."""
    ends = np.cumsum([0, *(piece.size for piece in pieces)]).tolist()
    return [message[a:b] for a, b in pairwise(ends)]
