"""Reverse-mode differentiation, shared by the eager tape and Programs.

The walk needs only the keys of the inputs and outputs of each call. The definition of the operator computes the
gradients from the values of the call, whatever their class.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Protocol

import numpy as np

from app.errors import DtypeError
from app.ops.dtype import is_float
from app.ops.rules import Call
from app.ops.values import Gradient


class Recorded(Call, Protocol):
    """A call with a key for each of its values."""

    @property
    def input_keys(self) -> Sequence[Hashable]:
        """The keys of the inputs, under which their gradients are stored."""

    @property
    def output_keys(self) -> Sequence[Hashable]:
        """The keys of the outputs."""


def check_dtype_of_gradient(value: str, dtype: str | np.dtype) -> None:
    """Refuse a gradient with respect to integers or booleans, which would be rounded to their type."""
    if not is_float(dtype):
        raise DtypeError(
            f"the gradient of {value}, of {dtype}, would be rounded to that type; make it of floats, such as "
            "to_tensor(x, dtype='float32', stop_gradient=False), or set stop_gradient to True, so that it gets none"
        )


def reverse_walk(
    calls: Iterable[Recorded],
    gradients: dict[Hashable, Gradient],
    complete: Callable[[Hashable, Gradient], Gradient] | None = None,
) -> None:
    """Walk `calls`, given in reverse order, and add to `gradients`.

    A gradient is complete when the walk reaches the call that computed its value. `complete` is then called with it and
    returns the gradient to use. At the end, `gradients` has those of the values that no call computed.
    """
    for call in calls:
        douts, has_gradient = [], False
        for key in call.output_keys:
            gradient = gradients.pop(key, None)
            if gradient is not None:
                if complete is not None:
                    gradient = complete(key, gradient)
                has_gradient = has_gradient or gradient is not None
            douts.append(gradient)
        if not has_gradient:
            continue
        keys = call.input_keys
        for place, gradient in enumerate(call.definition.differentiate(call, douts)):
            if gradient is not None:
                key = keys[place]
                before = gradients.get(key)
                gradients[key] = gradient if before is None else before + gradient
