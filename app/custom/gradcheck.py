"""Gradients held against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.errors import OperatorError
from app.ops.dtype import is_float
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

    Where they do not, the error names the worst element and both values, or False is returned. Inputs with
    `stop_gradient=True` are not checked.
    """
    tensors = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    for position, tensor in enumerate(tensors):
        if not tensor.stop_gradient and tensor.dtype != "float64":
            raise OperatorError(
                f"gradcheck needs float64 to tell rounding from mistakes; input {position} is {tensor.dtype}"
            )
    if all(tensor.stop_gradient for tensor in tensors):
        raise OperatorError("gradcheck needs an input with stop_gradient=False; there is nothing to check")
    random = np.random.default_rng(0)
    weights = [random.uniform(0.5, 1.5, o.shape) for o in _outputs(func, tensors)]
    for position, tensor in enumerate(tensors):
        if tensor.stop_gradient:
            continue
        analytic = _analytic(func, tensors, tensor, weights)
        numeric = _numeric(func, tensors, tensor, weights, eps)
        with np.errstate(invalid="ignore"):
            distance = np.abs(analytic - numeric)
        distance = np.where(np.isnan(distance), np.inf, distance)
        wrong = np.isinf(distance) | (distance > atol + rtol * np.abs(numeric))
        if wrong.any():
            if not raise_exception:
                return False
            worst = np.unravel_index(np.argmax(distance), analytic.shape)
            raise OperatorError(
                f"the gradient of input {position} is wrong in {int(wrong.sum())} of {wrong.size} elements; worst at "
                f"{[int(i) for i in worst]}: backward gives {analytic[worst]:.8g}, "
                f"finite differences give {numeric[worst]:.8g}"
            )
    return True


def _outputs(func: Callable[..., Any], tensors: Sequence[Tensor]) -> list[Tensor]:
    result = func(*tensors)
    results = result if isinstance(result, (tuple, list)) else (result,)
    floats = [r for r in results if isinstance(r, Tensor) and is_float(r.dtype)]
    if not floats:
        raise OperatorError(f"gradcheck needs a function that returns Tensors of floats, found {type(result).__name__}")
    return floats


def _analytic(func: Callable[..., Any], tensors: Sequence[Tensor], wanted: Tensor, weights: list[Any]) -> np.ndarray:
    outputs = [(o, w) for o, w in zip(_outputs(func, tensors), weights, strict=True) if not o.stop_gradient]
    if not outputs:
        return np.zeros(wanted.shape)
    found = grad([o for o, _ in outputs], [wanted], [Tensor(w) for _, w in outputs], allow_unused=True)[0]
    return np.zeros(wanted.shape) if found is None else found._array


def _numeric(
    func: Callable[..., Any], tensors: Sequence[Tensor], moved: Tensor, weights: list[Any], eps: float
) -> np.ndarray:
    point = moved._array.copy()

    def value_at(index: tuple[int, ...], step: float) -> float:
        shifted = point.copy()
        shifted[index] += step
        moved.set_value(shifted)
        return sum(float((o._array * w).sum()) for o, w in zip(_outputs(func, tensors), weights, strict=True))

    slope = np.zeros(point.shape)
    try:
        for index in np.ndindex(*point.shape):
            slope[index] = (value_at(index, eps) - value_at(index, -eps)) / (2 * eps)
    finally:
        moved.set_value(point)
    return slope
