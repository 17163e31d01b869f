"""Side effects: it changes no input, keeps no state, and treats rows independently if it is declared to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from app.checking.subject import Arrays, Result, Subject, are_near, same
from app.checking.verdict import Verdict, failed, note, ok
from app.tensor import Tensor, grad


def untouched(subject: Subject) -> Iterator[Verdict]:
    """Neither pass writes into its inputs."""
    arrays = subject.arrays()
    before = [a.copy() for a in arrays]
    tensors = subject.tensors(arrays)
    outputs = [o for o in subject.call(*tensors) if isinstance(o, Tensor)]
    touched = _changed(subject, arrays, before)
    if touched:
        yield failed(f"forward writes into its input {touched}: compute in a copy, as x.clone() makes one")
        return
    results = [o._array.copy() for o in outputs]
    arriving = subject.arriving(results)
    passed = [g.copy() for g in arriving]
    subject.gradients(tensors, outputs, passed)
    touched = _changed(subject, arrays, before)
    if touched:
        yield failed(f"{subject.backward} writes into the input {touched}: compute in a copy")
    elif any(not same(o._array, m) for o, m in zip(outputs, results, strict=True)):
        yield failed(f"{subject.backward} writes into the result of forward: compute in a copy")
    elif any(not same(g, a) for g, a in zip(passed, arriving, strict=True)):
        yield failed(
            f"{subject.backward} writes into the gradient that arrives: compute in a copy, as dy.clone() makes one"
        )
    else:
        yield ok("neither pass writes into its inputs")


def _changed(subject: Subject, arrays: Arrays, before: Arrays) -> str:
    names = [i.name for i, a, b in zip(subject.inputs, arrays, before, strict=True) if not same(a, b)]
    return ", ".join(names)


def repeatable(subject: Subject) -> Iterator[Verdict]:
    """The same inputs give the same bits, whatever is computed in between."""
    if subject.changes:
        yield failed(
            f"the same inputs give another {subject.changes} the second time, so checks that compare runs are left "
            "out: take random numbers as an input, or save them for backward, and keep nothing between calls"
        )
        return
    first = subject.run(subject.arrays()).copy()
    subject.run(subject.arrays(seed=7))
    if first.differs_from(subject.run(subject.arrays())):
        yield failed("the same inputs give another result after a call with other inputs: it keeps state")
        return
    if first.differs_from(subject.run(subject.arrays())):
        yield failed("the gradients change from pass to pass")
        return
    yield from _two_at_once(subject, first)


def _two_at_once(subject: Subject, first: Result) -> Iterator[Verdict]:
    """Two forward passes before the first backward pass, as a network that uses an operator twice does."""
    tensors = subject.tensors(subject.arrays())
    outputs = subject.applied(tensors)
    copies = [o._array.copy() for o in outputs]
    subject.call(*subject.tensors(subject.arrays(seed=7)))
    if any(not same(o._array, k) for o, k in zip(outputs, copies, strict=True)):
        yield failed("a second call changes the result of the first: both are the same memory")
        return
    gradients = subject.gradients(tensors, outputs)
    if first.differs_from(Result(first.outputs, gradients)):
        yield failed("used twice, the gradient of the first call is computed from what the second call saved")
        return
    if _twice_from_one(subject):
        yield ok("the same inputs give the same bits, forward and backward, alone and among other calls")
    else:
        yield failed("a second backward pass from one forward gives another gradient")


def _twice_from_one(subject: Subject) -> bool:
    tensors = subject.tensors(subject.arrays())
    outputs = [o for o in subject.applied(tensors) if not o.stop_gradient]
    sources = [t for t in tensors if not t.stop_gradient]
    if not (outputs and sources and subject.has_gradient):
        return True
    arriving = [Tensor(g) for g in subject.arriving([o._array for o in outputs])]
    passes = [grad(outputs, sources, arriving, retain_graph=True, allow_unused=True) for _ in range(2)]
    pairs = [[None if g is None else g._array.copy() for g in one] for one in passes]
    return not Result([], pairs[0]).differs_from(Result([], pairs[1]))


def row_by_row(subject: Subject) -> Iterator[Verdict]:
    """Each row of the results and of the gradients depends only on the same row of the inputs."""
    declared = subject.is_row_by_row
    if not subject.inputs[0].shape:
        return
    many = subject.with_batch(8)
    whole = many.run(many.arrays())
    if any(o.shape[:1] != (8,) for o in whole.outputs):
        if declared:
            yield failed("it is declared row by row, but its results do not have as many rows as its inputs")
        return
    rows = subject.inputs[0].shape[:1]
    shared = [i.shape[:1] != rows for i in subject.inputs]
    arriving = many.arriving(whole.outputs)
    for start, end in ((0, 3), (3, 8)):
        few = subject.with_batch(end - start)
        arrays = [a if s else a[start:end].copy() for a, s in zip(many.arrays(), shared, strict=True)]
        if any(o.shape != (end - start, *w.shape[1:]) for o, w in zip(few.outputs(arrays), whole.outputs, strict=True)):
            message = "its results have another shape for each number of rows"
            yield failed(f"it is declared row by row, but {message}") if declared else note(message)
            return
        part = few.run(arrays, [g[start:end].copy() for g in arriving])
        if not _rows_agree(many, whole, part, start, end, shared):
            if declared:
                yield failed(
                    f"it is declared row by row, but rows {start} to {end - 1} alone give other numbers "
                    "than in a larger batch"
                )
            else:
                yield note("the result of a row depends on other rows, as in a norm over the batch")
            return
    cannot_say = declared or subject.operator.foreign or subject.operator.kind in ("PyLayer", "Function", "Layer")
    hint = "" if cannot_say else "; row_by_row=True would declare it"
    yield ok(f"each row is computed independently of the others{hint}")


def _rows_agree(many: Subject, whole: Result, part: Result, start: int, end: int, shared: list[bool]) -> bool:
    pairs = [(w[start:end], p) for w, p in zip(whole.outputs, part.outputs, strict=True)]
    floats = [s for s, i in zip(shared, many.inputs, strict=True) if i.is_float]
    for g, p, is_shared in zip(whole.gradients, part.gradients, floats, strict=True):
        if g is not None and p is not None and not is_shared:
            pairs.append((g[start:end], p))
    return all(a.shape == b.shape and are_near(a, b, 1e-10, 1e-12).all() for a, b in pairs)


def layout(subject: Subject) -> Iterator[Verdict]:
    """Arrays that are not contiguous: in column order, with strides, reversed, and one number that stands for all."""
    arriving = subject.arriving(subject.outputs(subject.arrays()))
    for what, of_inputs, of_gradients in _LAYOUTS:
        inputs = [of_inputs(a) for a in subject.arrays()]
        gradients = [of_gradients(g) for g in arriving]
        try:
            plain = subject.run(_contiguous(inputs), _contiguous(gradients)).copy()
        except Exception:
            if of_inputs is _expanded:  # equal numbers may not be allowed
                continue
            raise
        try:
            result = subject.run(inputs, gradients)
        except Exception as error:
            message = f"{what} raise {subject.reason(error)}"
            yield note(message) if subject.operator.foreign is not None and what != _OF_A_SUM else failed(message)
            return
        part = plain.far_from(result, 1e-7)
        if part:
            yield failed(f"{what} give another {part} than contiguous ones")
            return
    yield ok("arrays that are not contiguous give the same")


def _contiguous(arrays: Arrays) -> Arrays:
    return [np.array(a, order="C") for a in arrays]


def _same(array: np.ndarray) -> np.ndarray:
    return array


def _in_columns(array: np.ndarray) -> np.ndarray:
    return np.asfortranarray(array) if array.ndim > 1 else array.copy()


def _every_second(array: np.ndarray) -> np.ndarray:
    if not array.ndim:
        return array
    wide = np.full((*array.shape[:-1], 2 * array.shape[-1]), 99, array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


def _reversed(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array[::-1])[::-1] if array.ndim else array


def _expanded(array: np.ndarray) -> np.ndarray:
    """Equal numbers with strides of zero."""
    value = np.full(1, array.reshape(-1)[0] if array.size else 0, array.dtype)
    return np.lib.stride_tricks.as_strided(value, array.shape, (0,) * array.ndim)


_OF_A_SUM = "gradients with strides of zero, as y.sum() sends them,"
_LAYOUTS: tuple[tuple[str, Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]], ...] = (
    ("arrays in column order", _in_columns, _in_columns),
    ("arrays with a stride of two elements", _every_second, _every_second),
    ("arrays in reverse order", _reversed, _reversed),
    (_OF_A_SUM, _same, _expanded),
    ("expanded inputs, whose strides are zero,", _expanded, _same),
)
"""What is said of arrays, and how inputs and gradients become such."""
