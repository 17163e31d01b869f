"""The gradient along a random direction: two calls compare all of its elements with a difference, at any size.

Finite differences of each element take two calls for each. The elements of one row are compared only where the
direction shows a mistake.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from app.checking.checks.diagnosis import diagnosis_of
from app.checking.subject import FLOAT64, Arrays, Result, Subject
from app.custom.gradcheck import Checked

_STEPS = (1e-6, 1e-7, 1e-8)
"""The steps of the differences, relative to the inputs: where the gradient does not agree, all are tried."""
_TOLERANCE, _ROUNDING = 1e-6, 64 * float(np.finfo(np.float64).eps)
_APART = 0.2
"""How far the slopes for two steps may be apart, relative to their distance to the gradient, to prove it wrong."""
_MOVED = 0.05
"""How far inputs are moved, relative to their size: equal numbers, as of black pixels, would be at a kink of max."""
_WIDE = (3.0, 100.0)
"""How many times larger a third of the numbers is made, since numbers in training grow."""


@dataclass(frozen=True)
class Point:
    """An operator at some inputs."""

    subject: Subject
    arrays: Arrays

    @property
    def inputs(self) -> str:
        """The names, types and shapes of the inputs, for messages."""
        return ", ".join(map(str, self.subject.inputs))

    def rows(self, start: int, end: int) -> Point:
        """The operator with some rows of its input."""
        x = self.arrays[0][start:end].copy()
        inputs = (self.subject.inputs[0]._replace(shape=x.shape), *self.subject.inputs[1:])
        return Point(replace(self.subject, inputs=inputs), [x, *self.arrays[1:]])

    def run(self, arriving: Arrays | None = None) -> Result:
        return self.subject.run(self.arrays, arriving)


def moved(arrays: Arrays, seed: int) -> Arrays:
    """Numbers close to these, so that equal ones differ."""
    generator = np.random.default_rng(seed)
    return [a + _MOVED * _size_of(a) * generator.standard_normal(a.shape) if a.dtype.kind == "f" else a for a in arrays]


def _usual(array: np.ndarray) -> float:
    """The median of the absolute numbers; 1 if that is 0."""
    return float(np.median(np.abs(array))) or 1.0


def _size_of(array: np.ndarray) -> float:
    """The root of the mean square of the finite numbers; 1 if that is 0."""
    finite = array[np.isfinite(array)]
    return float(np.sqrt(np.mean(finite * finite))) or 1.0 if finite.size else 1.0


def how_gradient_is_wrong(of: Point) -> str:
    """How the gradient differs from finite differences along random directions; '' if it does not.

    The inputs are those of the network and, if results are finite there, the same with a third of them larger.
    """
    wider = _wider(of)
    points = (of, wider) if wider.subject.is_finite(wider.arrays) else (of,)
    return next(filter(None, (how_gradient_is_wrong_at(point) for point in points)), "")


def how_gradient_is_wrong_at(of: Point) -> str:
    """How the gradient differs from differences at these inputs; '' if it does not."""
    if not _Direction(of, 0).is_wrong:
        return ""
    elsewhere = replace(of, arrays=moved(of.arrays, 4))  # no element is close to a kink both times
    again = _Direction(elsewhere, 1)
    return (_of_elements(elsewhere, again) or again.message) if again.is_wrong else ""


def _wider(of: Point) -> Point:
    generator = np.random.default_rng(2)
    low, high = np.log(_WIDE)
    factors = np.exp(generator.uniform(low, high, of.arrays[0].shape))
    larger = generator.random(of.arrays[0].shape) < 1 / 3
    return replace(of, arrays=[np.where(larger, of.arrays[0] * factors, of.arrays[0]), *of.arrays[1:]])


class _Direction:
    """The derivative of a weighted sum of the results along a random direction of the inputs: by the gradient, and by
    central differences.

    Where the step crosses a kink or a jump, or rounding prevails, the slope changes with the step. It proves nothing.
    """

    def __init__(self, of: Point, seed: int):
        self._of = of
        generator = np.random.default_rng([3, seed])
        subject = of.subject
        tensors = subject.tensors(of.arrays)
        outputs = subject.applied(tensors)
        values = [o._array for o in outputs]
        self._weights = [_signed(generator, v.shape) / (1 + np.abs(v)) for v in values]
        gradients = subject.gradients(
            tensors, outputs, [w.astype(v.dtype) for w, v in zip(self._weights, values, strict=True)]
        )
        self._has_gradient = [not o.stop_gradient for o in outputs]
        self._floats = [place for place, t in enumerate(tensors) if not t.stop_gradient]
        floats = [of.arrays[place] for place in self._floats]
        self._gradients = [np.zeros(a.shape) if g is None else g for g, a in zip(gradients, floats, strict=True)]
        self._direction = [_signed(generator, a.shape) * np.where(a == 0, _usual(a), np.abs(a)) for a in floats]
        self.distances: np.ndarray | None = None
        """How far both are apart for each row, or for each element of an elementwise operator; None if unknown."""
        self.message = ""
        self.is_wrong = self._compare()

    def _compare(self) -> bool:
        slopes: list[float] = []
        for step in _STEPS:
            slope, by_gradient, tolerance = self._slopes(step)
            if not abs(slope - by_gradient) > tolerance:
                return False
            if slopes and not abs(slope - slopes[-1]) <= _APART * abs(slope - by_gradient):
                return False
            slopes.append(slope)
        self.message = f"in a random direction: backward gives {by_gradient:.8g}, finite differences give {slope:.8g}"
        return True

    def _slopes(self, step: float) -> tuple[float, float, float]:
        """The derivative by differences and by the gradient, and how far they may be apart by rounding."""
        above, below = ([*self._of.arrays] for _ in range(2))
        moved = []  # what rounding left of the direction
        for place, direction in zip(self._floats, self._direction, strict=True):
            above[place], below[place] = (self._of.arrays[place] + side * step * direction for side in (1, -1))
            moved.append((above[place] - below[place]) / (2 * step))
        ahead, behind = self._of.subject.outputs(above), self._of.subject.outputs(below)
        slopes, rounding = [], 0.0
        for a, b, weight, counts in zip(ahead, behind, self._weights, self._has_gradient, strict=True):
            if counts:
                slopes.append(weight * (a - b) / (2 * step))
                rounding += float(np.sum((weight * (np.abs(a) + np.abs(b)) / (2 * step)) ** 2))
        terms = [g * m for g, m in zip(self._gradients, moved, strict=True)]
        self.distances = self._distances(slopes, terms)
        size = float(np.sqrt(sum(float(np.sum(t * t)) for t in terms)))
        slope, by_gradient = (float(sum(float(p.sum()) for p in parts)) for parts in (slopes, terms))
        return slope, by_gradient, _TOLERANCE * (1 + size) + _ROUNDING * float(np.sqrt(rounding))

    def _distances(self, slopes: Arrays, terms: Arrays) -> np.ndarray | None:
        x = self._of.arrays[0]
        if len(self._of.arrays) > 1 or any(s.shape[:1] != x.shape[:1] for s in slopes):
            return None
        if self._of.subject.operator.elementwise:
            return np.asarray(np.abs(sum(slopes) - terms[0]))
        return np.asarray(
            np.abs(sum(s.reshape(len(x), -1).sum(1) for s in slopes) - terms[0].reshape(len(x), -1).sum(1))
        )


def _signed(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return np.asarray(generator.uniform(0.5, 1.5, shape) * generator.choice((-1.0, 1.0), shape))


_SHOWN, _LARGEST_ROW = 24, 4000
"""The number of elements that are compared one by one: of an elementwise operator, and at most of one row."""


def _of_elements(of: Point, direction: _Direction) -> str:
    """Which elements are wrong, of those that are furthest apart; '' if that is unknown."""
    if direction.distances is None:
        return ""
    worst = np.argsort(-direction.distances.reshape(-1))
    elementwise = of.subject.operator.elementwise
    x = of.arrays[0].reshape(1, -1)[:, worst[:_SHOWN]] if elementwise else of.arrays[0][worst[:1]]
    if x.size > _LARGEST_ROW:
        return ""
    part = replace(of, arrays=[x]).rows(0, 1)
    comparisons = Checked(part.subject.call, part.subject.tensors(part.arrays), _STEPS[0]).comparisons(
        FLOAT64.atol, FLOAT64.rtol
    )
    named = part.subject.named(part.arrays)
    difference = comparisons[0].says(f"{part.subject.backward} gives", "finite differences give", named)
    return difference and difference + diagnosis_of(part.subject, comparisons[0], comparisons, part.arrays)
