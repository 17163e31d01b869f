"""The collective operators: what the ranks of a world do together, as operators that any engine runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.dist import world
from app.dist.messages import BUCKET, in_messages
from app.ops.definition import OpDef
from app.ops.form import InPlace
from app.ops.spec import Spec


def _collective(name: str, exchange: Callable[[np.ndarray], None], changes: bool = True) -> OpDef:
    """The operator that does this with the numbers of its inputs; `changes`, where they come out with other values."""

    def calls(arrays: Sequence[np.ndarray], bucket: int) -> Callable[[], None]:
        return in_messages(arrays, bucket, exchange)

    def kernel(*x: Any, bucket: int = BUCKET) -> tuple[np.ndarray, ...]:
        arrays = [np.array(array) for array in x]
        calls(arrays, bucket)()
        return tuple(arrays) if changes else ()

    def infer(*x: Spec, bucket: int = BUCKET) -> tuple[Spec, ...]:
        return x if changes else ()

    return OpDef(name, kernel, infer, many_outputs=True, effects=True, form=InPlace(calls))


def _sum(numbers: np.ndarray) -> None:
    world.current().allreduce(numbers)


def _mean(numbers: np.ndarray) -> None:
    world.current().allreduce(numbers, "avg")


def _sum_at_first(numbers: np.ndarray) -> None:
    world.current().reduce(numbers)


def _copy_of_first(numbers: np.ndarray) -> None:
    world.current().broadcast(numbers)


all_reduce = _collective("all_reduce", _sum)
"""Each value becomes its sum over all ranks."""

average = _collective("average", _mean)
"""Each value becomes its mean over all ranks."""

broadcast = _collective("broadcast", _copy_of_first)
"""Each value becomes what the first rank has."""

send_gradients = _collective("send_gradients", _sum_at_first, changes=False)
"""A trainer's part of the sum that the parameter server makes."""

receive_gradients = _collective("receive_gradients", _sum_at_first)
"""At the parameter server, each value becomes its sum over all ranks."""

send_parameters = _collective("send_parameters", _copy_of_first, changes=False)
"""The parameter server's values, to all trainers."""

receive_parameters = _collective("receive_parameters", _copy_of_first)
"""At a trainer, each value becomes what the parameter server has."""
