"""Gradients held against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.errors import OperatorError
from app.tensor import Tensor, grad


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Whether the gradients of `func` at float64 `inputs` agree with central differences.

    Where they do not, the error names the worst element and both values, or False is returned.
    """
    tensors = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    for position, tensor in enumerate(tensors):
        if not tensor.stop_gradient and tensor.dtype != "float64":
            raise OperatorError(
                f"gradcheck needs float64 to tell rounding from mistakes; input {position} is {tensor.dtype}"
            )
    weights = [np.random.default_rng(0).uniform(0.5, 1.5, o.shape) for o in _outputs(func, tensors)]
    for position, tensor in enumerate(tensors):
        if tensor.stop_gradient:
            continue
        analytic = _analytic(func, tensors, tensor, weights)
        numeric = _numeric(func, tensors, tensor, weights, eps)
        wrong = np.abs(analytic - numeric) > atol + rtol * np.abs(numeric)
        if wrong.any() or not np.isfinite(analytic).all():
            if not raise_exception:
                return False
            worst = np.unravel_index(np.nanargmax(np.abs(analytic - numeric)), analytic.shape)
            raise OperatorError(
                f"the gradient of input {position} is wrong in {int(wrong.sum())} of {wrong.size} elements; worst at "
                f"{[int(i) for i in worst]}: backward gives {analytic[worst]:.8g}, "
                f"finite differences give {numeric[worst]:.8g}"
            )
    return True


def _outputs(func: Callable[..., Any], tensors: Sequence[Tensor]) -> list[Tensor]:
    result = func(*tensors)
    found = [r for r in (result if isinstance(result, (tuple, list)) else (result,)) if isinstance(r, Tensor)]
    return [r for r in found if r.dtype in ("float32", "float64")]


def _analytic(func: Callable[..., Any], tensors: Sequence[Tensor], wanted: Tensor, weights: list[Any]) -> np.ndarray:
    outputs = [(o, w) for o, w in zip(_outputs(func, tensors), weights, strict=True) if not o.stop_gradient]
    if not outputs:
        return np.zeros(wanted.shape)
    found = grad([o for o, _ in outputs], [wanted], [Tensor(w) for _, w in outputs], allow_unused=True)[0]
    return np.zeros(wanted.shape) if found is None else found.numpy()


def _numeric(
    func: Callable[..., Any], tensors: Sequence[Tensor], moved: Tensor, weights: list[Any], eps: float
) -> np.ndarray:
    point = moved.numpy()
    slope = np.zeros(point.shape)
    for index in np.ndindex(*point.shape):
        values = []
        for step in (eps, -eps):
            shifted = point.copy()
            shifted[index] += step
            moved.set_value(shifted)
            values.append(
                sum(float((o.numpy() * w).sum()) for o, w in zip(_outputs(func, tensors), weights, strict=True))
            )
        slope[index] = (values[0] - values[1]) / (2 * eps)
    moved.set_value(point)
    return slope
