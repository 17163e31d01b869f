"""The collective operators, which any engine runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.ops.definition import OpDef
from app.ops.lowering import InPlace
from app.ops.spec import Spec
from app.ranks.world import current


def _collective(name: str, exchange: Callable[[np.ndarray], None], changes: bool = True) -> OpDef:
    """An operator that applies `exchange` to its inputs in place; `changes` says whether their values change."""

    def calls(arrays: Sequence[np.ndarray]) -> Callable[[], None]:
        flat = [array.reshape(array.size) for array in arrays]

        def run() -> None:
            for numbers in flat:
                exchange(numbers)

        return run

    def kernel(*x: Any) -> tuple[np.ndarray, ...]:
        arrays = [np.array(array, order="C") for array in x]
        calls(arrays)()
        return tuple(arrays) if changes else ()

    def infer(*x: Spec) -> tuple[Spec, ...]:
        return x if changes else ()

    return OpDef(name, kernel, infer, many_outputs=True, effects=True, lowering=InPlace(calls))


def _average(numbers: np.ndarray) -> None:
    current().allreduce(numbers)
    numbers /= current().size


def _average_at_first(numbers: np.ndarray) -> None:
    current().reduce(numbers)
    numbers /= current().size


average = _collective("average", _average)
"""Each value becomes its mean over all ranks."""

send_gradients = _collective("send_gradients", lambda numbers: current().reduce(numbers), changes=False)
"""A trainer's values, to the parameter server."""

receive_gradients = _collective("receive_gradients", _average_at_first)
"""At the parameter server, each value becomes its mean over all ranks."""

send_parameters = _collective("send_parameters", lambda numbers: current().broadcast(numbers), changes=False)
"""The parameter server's values, to all trainers."""

receive_parameters = _collective("receive_parameters", lambda numbers: current().broadcast(numbers))
"""At a trainer, each value becomes that of the parameter server."""
