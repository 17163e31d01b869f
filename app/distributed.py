"""Many processes from within a program: who they are, what they send each other, a layer that they share.

The names are Paddle's. `mpiexec -n 2 python program.py` starts the processes; without it there is one, and all of
this does nothing.
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
    """How numbers of many ranks become one."""

    SUM, MAX, MIN, PROD, AVG = "sum", "max", "min", "prod", "avg"


class ParallelEnv:
    """Which of the processes this one is."""

    current_endpoint = ""
    trainer_endpoints: Sequence[str] = ()

    @property
    def rank(self) -> int:
        """From 0 on."""
        return get_rank()

    @property
    def local_rank(self) -> int:
        """The same among the processes of this machine, if they have met."""
        world = entered()
        return world.local_rank if world is not None else 0

    device_id = dev_id = local_rank

    @property
    def world_size(self) -> int:
        """How many processes there are."""
        return get_world_size()

    nranks = world_size


def init_parallel_env() -> None:
    """Meet the other processes. From here on, whatever ends one of them ends all, with one message."""
    if not is_initialized() and launched() is not None:
        from app.ranks import ending  # imported late, as few programs need it

        ending.join()


def is_initialized() -> bool:
    """Whether other processes were met."""
    world = entered()
    return world is not None and world.size > 1


def get_rank(group: Any = None) -> int:
    """Which of the processes this one is, from 0 on."""
    return place()[0]


def get_world_size(group: Any = None) -> int:
    """How many processes there are."""
    return place()[1]


def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: Any = None, sync_op: bool = True) -> None:
    """Replace a Tensor's numbers, at every rank, by the sum over all ranks, or another reduction."""
    world = _met("all_reduce")
    how: Any = op
    in_place([tensor._array], lambda array: world.allreduce(array, how))


def reduce(tensor: Tensor, dst: int = 0, op: str = ReduceOp.SUM, group: Any = None, sync_op: bool = True) -> None:
    """The same, at the rank `dst` alone."""
    mine = tensor._array.copy()
    all_reduce(tensor, op)
    if get_rank() != dst:
        tensor._array[...] = mine


def broadcast(tensor: Tensor, src: int = 0, group: Any = None, sync_op: bool = True) -> None:
    """Replace a Tensor's numbers by those of the rank `src`."""
    world = _met("broadcast")
    in_place([tensor._array], lambda array: world.broadcast(array, src))


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, sync_op: bool = True) -> None:
    """Put the Tensor of each rank, all of one shape, into a list: at its end or, where it holds them, in place."""
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
    """Put what each rank has to say into a list: plain data, such as text, numbers, lists and dicts."""
    object_list[:] = _met("all_gather_object").gather(obj)


def barrier(group: Any = None) -> None:
    """Wait until every rank has come here."""
    _met("barrier").barrier()


def _met(what: str) -> World:
    if launched() is not None and not is_initialized():
        raise DistError(f"{what} before the ranks have met: call init_parallel_env() first")
    return current()


def spawn(
    func: Callable[..., Any], args: Sequence[Any] = (), nprocs: int = 1, join: bool = True, **options: Any
) -> None:
    """Call a function, in this process: others are started by mpiexec."""
    there = get_world_size()
    if nprocs not in (-1, there):
        raise DistError(
            f"spawn: found nprocs={nprocs}, and {there} process{'es' * (there > 1)}; start the program with "
            f"`mpiexec -n {nprocs} python program.py`"
        )
    func(*args)
