"""torch.multiprocessing: a function for each process, which mpiexec has started"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from app import distributed
from app.ranks.world import DistError


def spawn(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> None:
    """Call a function with the rank of this process and the arguments; mpiexec starts the other processes."""
    rank, there = distributed.get_rank(), distributed.get_world_size()
    if nprocs != there:
        raise DistError(
            f"spawn: found nprocs={nprocs}, and {there} process{'es' * (there > 1)}; start the program with "
            f"`mpiexec -n {nprocs} python -m app run program.py`"
        )
    fn(rank, *args)
