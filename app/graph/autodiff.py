"""The one reverse walk: it turns gradients of results into gradients of what they were computed from.

It serves the eager tape and Programs alike, as it only asks each call for the names of its inputs and outputs
and lets the operator's definition make the gradients, out of whatever kind of value the call holds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Protocol

from app.ops.rules import Call


class Recorded(Call, Protocol):
    """A call that knows where its values stand."""

    @property
    def input_keys(self) -> Sequence[Hashable]:
        """What the gradients of the inputs are kept under."""

    @property
    def output_keys(self) -> Sequence[Hashable]:
        """What the gradients of the outputs are kept under."""


def reverse_walk(
    calls: Iterable[Recorded],
    gradients: dict[Hashable, Any],
    complete: Callable[[Hashable, Any], Any] | None = None,
) -> None:
    """Walk `calls`, the last first, adding to `gradients`.

    A gradient is complete when the call that made its value is reached: `complete` then sees it, and may change
    it. What remains in `gradients` at the end belongs to values that no call made.
    """
    for call in calls:
        douts, arrived = [], False
        for key in call.output_keys:
            gradient = gradients.pop(key, None)
            if gradient is not None:
                if complete is not None:
                    gradient = complete(key, gradient)
                arrived = arrived or gradient is not None
            douts.append(gradient)
        if not arrived:
            continue
        keys = call.input_keys
        for place, gradient in enumerate(call.definition.differentiate(call, douts)):
            if gradient is not None:
                key = keys[place]
                before = gradients.get(key)
                gradients[key] = gradient if before is None else before + gradient
