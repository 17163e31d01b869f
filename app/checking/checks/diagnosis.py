"""How a wrong gradient is wrong: half of what it should be, of the opposite sign, without a term where x > 0."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from app.checking.subject import Arrays, Subject
from app.custom.gradcheck import Comparison, are_far

_FACTORS = {
    0.0: "it is zero",
    -1.0: "it has the opposite sign",
    0.5: "it is half of what it should be",
    2.0: "it is twice what it should be",
}


def diagnosis_of(subject: Subject, one: Comparison, all_inputs: list[Comparison], arrays: Arrays) -> str:
    """An explanation of every wrong element, such as `; it is half of what it should be`; '' if none fits.

    `arrays` are the inputs at which the gradients were compared.
    """
    explanation = (
        _zero(subject, one)
        or _without_dy(one)
        or _factor(one)
        or _other_input(subject, one, all_inputs)
        or _missing(subject, one, arrays)
    )
    if not explanation:
        return ""
    where = _where(subject, one, arrays[one.place])
    return f"; {explanation}{where}"


def _zero(subject: Subject, one: Comparison) -> str:
    """The function is constant where the gradient is wrong, perhaps because it is a step function."""
    if one.numeric[one.wrong].any():
        return ""
    if one.numeric.any():
        return "it should be 0"
    explanation = (
        "the derivative is 0 everywhere: if backward differs on purpose, as in a straight-through estimator, declare "
        "surrogate=True"
    )
    return explanation + (
        "; elementwise=True gives it single numbers: leave it out for arrays" if subject.operator.elementwise else ""
    )


def _factor(one: Comparison) -> str:
    """It is a constant multiple of what it should be."""
    actual, expected = one.gradient[one.wrong], one.numeric[one.wrong]
    scale = float(np.max(np.abs(expected), initial=0.0))
    if not np.isfinite(actual).all() or scale == 0 or (len(actual) < 2 and actual.any()):
        return ""
    factor = float((actual * expected).sum() / (expected * expected).sum())
    if are_far(actual, factor * expected, 1e-5 * scale, 1e-4).any():
        return ""
    for constant, explanation in _FACTORS.items():
        if abs(factor - constant) < 1e-4:
            return explanation
    whole = round(1 / factor) if abs(factor) > 1e-6 else 0
    if whole > 1 and abs(factor * whole - 1) < 1e-4:
        return f"it is 1/{whole} of what it should be"
    return f"it is {factor:.4g} times what it should be"


def _without_dy(one: Comparison) -> str:
    """It is the derivative alone."""
    dy = one.arriving
    if dy is None or not (dy.size == 1 or dy.shape == one.gradient.shape):
        return ""
    product = one.gradient * (dy.item() if dy.size == 1 else dy)
    return "it is not multiplied by dy" if _close(product[one.wrong], one.numeric[one.wrong]) else ""


def _other_input(subject: Subject, one: Comparison, all_inputs: list[Comparison]) -> str:
    """It is the gradient of another input, or transposed."""
    for other in all_inputs:
        if other is not one and other.numeric.shape == one.gradient.shape and _close(one.gradient, other.numeric):
            return f"it is that of {subject.inputs[other.place].name}: are they returned in the order of the inputs?"
    turned = one.gradient.T
    if turned.ndim > 1 and turned.shape == one.numeric.shape and _close(turned, one.numeric):
        return "it is transposed"
    return ""


def _missing(subject: Subject, one: Comparison, arrays: Arrays) -> str:
    """A multiple of dy, of an input times dy, or of the result times dy is missing."""
    missing = (one.numeric - one.gradient)[one.wrong]
    for name, term in _terms(subject, one, arrays):
        values = term[one.wrong]
        size = float((values * values).sum())
        if size == 0 or len(values) < 3 or not np.isfinite(missing).all():
            continue
        factor = float((missing * values).sum() / size)
        scale = float(np.max(np.abs(missing)))
        if not are_far(missing, factor * values, 1e-5 * scale, 1e-4).any():
            shown = name if abs(factor - 1) < 1e-4 else f"{factor:.4g} * {name}"
            return f"{shown} is missing in it"
    return ""


def _terms(subject: Subject, one: Comparison, arrays: Arrays) -> Iterator[tuple[str, np.ndarray]]:
    """The terms that may be missing, with their names, for an operator with one result of the input's shape."""
    outputs = subject.outputs(arrays)
    if len(outputs) != 1 or outputs[0].shape != one.gradient.shape or one.arriving is None:
        return
    yield "dy", one.arriving
    for input, array in zip(subject.inputs, arrays, strict=True):
        if array.shape == one.gradient.shape and input.is_float:
            yield f"{input.name} * dy", array * one.arriving
    yield "y * dy", outputs[0] * one.arriving


def _where(subject: Subject, one: Comparison, array: np.ndarray) -> str:
    """` where x > 0`, if exactly these elements are wrong."""
    if array.shape != one.wrong.shape or one.wrong.all():
        return ""
    name = subject.inputs[one.place].name
    for sign, elements in ((">", array > 0), ("<", array < 0)):
        if np.array_equal(elements, one.wrong):
            return f" where {name} {sign} 0"
    return ""


def _close(actual: np.ndarray, expected: np.ndarray) -> bool:
    scale = float(np.max(np.abs(expected), initial=0.0))
    return not are_far(actual, expected, 1e-5 * scale, 1e-4).any()
