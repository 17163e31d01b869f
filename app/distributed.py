"""Several processes in one program: ranks, collective operations and a layer that they share.

The names are Paddle's. `mpiexec -n 2 python program.py` starts the processes. Without it there is one process, and the
calls do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from app.nn.parallel import DataParallel, in_place
from app.ranks.current import current, entered, place
from app.ranks.launch import launched
from app.ranks.world import DistError, World
from app.tensor import Tensor

__all__ = [
    "DataParallel",
    "ParallelEnv",
    "ReduceOp",
    "all_gather",
    "all_gather_object",
    "all_reduce",
    "barrier",
    "broadcast",
    "get_rank",
    "get_world_size",
    "init_parallel_env",
    "is_initialized",
    "reduce",
    "spawn",
]


def __dir__() -> list[str]:
    return __all__


class ReduceOp:
    """The reductions of `all_reduce` and `reduce`."""

    SUM, MAX, MIN, PROD, AVG = "sum", "max", "min", "prod", "avg"


class ParallelEnv:
    """Which of the processes this one is."""

    current_endpoint = ""
    trainer_endpoints: Sequence[str] = ()

    @property
    def rank(self) -> int:
        """The rank of this process, from 0."""
        return get_rank()

    @property
    def local_rank(self) -> int:
        """The rank among the processes of this machine."""
        world = entered()
        return world.local_rank if world is not None else 0

    device_id = dev_id = local_rank

    @property
    def world_size(self) -> int:
        """The number of processes."""
        return get_world_size()

    nranks = world_size


def init_parallel_env() -> None:
    """Connect to the other processes. From here on, an error in one of them ends all, with one message."""
    if not is_initialized() and launched() is not None:
        from app.ranks import ending  # imported late: few programs need it

        ending.join()


def is_initialized() -> bool:
    """Whether `init_parallel_env` has been called."""
    world = entered()
    return world is not None and world.size > 1


def get_rank(group: Any = None) -> int:
    """The rank of this process, from 0."""
    return place()[0]


def get_world_size(group: Any = None) -> int:
    """The number of processes."""
    return place()[1]


def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: Any = None, sync_op: bool = True) -> None:
    """Replace a Tensor on every rank with its sum, or another reduction, over all ranks."""
    world = _met("all_reduce")
    how: Any = op
    in_place([tensor._array], lambda array: world.allreduce(array, how))


def reduce(tensor: Tensor, dst: int = 0, op: str = ReduceOp.SUM, group: Any = None, sync_op: bool = True) -> None:
    """Replace a Tensor on rank `dst` with its sum, or another reduction, over all ranks."""
    mine = tensor._array.copy()
    all_reduce(tensor, op)
    if get_rank() != dst:
        tensor._array[...] = mine


def broadcast(tensor: Tensor, src: int = 0, group: Any = None, sync_op: bool = True) -> None:
    """Replace a Tensor on every rank with that of rank `src`."""
    world = _met("broadcast")
    in_place([tensor._array], lambda array: world.broadcast(array, src))


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, sync_op: bool = True) -> None:
    """Collect the Tensors of all ranks in a list: appended to it, or copied into the Tensors that it holds."""
    world = _met("all_gather")
    found = [tensor.clone().detach() for _ in range(world.size)]
    for rank, theirs in enumerate(found):
        in_place([theirs._array], lambda array, rank=rank: world.broadcast(array, rank))
    if len(tensor_list) == world.size:
        for place, theirs in zip(tensor_list, found, strict=True):
            place.set_value(theirs)
    else:
        tensor_list += found


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Collect an object of each rank in a list. Objects are plain data: text, numbers, lists and dicts."""
    object_list[:] = _met("all_gather_object").gather(obj)


def barrier(group: Any = None) -> None:
    """Wait until every rank has called this."""
    _met("barrier").barrier()


def _met(what: str) -> World:
    if launched() is not None and not is_initialized():
        raise DistError(f"{what} needs the other ranks: call init_parallel_env() first")
    return current()


def spawn(
    func: Callable[..., Any], args: Sequence[Any] = (), nprocs: int = 1, join: bool = True, **options: Any
) -> None:
    """Call a function in this process. Other processes are started by mpiexec."""
    there = get_world_size()
    if nprocs not in (-1, there):
        raise DistError(
            f"spawn: found nprocs={nprocs}, and {there} process{'es' * (there > 1)}; start the program with "
            f"`mpiexec -n {nprocs} python program.py`"
        )
    func(*args)
