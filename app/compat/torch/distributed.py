"""torch.distributed: processes that mpiexec starts"""

from __future__ import annotations

from typing import Any

from app import distributed as _below
from app.ranks.current import current
from app.ranks.world import DistError


class ReduceOp:
    """Reductions over ranks."""

    SUM, MAX, MIN, PRODUCT, AVG = "sum", "max", "min", "prod", "avg"


class _Work:
    """The result of an operation with `async_op=True`, which has already finished."""

    def wait(self) -> bool:
        return True

    def is_completed(self) -> bool:
        return True


def is_available() -> bool:
    """True: MPI connects processes."""
    return True


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    **options: Any,
) -> None:
    """Connect to the other processes over MPI, whatever the backend is; mpiexec sets their number.

    `timeout`, a timedelta, limits how long processes wait for each other.
    """
    there = _below.get_world_size()
    if world_size not in (-1, there):
        raise DistError(
            f"init_process_group: found world_size={world_size}, and {there} process{'es' * (there > 1)}; start the "
            f"program with `mpiexec -n {world_size} python -m app run program.py`"
        )
    _below.init_parallel_env()
    if timeout is not None:
        current().configure(timeout.total_seconds())


def destroy_process_group(group: Any = None) -> None:
    """Has no effect: processes disconnect when they end."""


def get_backend(group: Any = None) -> str:
    """The name of the backend, MPI."""
    return "mpi"


def all_reduce(tensor: Any, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """Replace a Tensor's numbers, at every rank, by the sum over all ranks, or another reduction."""
    _below.all_reduce(tensor, op)
    return _Work() if async_op else None


def reduce(tensor: Any, dst: int = 0, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """Reduce as `all_reduce` does, but only at the rank `dst`."""
    _below.reduce(tensor, dst, op)
    return _Work() if async_op else None


def broadcast(tensor: Any, src: int = 0, group: Any = None, async_op: bool = False) -> Any:
    """Replace a Tensor's numbers by those of the rank `src`."""
    _below.broadcast(tensor, src)
    return _Work() if async_op else None
