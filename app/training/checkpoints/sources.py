"""The hashes of the sources of a run's operators, by which a change of one is noticed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from app.custom.source import source_hash
from app.errors import OperatorError
from app.nn import Layer
from app.training.activation import Activation


def sources_of(activations: Sequence[Activation]) -> dict[str, str | None]:
    """The hash of each operator's source; None for those of the framework's own."""
    return {activation.name: _source_of(activation.operator) for activation in activations}


def _source_of(operator: Callable[..., Any]) -> str | None:
    thing: Any = getattr(operator, "__self__", operator)  # a PyLayer is used through its apply
    try:
        return source_hash(type(thing) if isinstance(thing, Layer) else thing)
    except OperatorError:
        return None


def check_sources(before: dict[str, str | None], now: dict[str, str | None]) -> None:
    """Refuse to go on with operators that are others now."""
    changed = [name for name, source in now.items() if before.get(name, source) != source]
    if changed:
        raise OperatorError(
            f"the source of {' and of '.join(changed)}, or of a function that it calls, has changed since the run was "
            "interrupted, so that it would go on as another one. Restore it, or begin a run anew"
        )
