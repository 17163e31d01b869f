"""The gradient against finite differences, at random points and where functions have kinks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from app.bridge.function import Foreign
from app.checking.checks.bounds import index_outside
from app.checking.checks.diagnosis import diagnosis_of
from app.checking.checks.direction import Point, how_gradient_is_wrong_at
from app.checking.subject import FLOAT32, Arrays, OtherSizeError, Result, Subject
from app.checking.verdict import FAILED, OK, Verdict, failed, note, ok
from app.custom.gradcheck import JUMP, KINK, Checked, Comparison, are_far, distances, gradgradcheck, worst_of
from app.errors import GradcheckError, GradientError, OperatorError, ShapeError
from app.ops.dtype import is_float

SPECIAL = (0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 6.0)
"""Points at which functions often have kinks."""
NAN = np.asarray(np.nan)
_LARGEST = 1e12
"""Differences of larger results are those of rounding."""
_MANY_ROWS, _WIDE, _LARGEST_INPUTS = 256, 64, 2**14
"""Sizes above those of the blocks of kernels: of the first axis and of others, for inputs of so many numbers in all."""


def gradient(subject: Subject) -> Iterator[Verdict]:
    """Gradients in float64 against central differences, for inputs of several sizes."""
    try:
        verdicts = list(gradient_of_size(subject))
    except ShapeError as error:
        yield failed(subject.reason(error))
        if len(subject.inputs) > 1 and not subject.is_fixed:
            yield note("for inputs of other shapes give --shape once for each, as in --shape 4,6 --shape 6")
        return
    if verdicts[-1].state != OK or subject.is_surrogate:
        yield from verdicts
        return
    for other in _other_sizes(subject):
        arrays = other.arrays()
        for wrong in wrong_in(other, against_differences(other, arrays), arrays):
            yield failed(f"with {', '.join(map(str, other.inputs))}, {wrong.words}")
            return
    large = wrong_when_large(subject)
    yield from [failed(large)] if large else verdicts


def _other_sizes(subject: Subject) -> Iterator[Subject]:
    """The operator with one row, with five, and with more columns if it takes them."""
    shapes = [one.shape for one in subject.inputs]
    others = []
    if shapes[0]:
        with suppress(OtherSizeError):
            others = [subject.with_batch(1), subject.with_batch(5)]
    if not subject.is_fixed and len(shapes[0]) > 1 and len({*shapes}) == 1 and not subject.operator.shapes:
        others.append(subject.with_shapes([(2, *shape[1:-1], 17) for shape in shapes]))
    for other in others:
        if index_outside(other) is None and other.is_finite(other.arrays()):
            yield other


def wrong_when_large(subject: Subject) -> str:
    """How the gradient is wrong where each size is larger in turn, where inputs of different shapes have one shape, and
    for numbers of all magnitudes; '' if it is not.

    It is compared along a random direction, which takes a few calls at any size.
    """
    for other in [*_larger(subject), *_of_one_shape(subject)] if subject.precision is not FLOAT32 else ():
        arrays = other.arrays() if subject.is_bounded else other.varied()
        if not (_is_moderate(other, arrays) or _is_moderate(other, arrays := other.arrays())):
            continue
        wrong = how_gradient_is_wrong_at(Point(other, arrays))
        if wrong:
            name = f"that of {subject.float_inputs[0]} is " if wrong.startswith("wrong") else ""
            return f"with {', '.join(map(str, other.inputs))}, {name}{wrong}"
    return ""


def _larger(subject: Subject) -> Iterator[Subject]:
    """The operator with many rows, and with each other size above 64, if it takes them.

    All axes of a size grow together, as those of a product of matrices do. Where 256 rows are too many, there are 64.
    """
    shapes = [one.shape for one in subject.inputs]
    may_widen = _may_reshape(subject)
    grow = shapes if may_widen else [shapes[0][:1]]
    for place, size in enumerate(dict.fromkeys(size for shape in grow for size in shape if size)):
        for least in (_MANY_ROWS, _WIDE) if not place else (_WIDE,):
            large = size * (least // size + 1)  # a multiple, for heads, groups and pairs
            grown = [tuple(large if s == size else s for s in shape) for shape in shapes]
            if sum(map(math.prod, grown)) > _LARGEST_INPUTS:
                continue
            with suppress(OtherSizeError):
                other = subject.with_shapes(grown) if may_widen else subject.with_batch(large)
                if index_outside(other) is None:
                    yield other
            break


def _of_one_shape(subject: Subject) -> Iterator[Subject]:
    """The operator with one shape for all inputs of floats, if only their sizes differ: each in turn, and square ones.

    A weight for each column is not tried as a matrix: forward may take it by accident, where its gradient is not meant.
    """
    shapes = {one.shape for one in subject.inputs if one.is_float}
    if len(shapes) < 2 or len(set(map(len, shapes))) > 1 or not _may_reshape(subject):
        return
    squares = {(*shape[:-2], shape[-1], shape[-1]) for shape in shapes if len(shape) > 1}  # as x @ w takes
    for shape in sorted(shapes | squares):
        if math.prod(shape) * len(subject.inputs) <= _LARGEST_INPUTS:
            other = subject.with_shapes([shape if one.is_float else one.shape for one in subject.inputs])
            if index_outside(other) is None:
                yield other


def _may_reshape(subject: Subject) -> bool:
    """Whether inputs may have other shapes than the user or the operator says."""
    return not (subject.operator.shapes or (subject.is_fixed and subject.inputs[0].values is None))


def _is_moderate(subject: Subject, arrays: Arrays) -> bool:
    """Whether the operator takes these inputs, and its results and gradients are not too large."""
    try:
        result = subject.run(arrays)
    except Exception:  # it refuses these numbers, or this shape
        return False
    numbers = [n for n in (*result.outputs, *result.gradients) if n is not None and n.dtype.kind == "f"]
    return all((np.abs(n) < _LARGEST).all() for n in numbers)


def gradient_of_size(subject: Subject) -> Iterator[Verdict]:
    """Gradients in float64 against central differences, for inputs of one size."""
    if not subject.float_inputs:
        yield note("it takes only integers, which have no gradient")
        return
    kinds = {o.dtype.name for o in subject.outputs(subject.arrays())}
    foreign = subject.operator.foreign
    if not any(is_float(kind) for kind in kinds):
        message = f"it has no gradient, as its results are {', '.join(sorted(kinds))}: only floats have gradients"
        yield failed(f"{message}; return floats, as in y.astype(x.dtype)") if foreign is None else note(message)
        return
    if foreign is not None and not subject.has_gradient:
        yield note(f"it has no gradient: {_why_none(subject, foreign)}")
        return
    if not subject.has_gradient:
        yield failed('it has no gradient: declare one, or give backward_func="derive", so that it can be trained')
        return
    drawn = against_differences(subject, subject.arrays())
    if subject.is_surrogate:
        yield _as_surrogate(drawn)
        return
    wrong = list(wrong_in(subject, drawn, subject.arrays()))
    yield from wrong
    if wrong:
        return
    yield from _alone(subject)
    special, noted = _special(subject)
    kinks = [] if special is None else against_differences(subject, special, is_steep=True)
    bad = [*wrong_in(subject, kinks, special or []), *_wrong_far_away(subject)]
    bad += [verdict for verdict in noted if verdict.state == FAILED]
    yield from bad
    if not bad:
        yield from noted
        yield ok(f"{_worst(drawn)}{_of_kinks(subject, kinks, special)}")


def _why_none(subject: Subject, foreign: Foreign) -> str:
    """Why an operator of another framework has no gradient, which nobody can overlook."""
    if foreign.has_backward:
        return subject.refusal or "no result needs one"
    return f"{foreign.framework.name} raises an error if one is asked for; register_autograd defines one"


def against_differences(subject: Subject, arrays: Arrays, is_steep: bool = False) -> list[Comparison]:
    """The gradients beside differences. Where a function may bend within their step, as in float32 with its large step
    or at large numbers, an element is wrong if differences of a smaller step show it, too."""
    _, step, atol, rtol = subject.precision
    comparisons = Checked(subject.call, subject.tensors(arrays), step).comparisons(atol, rtol)
    if (is_steep or subject.precision is FLOAT32) and any(one.wrong.any() for one in comparisons):
        finer = Checked(subject.call, subject.tensors(arrays), step / 8).comparisons(atol, rtol)
        for one, other in zip(comparisons, finer, strict=True):
            one.wrong &= other.wrong & _converges(one, other)
    return comparisons


def wrong_in(subject: Subject, comparisons: list[Comparison], arrays: Arrays) -> Iterator[Verdict]:
    for one in comparisons:
        difference = one.says(f"{subject.backward} gives", "finite differences give", subject.named(arrays))
        if difference:
            name = subject.inputs[one.place].name
            hint = diagnosis_of(subject, one, comparisons, arrays)
            if not one.gradient.any():
                hint += f"; does backward return it? If {name} is a setting and not an input: --set {name}=VALUE"
                if subject.operator.kind.startswith("torch."):
                    hint += ". If it has none on purpose: an example call in which others have requires_grad=True"
            yield failed(f"that of {name} is {difference}{hint}")


def _as_surrogate(comparisons: list[Comparison]) -> Verdict:
    """The verdict on a gradient that is declared a surrogate."""
    wrong, number = sum(int(one.wrong.sum()) for one in comparisons), sum(one.wrong.size for one in comparisons)
    if wrong:
        return ok(f"declared a surrogate: it differs from finite differences in {wrong} of {number} elements, as meant")
    return note("it is declared a surrogate, but agrees with finite differences at the numbers that were drawn")


def _alone(subject: Subject) -> Iterator[Verdict]:
    try:
        _, step, atol, rtol = subject.precision
        Checked(subject.call, subject.tensors(subject.arrays()), step).derive_outputs_alone(atol, rtol)
    except GradcheckError as error:
        yield failed(str(error))


def _special(subject: Subject) -> tuple[Arrays | None, list[Verdict]]:
    """Inputs of those special numbers at which results and gradients are finite, None if there are none; and what is to
    be said of the others."""
    inside: list[float] = []
    verdicts: dict[str, Verdict] = {}
    for value in SPECIAL:
        arrays = subject.filled(value)
        if not (subject.low <= value <= subject.high and Result(_outputs(subject, arrays) or [NAN], []).is_finite):
            continue
        try:
            result = subject.run(arrays)
        except Exception as error:  # as the inverse of a matrix of equal numbers: nobody gets a wrong number
            verdicts.setdefault("raises", note(f"where inputs are {value:g}, backward raises {subject.reason(error)}"))
            continue
        if result.is_finite:
            inside.append(value)
        elif verdict := _of_nan(subject, arrays, result, value):
            verdicts.setdefault(verdict.state, verdict)
    arrays = subject.spread(inside)
    return arrays if inside and subject.is_finite(arrays) else None, list(verdicts.values())


def _outputs(subject: Subject, arrays: Arrays) -> Arrays | None:
    try:
        return subject.outputs(arrays)
    except Exception:  # it refuses these numbers
        return None


def _of_nan(subject: Subject, arrays: Arrays, result: Result, value: float) -> Verdict | None:
    """The verdict on a gradient that is NaN although the function has slopes there."""
    places = [place for place, one in enumerate(subject.inputs) if one.is_float]
    weights = subject.arriving(result.outputs)
    for place, gradient in zip(places, result.gradients, strict=True):
        if gradient is None or not np.isnan(gradient).any():
            continue
        index = tuple(np.argwhere(np.isnan(gradient))[0])

        def slope(step: float, place: int = place, index: tuple[int, ...] = index) -> float:
            moved = [a.copy() for a in arrays]
            moved[place][index] += step
            pairs = zip(_outputs(subject, moved) or [NAN], result.outputs, weights, strict=False)
            return float(sum(((a - b) * w).sum() for a, b, w in pairs)) / step

        step = subject.precision.step
        right, finer_right, left, finer_left = (slope(each) for each in (step, step / 8, -step, -step / 8))
        room = 1e-3 * (1 + abs(right) + abs(left))
        if not (abs(right - finer_right) <= room and abs(left - finer_left) <= room):  # NaN, or no slopes
            continue
        what = f"where inputs are {value:g}, the gradient of {subject.inputs[place].name} is NaN"
        if abs(right - left) <= room or abs(finer_right - finer_left) <= 0.5 * abs(right - left):
            return failed(f"{what}, finite differences give {(finer_right + finer_left) / 2:.8g}")
        return note(f"{what}, at a kink")
    return None


def _wrong_far_away(subject: Subject) -> Iterator[Verdict]:
    """What is wrong where some inputs are large, such as above the bound of a ReLU6."""
    arrays = _far(subject)
    if arrays is None:
        return
    comparisons = against_differences(subject, arrays, is_steep=True)
    for wrong in wrong_in(subject, comparisons, arrays):
        yield failed(f"with a third of the inputs outside of [{subject.low:g}, {subject.high:g}], {wrong.words}")


def _converges(one: Comparison, finer: Comparison) -> np.ndarray:
    """Where differences of two steps are much closer to each other than to the gradient.

    They are not where a function oscillates within a step, as sin(x³) does at large x.
    """
    apart = distances(one.numeric, finer.numeric)
    return (apart <= 1e-4 + 0.01 * np.abs(finer.numeric)) & (10 * apart < distances(one.gradient, finer.numeric))


def _far(subject: Subject) -> Arrays | None:
    """Inputs of which a third are large, and results and gradients are not too large; None if there are none."""
    usual = subject.arrays()
    for reach in (100.0, 10.0) if not subject.is_bounded else ():
        arrays = subject.far(reach)
        for _ in range(2):
            if index_outside(subject, arrays) is not None:
                break
            try:
                outputs = subject.outputs(arrays)
            except Exception:  # it refuses such numbers
                break
            numbers = [n for n in (*outputs, *subject.run(arrays).gradients) if n is not None and n.dtype.kind == "f"]
            large = [~(np.abs(n) < _LARGEST) for n in numbers]  # NaN, too
            if not any(bad.any() for bad in large):
                return arrays
            for array, old in zip(arrays, usual, strict=True):
                for bad in (bad for bad in large if bad.shape == array.shape):
                    array[bad] = old[bad]
    return None


def _worst(comparisons: list[Comparison]) -> str:
    worst = max(comparisons, key=lambda one: float(np.max(abs(one.gradient - one.numeric), initial=0.0)))
    difference = abs(worst.gradient - worst.numeric)
    if not difference.size:
        return "no elements"
    place = np.unravel_index(np.argmax(difference), difference.shape)
    number = sum(one.gradient.size for one in comparisons)
    return (
        f"{number} elements agree with finite differences; worst at {[int(i) for i in place]}: "
        f"{worst.gradient[place]:.8g} and {worst.numeric[place]:.8g}"
    )


def _of_kinks(subject: Subject, comparisons: list[Comparison], arrays: Arrays | None) -> str:
    sentences = []
    for kind, plural in ((KINK, "kinks"), (JUMP, "jumps")):
        places = {float(v) + 0.0 for one in comparisons for v in (arrays or [])[one.place][one.kinds == kind]}
        if places:
            sentences.append(f"; {plural} at {', '.join(f'{v:g}' for v in sorted(places))}")
            kink_gradients = {float(g) for one in comparisons for g in one.gradient[one.kinds == kind]}
            if len(places) == 1 and len(comparisons) == 1 and len(comparisons[0].gradient.shape) and kind == KINK:
                sentences.append(_gradient_at(subject, arrays, places.pop(), kink_gradients))
    return "".join(sentences)


def _gradient_at(subject: Subject, arrays: Arrays | None, value: float, kink_gradients: set[float]) -> str:
    gradients = subject.run(arrays or [], [np.ones_like(o) for o in subject.outputs(arrays or [])]).gradients
    values = (
        {float(g) for g in gradients[0][(arrays or [])[0] == value]} if gradients[0] is not None else kink_gradients
    )
    return f", where backward gives {next(iter(values)):g}" if len(values) == 1 else ""


def linear(subject: Subject) -> Iterator[Verdict]:
    """A backward pass is linear: three times the gradient of the outputs gives three times that of the inputs."""
    arrays = subject.arrays()
    once = subject.run(arrays)
    arriving = subject.arriving(once.outputs)
    for factor in (3.0, -1000.0, 0.0):
        scaled = subject.run(arrays, [np.asarray(g * factor) for g in arriving]).gradients
        for name, actual, before in zip(subject.float_inputs, scaled, once.gradients, strict=True):
            if actual is None or before is None:
                continue
            expected = before * factor
            near = 1e-9 if actual.dtype == np.float64 else 1e-3
            difference = worst_of(actual, expected, are_far(actual, expected, near, near), "backward gives", "expected")
            if difference:
                message = f"with {factor:g} times the gradient of the outputs, that of {name} is {difference}"
                surrogate = subject.is_surrogate
                yield note(message) if surrogate else failed(f"{message}; if on purpose, declare surrogate=True")
                return
    yield ok("the gradients of the inputs are proportional to those of the outputs")


def second(subject: Subject) -> Iterator[Verdict]:
    """The gradient of the gradient, if there is one."""
    arrays = subject.arrays()
    subject.run(arrays)  # if there is no first gradient, this raises the reason
    try:
        _compare_second(subject, arrays)
    except GradcheckError as error:
        if "nothing to check" in str(error):
            yield note("the gradient is constant")
        else:
            yield failed(f"{error}{_of_saved(subject, str(error))}")
    except GradientError:
        yield ok("the gradient does not depend on the inputs")
    except OperatorError as error:
        yield note(f"there is none: {str(error).partition(': ')[2] or error}")
    else:
        yield ok("agrees with finite differences of the gradient")


def _compare_second(subject: Subject, arrays: Arrays) -> None:
    """Raise an error if second derivatives are wrong for both of two steps, as a curve may bend within the larger."""
    if subject.precision is FLOAT32:
        gradgradcheck(subject.call, subject.tensors(arrays), eps=FLOAT32.step, atol=0.05, rtol=0.05, nondet_tol=1e-5)
        return
    try:
        gradgradcheck(subject.call, subject.tensors(arrays), atol=1e-5, rtol=1e-4)
    except GradcheckError:
        tensors = subject.tensors(arrays)
        if gradgradcheck(subject.call, tensors, eps=1e-7, atol=1e-4, rtol=1e-4, raise_exception=False):
            return
        raise


def _of_saved(subject: Subject, difference: str) -> str:
    """What usually loses a part of a second derivative in PyTorch."""
    if subject.operator.foreign is None or subject.operator.foreign.framework.name != "torch":
        return ""
    if "gives nan" in difference or "gives inf" in difference:
        return "; a root or a quotient in backward has no slope there: mark backward with @once_differentiable"
    return (
        "; what forward computes between its inputs and results has no graph: compute it again in backward, or mark "
        "backward with @once_differentiable"
    )
