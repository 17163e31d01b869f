"""How many processes work together: one, for programs that ask before they train."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from app.errors import AppError
from app.nn import Layer

__all__ = ["DataParallel", "ParallelEnv", "get_rank", "get_world_size", "init_parallel_env", "is_initialized", "spawn"]


class DistributedError(AppError, RuntimeError):
    """More processes than there can be."""


class ParallelEnv:
    """Which of the processes this one is."""

    rank = local_rank = device_id = dev_id = 0
    nranks = world_size = 1
    current_endpoint = ""
    trainer_endpoints: Sequence[str] = ()


def get_rank(group: Any = None) -> int:
    """Which of the processes this one is, from 0 on."""
    return 0


def get_world_size(group: Any = None) -> int:
    """How many processes there are."""
    return 1


def init_parallel_env() -> None:
    """Nothing: one process has no others to find."""


def is_initialized() -> bool:
    """Whether other processes were found."""
    return False


def spawn(
    func: Callable[..., Any], args: Sequence[Any] = (), nprocs: int = 1, join: bool = True, **options: Any
) -> None:
    """Call a function, in this process."""
    if nprocs not in (-1, 1):
        raise DistributedError(f"spawn: there is one process in training, found nprocs={nprocs}; leave it out")
    func(*args)


class DataParallel(Layer):
    """A layer as it is: there are no other processes to share its gradients with."""

    def __init__(self, layers: Layer, **settings: Any):
        super().__init__()
        self._layers = layers

    def forward(self, *inputs: Any, **named: Any) -> Any:
        return self._layers(*inputs, **named)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """That of the layer inside, so that it is loaded with or without this one."""
        return self._layers.state_dict(*args, **kwargs)

    def set_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Give the layer inside its values."""
        return self._layers.set_state_dict(*args, **kwargs)

    set_dict = load_dict = set_state_dict
