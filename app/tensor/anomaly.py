"""Detect the operator whose gradient is NaN, during a backward pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from app.errors import AppError


class AnomalyError(AppError, RuntimeError):
    """A gradient that is NaN, while detection is on."""


class detect_anomaly:  # noqa: N801 - PyTorch's name
    """Inside the block, a backward pass in which an operator's gradient is NaN ends in an error that names it."""

    on = False

    def __init__(self, check_nan: bool = True):
        self._mode, self._outside = check_nan, detect_anomaly.on

    def __enter__(self) -> None:
        detect_anomaly.on = self._mode

    def __exit__(self, *error: object) -> None:
        detect_anomaly.on = self._outside


class set_detect_anomaly(detect_anomaly):  # noqa: N801 - PyTorch's name
    """Switch detection on or off, by a call or inside a `with` block."""

    def __init__(self, mode: bool, check_nan: bool = True):
        super().__init__(mode and check_nan)
        detect_anomaly.on = self._mode


def checked(nodes: Iterable[Any], gradients: Mapping[Any, Any]) -> Iterator[Any]:
    """The nodes. After the walk has added a node's gradients to `gradients`, they are checked for NaN."""
    for node in nodes:
        yield node
        for place, key in enumerate(node.input_keys):
            gradient = gradients.get(key)
            if gradient is not None and np.isnan(getattr(gradient, "_array", gradient)).any():
                raise AnomalyError(
                    f"anomaly detection: {node.definition.label} returned NaN as the gradient of its input {place}, of "
                    f"shape {list(np.shape(gradient))}"
                )
