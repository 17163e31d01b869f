"""Gradient clipping: what an optimiser takes as `grad_clip`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.errors import OperatorError
from app.ops.arithmetic import add_n, maximum
from app.ops.dtype import canonical
from app.ops.math import sqrt, square
from app.ops.reduction import sum_
from app.ops.rounding import clip
from app.ops.shaping import cast

Pairs = Sequence[tuple[Any, Any]]


class ClipGrad:
    """The base. Called with pairs of a parameter and its gradient, it returns them with clipped gradients."""

    def __call__(self, params_grads: Pairs) -> list[tuple[Any, Any]]:
        pairs = [pair for pair in params_grads if pair[1] is not None and _is_clipped(pair[0])]
        clipped = dict(zip([id(parameter) for parameter, _ in pairs], self.clipped([g for _, g in pairs]), strict=True))
        return [(parameter, clipped.get(id(parameter), gradient)) for parameter, gradient in params_grads]

    def clipped(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """The gradients, clipped; subclasses define this."""
        raise NotImplementedError(f"{type(self).__name__} needs a method clipped")


def _is_clipped(parameter: Any) -> bool:
    attr = getattr(parameter, "attr", None)
    return True if attr is None else bool(attr.need_clip)


class ClipGradByValue(ClipGrad):
    """Clips each element of each gradient to the range from `min` to `max`."""

    def __init__(self, max: float, min: float | None = None):
        self.max, self.min = float(max), -float(max) if min is None else float(min)
        if not self.min <= self.max:
            raise OperatorError(f"ClipGradByValue: min cannot be above max, found {self.min} and {self.max}")

    def clipped(self, gradients: Sequence[Any]) -> Sequence[Any]:
        return [clip(gradient, self.min, self.max) for gradient in gradients]


class ClipGradByNorm(ClipGrad):
    """Scales down each gradient whose norm exceeds `clip_norm`."""

    def __init__(self, clip_norm: float):
        self.clip_norm = _positive(self, clip_norm)

    def clipped(self, gradients: Sequence[Any]) -> Sequence[Any]:
        sizes = [sqrt(sum_(square(in_single(gradient)))) for gradient in gradients]
        return [
            gradient * like(_share(size, self.clip_norm), gradient)
            for gradient, size in zip(gradients, sizes, strict=True)
        ]


class ClipGradByGlobalNorm(ClipGrad):
    """Scales all gradients down by one factor if their norm, taken together, exceeds `clip_norm`."""

    def __init__(self, clip_norm: float):
        self.clip_norm = _positive(self, clip_norm)

    def clipped(self, gradients: Sequence[Any]) -> Sequence[Any]:
        if not gradients:
            return []
        share = _share(sqrt(add_n([sum_(square(in_single(gradient))) for gradient in gradients])), self.clip_norm)
        return [gradient * cast(share, dtype=gradient.dtype) for gradient in gradients]


def in_single(value: Any) -> Any:
    """A value of half precision, whose squares overflow from 256 on, in single precision; others unchanged."""
    return cast(value, dtype="float32") if canonical(value.dtype) == "float16" else value


def like(value: Any, other: Any) -> Any:
    """A value in the element type of another one."""
    return value if value.dtype == other.dtype else cast(value, dtype=other.dtype)


def _positive(kind: Any, norm: float) -> float:
    if not float(norm) > 0:
        raise OperatorError(f"{type(kind).__name__}: clip_norm must be above 0, found {norm}")
    return float(norm)


def _share(size: Any, limit: float) -> Any:
    """The factor that brings a norm down to a limit; at most 1."""
    return limit / maximum(size, limit)
