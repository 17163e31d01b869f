"""Gradients and inputs that are expanded, with strides of zero, and inputs with other numbers of axes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence

import numpy as np

from app.checking.checks.differences import first_difference, gradient_names
from app.checking.checks.gradient import gradient_of_size
from app.checking.subject import Subject, are_near
from app.checking.verdict import Verdict, failed, ok
from app.custom.derivative.scope import UnderivableError
from app.custom.numba_functions import interpreted

_SHAPES: tuple[tuple[int, ...], ...] = ((6,), (2, 1, 3), (2, 3, 4), (1, 1), (2, 3, 1, 2))


def expanded(subject: Subject) -> Iterator[Verdict]:
    """The gradient that `y.sum()` sends, and an expanded input, have strides of zero: one number stands for all."""
    arrays = subject.arrays()
    if subject.has_gradient:
        arriving = [_expanded(g) for g in subject.arriving(subject.run(arrays).outputs)]
        plain = subject.run(arrays, [np.array(g) for g in arriving]).copy()
        try:
            gradients = subject.run(arrays, arriving).gradients
        except Exception as error:
            yield failed(f"the gradient that y.sum() sends, whose strides are zero, raises {subject.reason(error)}")
            return
        difference = first_difference(gradients, plain.gradients, gradient_names(subject.float_inputs))
        if difference:
            yield failed(f"for the gradient that y.sum() sends, whose strides are zero, {difference}")
            return
    wide = [_expanded(a) if one.is_float else a for a, one in zip(arrays, subject.inputs, strict=True)]
    try:
        plain, other = subject.run([np.array(a) for a in wide]).copy(), subject.run(wide)
    except Exception:  # equal numbers may not be allowed
        yield ok("a gradient with strides of zero gives the same")
        return
    part = plain.far_from(other, 1e-7)
    if part:
        yield failed(f"expanded inputs, whose strides are zero, give another {part} than contiguous ones")
    else:
        yield ok("expanded inputs and gradients, with strides of zero, give the same")


def _expanded(array: np.ndarray) -> np.ndarray:
    """Equal numbers with strides of zero."""
    value = np.full(1, array.reshape(-1)[0] if array.size else 0, array.dtype)
    return np.lib.stride_tricks.as_strided(value, array.shape, (0,) * array.ndim)


def _takes_more_axes(subject: Subject) -> bool:
    """Whether forward is meant for another axis: one of size one makes no difference to the results.

    `x[:, 0]` of a matrix also takes three axes, and means something else there.
    """
    shape = subject.inputs[0].shape
    if not shape:
        return True
    arrays = subject.arrays()
    try:
        outputs = subject.outputs([a.reshape(*shape[:-1], 1, shape[-1]) for a in arrays])
    except Exception:  # it does not take another axis
        return False
    plain = subject.outputs(arrays)
    pairs = zip(outputs, plain, strict=False)  # an operator such as unbind gives another number of them
    is_same = all(o.size == p.size and are_near(o.ravel(), p.ravel(), 1e-7).all() for o, p in pairs)
    return len(outputs) == len(plain) and is_same


def ranks(subject: Subject) -> Iterator[Verdict]:
    """The gradient is right for inputs with other numbers of axes, and with axes of size one, if they are taken."""
    shapes = {one.shape for one in subject.inputs}
    if len(shapes) > 1 or subject.operator.shapes or subject.is_surrogate or not subject.has_gradient:
        return
    others = _SHAPES
    if subject.is_fixed:
        (shape,) = shapes
        by_example = all(one.values is not None for one in subject.inputs)
        others = ((*shape[:-1], 1, *shape[-1:]),) if by_example and shape else ()
    if any(verdict.failed for verdict in gradient_of_size(subject)):
        return
    verdict = _of_shapes_as_python(subject, others)
    if verdict:
        yield verdict


def _of_shapes_as_python(subject: Subject, shapes: Sequence[tuple[int, ...]]) -> Verdict | None:
    """The verdict on these shapes, of Numba functions as Python: they would be compiled for each number of axes."""
    if subject.operator.foreign is None and not interpreted.on:
        answer = subject.operator.python_process.ask(_of_shapes, subject, shapes)
        if answer.content:
            verdict: Verdict | None = pickle.loads(answer.content)
            return verdict
    return _of_shapes(subject, shapes)


def _of_shapes(subject: Subject, shapes: Sequence[tuple[int, ...]]) -> Verdict | None:
    accepted, takes_more_axes = [], _takes_more_axes(subject)
    for shape in shapes:
        if len(shape) > len(subject.inputs[0].shape) and not takes_more_axes:
            continue
        try:
            other = subject.with_shapes([shape] * len(subject.inputs))
            if not all(np.isfinite(o).all() for o in other.outputs(other.arrays())):
                continue
        except Exception:  # it does not take this shape
            continue
        try:
            wrong = [verdict.words for verdict in gradient_of_size(other) if verdict.failed]
        except UnderivableError:
            continue  # it is derived for each number of axes, and refused for this one
        except Exception as error:
            if subject.operator.foreign is None and "out of bounds" in str(error.__cause__):
                # compiled, it would read or write outside of the array, without an error
                return failed(f"with {', '.join(map(str, other.inputs))}, {subject.reason(error)}")
            continue  # forward took this shape by accident, and backward refuses it loudly
        if wrong:
            return failed(f"with {', '.join(map(str, other.inputs))}, {wrong[0]}")
        accepted.append(str(list(shape)))
    return ok(f"the gradient is right with shapes {', '.join(accepted)}, too") if accepted else None
