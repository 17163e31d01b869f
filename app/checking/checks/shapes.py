"""Shapes and types: as inferred, for any batch size, for an empty batch, with broadcasting, and with other axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from app.checking.checks.behaviour import row_by_row
from app.checking.checks.bounds import index_outside
from app.checking.checks.gradient import gradient_of_size
from app.checking.subject import FLOAT32, Subject, are_near
from app.checking.verdict import NOTE, Verdict, failed, note, ok
from app.custom.operator import CustomOperator
from app.derivative.scope import UnderivableError
from app.errors import AppError
from app.ops.spec import UNKNOWN

_MANY = 67
"""Rows enough for results of n // 8 rows to have some."""


def shapes(subject: Subject) -> Iterator[Verdict]:
    """The shapes and types that inference gives in a Program with an open batch size equal the actual ones."""
    if subject.reshaped:
        yield note(f"{subject.reshaped}; checked on {', '.join(map(str, subject.inputs))}")
    sizes = [i.shape for i in subject.inputs]
    first = sizes[0][:1]
    open_shapes: list[Sequence[int | None]] = [(None, *s[1:]) if first and s[:1] == first else s for s in sizes]
    declared = []
    try:
        with subject.in_program(open_shapes) as (_, _, outputs):
            declared = [(v.shape, v.dtype) for v in outputs]
    except AppError as error:
        yield failed(f"in a Program with an open batch: {error}")
        return
    for rows in (subject.inputs[0].shape[0], 5, 1, _MANY) if first else (0,):
        tried = subject.with_batch(rows) if first else subject
        for (shape, dtype), array in zip(declared, tried.outputs(tried.arrays(dtype="float32")), strict=True):
            if len(shape) != array.ndim or any(s not in (UNKNOWN, a) for s, a in zip(shape, array.shape, strict=False)):
                yield failed(
                    f"shape {list(shape)} is inferred; with {tried.inputs[0]} the result has {list(array.shape)}"
                )
                return
            if dtype != array.dtype.name:
                yield failed(f"type {dtype} is inferred, but the result has {array.dtype}")
                return
    outs = ", ".join(f"[{', '.join('?' if s == UNKNOWN else str(s) for s in shape)}]" for shape, _ in declared)
    yield ok(f"{', '.join(map(str, subject.inputs))} give {outs}, as inferred, for batches of several sizes")


def types(subject: Subject) -> Iterator[Verdict]:
    """float32 inputs give float32 results, close to those of float64."""
    if subject.precision is FLOAT32:
        yield note("it computes in float32 only, so gradients are compared less exactly; --like compares with float64")
        return
    if not subject.float_inputs:
        return
    results, casts = [], []
    for dtype in ("float32", "float64"):
        _casts_of(subject).clear()
        results.append(subject.run(subject.arrays(dtype=dtype)))
        casts += [f"{name} is returned as {original} for {dtype}" for name, original in _casts_of(subject).items()]
    narrow, wide = results
    for place, (actual, expected) in enumerate(zip(narrow.outputs, wide.outputs, strict=True)):
        if expected.dtype.kind != "f":
            continue
        if actual.dtype != np.float32 or expected.dtype != np.float64:
            message = f"output {place} is {actual.dtype} for float32 inputs, and {expected.dtype} for float64 ones"
            yield failed(message) if subject.operator.foreign is None else note(message)
            return
        if not np.allclose(actual, expected, rtol=2e-3, atol=1e-4, equal_nan=True):
            worst = float(np.nanmax(abs(actual - expected)))
            yield failed(f"output {place} in float32 is far from that in float64: by up to {worst:.3g}")
            return
    for name, g, e in zip(subject.float_inputs, narrow.gradients, wide.gradients, strict=True):
        if g is not None and e is not None and not np.allclose(g, e, rtol=1e-2, atol=1e-3, equal_nan=True):
            yield failed(
                f"the gradient of {name} in float32 is far from that in float64: by {np.nanmax(abs(g - e)):.3g}"
            )
            return
    if casts:
        yield note(
            f"{', '.join(casts)}, and is cast. A constant or a setting of another type causes this; x.dtype.type(0.5) "
            "keeps the type of x"
        )
        return
    yield ok("float32 stays float32, float64 stays float64, and they agree")


def _casts_of(subject: Subject) -> dict[str, str]:
    """The returned types of an operator on arrays that differ from the type of its inputs."""
    operator = subject.operator.call
    return operator.casts if isinstance(operator, CustomOperator) and not operator.elementwise else {}


def empty(subject: Subject) -> Iterator[Verdict]:
    """A batch of zero rows, as a filter may leave."""
    if not subject.inputs[0].shape:
        return
    none, rows = subject.with_batch(0), subject.inputs[0].shape[0]
    some = [o.shape for o in subject.outputs(subject.arrays())]
    per_row = all(shape[:1] == (rows,) for shape in some) and _has_as_many_rows(subject, some, rows + 1)
    refusal = failed if per_row and subject.operator.foreign is None else note
    outside = index_outside(none)
    if outside is not None:  # compiled code would read or write there
        yield refusal(f"a batch without rows: {outside}")
        return
    try:
        outputs, gradients = none.run(none.arrays())
    except Exception as error:
        refusal = note if _rows_depend_on_each_other(subject) else refusal
        yield refusal(f"a batch without rows raises {subject.reason(error)}")
        return
    for output, shape in zip(outputs, some, strict=True):
        if per_row and output.shape != (0, *shape[1:]):  # else the shape is not known: concat([x, w]) has the rows of w
            yield failed(f"a batch without rows gives shape {list(output.shape)}, expected {[0, *shape[1:]]}")
            return
    for one, g in zip((i for i in none.inputs if i.is_float), gradients, strict=True):
        if g is not None and (g.shape != one.shape or not np.isfinite(g).all()):
            yield failed(f"a batch without rows gives a gradient of {one.name} with shape {list(g.shape)}: {g}")
            return
    yield ok("a batch without rows gives results and gradients without rows")


def _rows_depend_on_each_other(subject: Subject) -> bool:
    """Whether a row of the results depends on other rows, as in attention, which may have no value without any."""
    try:
        return any(verdict.state == NOTE for verdict in row_by_row(subject))
    except Exception:  # it takes no other number of rows
        return False


def _has_as_many_rows(subject: Subject, shapes: Sequence[tuple[int, ...]], rows: int) -> bool:
    """Whether only the first size of the results changes with the rows of the inputs."""
    more = subject.with_batch(rows)
    try:
        return [o.shape for o in more.outputs(more.arrays())] == [(rows, *shape[1:]) for shape in shapes]
    except Exception:  # it takes no other number of rows
        return True


_STRETCHED = (((4, 6), (6,)), ((4, 1), (1, 6)), ((6,), (4, 6)), ((4, 6), ()), ((1, 1), (4, 6)))


def broadcasting(subject: Subject) -> Iterator[Verdict]:
    """Broadcast inputs give the results of expanded ones, and gradients are summed back."""
    if len(subject.inputs) < 2 or len({i.shape for i in subject.inputs}) > 1 or not _is_elementwise(subject):
        return
    yield _of_stretched(subject)


def _of_stretched(subject: Subject) -> Verdict:
    refused = []
    for pair in _STRETCHED:
        sizes = [pair[0], *[pair[1]] * (len(subject.inputs) - 1)]
        stretched, text = subject.with_shapes(sizes), f"{list(pair[0])} with {list(pair[1])}"
        arrays = stretched.arrays()
        outside = index_outside(stretched, arrays)
        if outside is not None and "out of bounds" in str(outside):  # compiled code would read or write there
            return failed(f"{text}: {outside}; broadcast the inputs, or raise an error if their shapes differ")
        try:
            outputs = stretched.outputs(arrays)
        except Exception as error:
            refused.append(f"{text}: {str(error).partition(chr(10))[0]}")
            continue
        try:
            problem = _wrong_when_stretched(stretched, arrays, outputs)
        except Exception as error:
            problem = f"the gradient fails: {subject.reason(error)}"
            if subject.operator.foreign is not None:  # a loud refusal
                refused.append(f"{text}: {problem}")
                continue
        if problem:
            return failed(f"{text}: {problem}")
    if len(refused) == len(_STRETCHED):
        return note(f"inputs are not broadcast: {refused[0]}")
    return ok("inputs are broadcast, and gradients summed back to their shapes")


def _is_elementwise(subject: Subject) -> bool:
    """Whether a change in one element of the inputs changes only this element of the outputs."""
    arrays = subject.arrays()
    before = [o.copy() for o in subject.outputs(arrays)]
    for array in arrays:
        array.flat[0] = array.flat[-1]
    after = subject.outputs(arrays)
    alike = all(o.shape == arrays[0].shape for o in after)
    return alike and all(np.array_equal(a.flat[1:], b.flat[1:]) for a, b in zip(after, before, strict=True))


def _wrong_when_stretched(subject: Subject, arrays: list[np.ndarray], outputs: list[np.ndarray]) -> str:
    whole = np.broadcast_shapes(*(a.shape for a in arrays))
    full = [np.array(np.broadcast_to(a, whole)) for a in arrays]
    wide = subject.with_shapes([whole] * len(arrays)).run(full)
    for actual, expected in zip(outputs, wide.outputs, strict=True):
        if actual.shape != expected.shape:
            return f"it gives shape {list(actual.shape)}, expected {list(expected.shape)}"
        if not np.allclose(actual, expected, equal_nan=True):
            return "it gives other numbers than for expanded inputs"
    gradients = subject.run(arrays).gradients
    floats = [a for a, one in zip(arrays, subject.inputs, strict=True) if one.is_float]
    for array, name, g, e in zip(floats, subject.float_inputs, gradients, wide.gradients, strict=True):
        if g is not None and e is not None and not np.allclose(g, _summed(e, array.shape)):
            return f"the gradient of {name} is not summed over the broadcast axes"
    return ""


def _summed(gradient: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    gradient = gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))
    stretched = tuple(axis for axis, size in enumerate(shape) if size == 1 and gradient.shape[axis] > 1)
    return np.asarray(gradient.sum(axis=stretched, keepdims=True))


_OTHER_AXES: tuple[tuple[int, ...], ...] = ((6,), (2, 1, 3), (2, 3, 4), (1, 1), (5, 5), (2, 3, 1, 2))


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


def axes(subject: Subject) -> Iterator[Verdict]:
    """The gradient is right for inputs with other numbers of axes, and with axes of size one or of the same size."""
    shapes = {one.shape for one in subject.inputs}
    if len(shapes) > 1 or subject.operator.shapes:
        return
    others = _OTHER_AXES
    if subject.is_fixed:
        (shape,) = shapes
        by_example = all(one.values is not None for one in subject.inputs)
        others = ((*shape[:-1], 1, *shape[-1:]),) if by_example and shape else ()
    if any(verdict.failed for verdict in gradient_of_size(subject)):
        return
    verdict = _of_shapes(subject, others)
    if verdict:
        yield verdict


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
