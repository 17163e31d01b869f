"""Gradients and their gradients compared with finite differences: which elements are wrong, and by how much."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from app.errors import GradcheckError, GradientError, OperatorError
from app.listed import as_list
from app.ops.dtype import is_float
from app.tensor import Tensor, grad

SMOOTH, KINK, JUMP = "", "kink", "jump"
_FINER = 8.0
"""How many times smaller the second step is, which distinguishes a kink from a curve."""
_ROUNDING = 8.0
"""The relative error of an output, in the spacing of its type at 1. The quotient of differences of large outputs has a
large error."""


@dataclass
class Comparison:
    """The gradient of one input beside finite differences."""

    place: int
    """Which input it is."""
    gradient: np.ndarray
    numeric: np.ndarray
    kinds: np.ndarray
    """What the function does at each element that does not agree: SMOOTH, KINK or JUMP."""
    wrong: np.ndarray
    """The elements that do not agree, except at a jump, or at a kink with a gradient between the two slopes."""
    arriving: np.ndarray | None = None
    """The gradient of the only output; None if there are several outputs."""

    def says(self, by: str, other: str, inputs: Mapping[str, np.ndarray] | None = None) -> str:
        """How many elements are wrong, and the worst of them; '' if none is wrong."""
        return worst_of(self.gradient, self.numeric, self.wrong, by, other, inputs)


def worst_of(
    actual: np.ndarray,
    expected: np.ndarray,
    wrong: np.ndarray,
    by: str,
    other: str,
    inputs: Mapping[str, np.ndarray] | None = None,
) -> str:
    """A sentence on how many elements are wrong, with both values at the worst one; '' if none is wrong.

    `inputs` are shown at that element, if they have its shape.
    """
    if not wrong.any():
        return ""
    distance = np.where(wrong, distances(actual, expected), -1.0)
    worst = np.unravel_index(np.argmax(distance), actual.shape)
    at = [f", {name} = {array[worst]:.4g}" for name, array in (inputs or {}).items() if array.shape == actual.shape]
    return (
        f"wrong in {int(wrong.sum())} of {wrong.size} elements; worst at {[int(i) for i in worst]}{''.join(at)}: "
        f"{by} {actual[worst]:.8g}, {other} {expected[worst]:.8g}"
    )


def distances(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Absolute differences; infinite where either number is NaN."""
    with np.errstate(invalid="ignore"):
        distance = np.abs(actual - expected)
    return np.where(np.isnan(distance), np.inf, distance)


def are_far(actual: np.ndarray, expected: np.ndarray, atol: float | np.ndarray, rtol: float) -> np.ndarray:
    """Which numbers differ by more than the tolerances."""
    distance = distances(actual, expected)
    return np.isinf(distance) | (distance > atol + rtol * np.abs(expected))


def kind_at(value_at: Callable[[float], float], gradient: float, eps: float, atol: float, rtol: float) -> str:
    """What a function does where its gradient does not agree with central differences.

    `value_at` gives its value a step away. At a kink the left and right slopes differ however small the step is, and
    the gradient must lie between them; at a jump they grow as the step shrinks. At a jump whose own value is half-way,
    as that of sign at 0, they grow alike.
    """
    here = value_at(0.0)
    if np.isnan(here) or np.isnan(gradient) or here != value_at(0.0):  # NaN, or not a function of the input alone
        return SMOOTH
    left, right = (here - value_at(-eps)) / eps, (value_at(eps) - here) / eps
    fine = eps / _FINER
    left_finer, right_finer = (here - value_at(-fine)) / fine, (value_at(fine) - here) / fine
    room = atol + rtol * max(abs(left_finer), abs(right_finer))
    apart, apart_finer = abs(right - left), abs(right_finer - left_finer)
    if abs((left_finer + right_finer) / 2 - gradient) <= room:
        return KINK  # the kink lies within the larger step
    finest = fine / _FINER
    both = [(left + right) / 2, (left_finer + right_finer) / 2, (value_at(finest) - value_at(-finest)) / (2 * finest)]
    grown, grown_finer = both[1] - both[0], both[2] - both[1]
    if abs(grown) > room and abs(grown_finer - _FINER * grown) <= 0.1 * abs(grown_finer):
        return JUMP
    if apart <= room or not apart_finer > 0.5 * apart:
        return SMOOTH
    if apart_finer > 0.5 * _FINER * apart:
        return JUMP
    between = min(left_finer, right_finer) - room <= gradient <= max(left_finer, right_finer) + room
    return KINK if between else SMOOTH


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
) -> bool:
    """Whether the gradients of `func` at float64 `inputs` agree with central differences.

    At a kink, such as relu at 0, any value between the left and the right slope is right; at a jump any value is.

    Args:
        func: A function of Tensors.
        inputs: One Tensor or several. Those with `stop_gradient=True`, and other values, are not checked.
        eps: The step of the differences.
        atol: The absolute tolerance.
        rtol: The relative tolerance.
        raise_exception: Raise an error instead of returning False.
        nondet_tol: How much two backward passes may differ.
        check_undefined_grad: Also differentiate each of several outputs alone.

    Raises:
        GradcheckError: The gradients differ. The message names the worst element and both values.
    """
    checked = Checked(func, inputs, eps)
    try:
        checked.compare(atol, rtol, nondet_tol)
        if check_undefined_grad:
            checked.derive_outputs_alone(atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
) -> bool:
    """Whether the gradients of the gradients of `func` agree with central differences.

    The first gradients start from `grad_outputs` or from random numbers, and are differentiated by these, too.
    """
    input_list = as_list(inputs)
    places = [place for place, x in enumerate(input_list) if isinstance(x, Tensor) and not x.stop_gradient]
    outputs = _derivable(func(*input_list))
    starts = _random_starts(outputs) if grad_outputs is None else as_list(grad_outputs)

    def gradients(*values: Any) -> tuple[Any, ...]:
        arguments, weights = values[: len(input_list)], list(values[len(input_list) :])
        results = _derivable(func(*arguments))
        gradients_found = grad(results, [arguments[i] for i in places], weights, create_graph=True, allow_unused=True)
        return tuple(g for g in gradients_found if g is not None)

    return gradcheck(
        gradients, [*input_list, *starts], eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad
    )


def _derivable(result: Any) -> list[Tensor]:
    return [r for r in as_list(result) if isinstance(r, Tensor) and not r.stop_gradient]


def _random_starts(outputs: Sequence[Tensor]) -> list[Tensor]:
    random = np.random.default_rng(0)
    return [Tensor(random.uniform(0.5, 1.5, o._array.shape).astype(o._array.dtype), False) for o in outputs]


class Checked:
    """A function at one point, the inputs that are checked, and the weights of the sum of its outputs."""

    def __init__(self, func: Callable[..., Any], inputs: Any, eps: float):
        self._func, self._eps = func, eps
        self._inputs = as_list(inputs)
        self._places = [i for i, x in enumerate(self._inputs) if isinstance(x, Tensor) and not x.stop_gradient]
        self._require_precision()
        random = np.random.default_rng(0)
        self._weights: list[Any] = [random.uniform(0.5, 1.5, o._array.shape) for o in self._outputs()]

    def _require_precision(self) -> None:
        for place in self._places:
            dtype = self._inputs[place]._array.dtype
            least = float(np.sqrt(np.finfo(dtype).eps))
            if self._eps < least:
                raise OperatorError(
                    f"gradcheck needs float64 to tell rounding from mistakes; input {place} is {dtype.name} (which "
                    f"takes an eps of {least:.0e} or more, and tolerances to match)"
                )
        if not self._places:
            raise GradientError("gradcheck needs an input with stop_gradient=False; there is nothing to check")

    def _outputs(self) -> list[Tensor]:
        """The results that are floats. One without a gradient beside others, such as a mask, is meant to have none."""
        result = self._func(*self._inputs)
        floats = [r for r in as_list(result) if isinstance(r, Tensor) and is_float(r._array.dtype)]
        if not floats:
            raise GradientError(
                f"gradcheck needs a function that returns Tensors of floats, found {type(result).__name__}"
            )
        return [r for r in floats if not r.stop_gradient] or floats

    def compare(self, atol: float, rtol: float, nondet_tol: float) -> None:
        """Compare the gradients with finite differences and with those of a second backward pass."""
        repeated = self.gradients(self._weights)
        for comparison, again in zip(self.comparisons(atol, rtol), repeated, strict=True):
            what = f"the gradient of input {comparison.place}"
            difference = comparison.says("backward gives", "finite differences give")
            if difference:
                raise GradcheckError(f"{what} is {difference}")
            what = f"{what} is not reproducible (Backward is not reentrant): it"
            _require_close(again, comparison.gradient, nondet_tol, 0.0, what, "a second pass", "the first gave")

    def comparisons(self, atol: float, rtol: float) -> list[Comparison]:
        """The gradient of each checked input beside finite differences."""
        gradients = self.gradients(self._weights)
        return [self._compared(place, g, atol, rtol) for place, g in zip(self._places, gradients, strict=True)]

    def _compared(self, place: int, gradient: np.ndarray, atol: float, rtol: float) -> Comparison:
        moved = self._inputs[place]
        point = moved._array.copy()

        before = [output._array.copy() for output in self._outputs()]

        def changed(index: tuple[int, ...], step: float) -> tuple[float, float]:
            """The change of the sum of the outputs, and the error of its slope by rounding those that change."""
            shifted = point.copy()
            shifted[index] += step
            moved.set_value(shifted)
            change = size = 0.0
            for output, old, weight in zip(self._outputs(), before, self._weights, strict=True):
                places = output._array != old  # others may be infinite, or so large that nothing else would count
                new, old, weight = output._array[places], old[places], weight[places]
                change += float(((new - old) * weight).sum())
                size += float(np.abs(old * weight).sum() * np.finfo(old.dtype).eps)
            return change, _ROUNDING * size / self._eps if np.isfinite(size) else 0.0

        def value_at(index: tuple[int, ...], step: float) -> float:
            return changed(index, step)[0]

        def rounding_of_all(index: tuple[int, ...]) -> float:
            """The same of all outputs that depend on an element: rounding a large one may hide the change."""
            try:
                return changed(index, max(1.0, abs(float(point[index]))))[1]
            except Exception:  # the function refuses such a number
                return 0.0

        numeric, rounding = np.zeros(point.shape), np.zeros(point.shape)
        kinds = np.full(point.shape, SMOOTH, "<U4")
        try:
            for index in np.ndindex(*point.shape):
                (above, rounding[index]), (below, _) = changed(index, self._eps), changed(index, -self._eps)
                numeric[index] = (above - below) / (2 * self._eps)
            wrong = are_far(gradient, numeric, atol + rounding, rtol)
            for index in map(tuple, np.argwhere(wrong)):
                room = atol + max(float(rounding[index]), rounding_of_all(index))
                wrong[index] = are_far(gradient[index], numeric[index], room, rtol)
                if wrong[index]:
                    kinds[index] = kind_at(partial(value_at, index), float(gradient[index]), self._eps, room, rtol)
        finally:
            moved.set_value(point)
        arriving = self._weights[0] if len(self._weights) == 1 else None
        return Comparison(place, gradient, numeric, kinds, wrong & (kinds == SMOOTH), arriving)

    def derive_outputs_alone(self, atol: float, rtol: float) -> None:
        """Differentiate each output alone: these gradients must add up to that of all outputs together."""
        if len(self._weights) < 2:
            return
        together = self.gradients(self._weights)
        sums: list[Any] = [np.zeros_like(gradient) for gradient in together]
        for number, weight in enumerate(self._weights):
            alone = [weight if other == number else None for other in range(len(self._weights))]
            sums = [total + part for total, part in zip(sums, self.gradients(alone), strict=True)]
        for place, total, whole in zip(self._places, sums, together, strict=True):
            what = f"the gradient of input {place}, with one output used at a time and no gradient for the others,"
            _require_close(total, whole, atol, rtol, what, "the sum of these", "all outputs together give")

    def gradients(self, weights: Sequence[Any]) -> list[np.ndarray]:
        """The gradients of the checked inputs, from the outputs that have a weight."""
        inputs = [self._inputs[place] for place in self._places]
        outputs = zip(self._outputs(), weights, strict=True)
        weighed = [
            (o, Tensor(np.asarray(w, o._array.dtype))) for o, w in outputs if w is not None and not o.stop_gradient
        ]
        if not weighed:
            return [np.zeros(x._array.shape) for x in inputs]
        gradients = grad([o for o, _ in weighed], inputs, [w for _, w in weighed], allow_unused=True)
        return [np.zeros(x._array.shape) if g is None else g._array for x, g in zip(inputs, gradients, strict=True)]


def _require_close(
    actual: np.ndarray, expected: np.ndarray, atol: float, rtol: float, what: str, by: str, other: str
) -> None:
    """Raise an error that names the worst number, if some differ by more than the tolerances."""
    difference = worst_of(actual, expected, are_far(actual, expected, atol, rtol), f"{by} gives", other)
    if difference:
        raise GradcheckError(f"{what} is {difference}")
