"""What holds by construction for operators of opsmith, and matters for those of other frameworks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np

from app.bridge.framework import Call, Framework, Run, Transforming
from app.bridge.function import Foreign
from app.checking.checks.differences import first_difference
from app.checking.subject import FLOAT64, Arrays, Result, Subject
from app.checking.verdict import Verdict, failed, note, ok


def foreign_of(subject: Subject) -> Foreign:
    assert subject.operator.foreign is not None
    return subject.operator.foreign


def framework_of(subject: Subject) -> Framework:
    return foreign_of(subject).framework


def call_of(subject: Subject) -> Call:
    """The operator as a function of the framework's tensors."""
    return foreign_of(subject).of_tensors(subject.settings)


def wants_of(subject: Subject) -> list[bool]:
    return [foreign_of(subject).has_backward and one.is_float for one in subject.inputs]


def run(subject: Subject, arrays: Arrays, wants: list[bool] | None = None, call: Call | None = None) -> Run:
    """Run the operator, or this call of it, in its framework; arrays may share memory with what the framework keeps."""
    return framework_of(subject).run(call or call_of(subject), arrays, wants_of(subject) if wants is None else wants)


def arriving_at(subject: Subject, one: Run) -> Arrays:
    """Random gradients of the outputs that have one."""
    drawn = subject.arriving(one.outputs)
    return [d for d, has in zip(drawn, one.differentiable, strict=True) if has]


def result_of(subject: Subject, one: Run) -> Result:
    """The outputs of a run and its gradients."""
    return Result(one.outputs, one.pull(arriving_at(subject, one)) if any(one.differentiable) else [])


def alone(subject: Subject) -> Iterator[Verdict]:
    """Each gradient is the same when no other input needs one."""
    if len(subject.float_inputs) < 2:
        return
    arrays = subject.arrays()
    together = iter(result_of(subject, run(subject, arrays)).gradients)
    for place, one in enumerate(subject.inputs):
        if not one.is_float:
            continue
        expected = next(together)
        try:
            here = run(subject, arrays, [p == place for p in range(len(arrays))])
            (gradient,) = result_of(subject, here).gradients or [None]
        except Exception as error:
            yield failed(f"when only {one.name} needs a gradient, it raises {subject.reason(error)}")
            return
        difference = first_difference(Result([], [gradient]), Result([], [expected]), [one.name])
        if difference:
            yield failed(f"when only {one.name} needs a gradient, {difference}")
            return
    yield ok("each gradient is the same when no other input needs one")


def kept(subject: Subject) -> Iterator[Verdict]:
    """A second call changes neither the results nor the gradients of the first, which it would if it used a buffer."""
    first = run(subject, subject.arrays())
    before = Result(first.outputs, []).copy()
    second = run(subject, subject.arrays(seed=7))
    difference = first_difference(Result(first.outputs, []), before, [], 0, 0)
    if difference:
        yield failed(f"a second call changes the result of the first, as both are the same memory: {difference}")
        return
    if subject.has_gradient:
        gradients = Result([], first.pull(arriving_at(subject, first)))
        held = gradients.copy()
        second.pull([np.asarray(2 * d) for d in arriving_at(subject, second)])
        difference = first_difference(gradients, held, subject.float_inputs, 0, 0)
        if difference:
            yield failed(
                f"a second backward pass changes the gradient of the first, which is the same memory: {difference}"
            )
            return
    yield ok("results and gradients stay as they are in later calls")


def shared(subject: Subject) -> Iterator[Verdict]:
    """A result of a `custom_op` does not share memory with an input."""
    arrays = subject.arrays()
    outputs = run(subject, arrays).outputs
    for place, output in enumerate(outputs):
        for one, array in zip(subject.inputs, arrays, strict=True):
            if np.shares_memory(output, array) and foreign_of(subject).kind == "torch.library.custom_op":
                yield failed(f"output {place} shares memory with the input {one.name}: return a copy (x.clone())")
                return
    yield ok("no result shares memory with an input")


# What several frameworks have, by their adapters


def _transforming(subject: Subject) -> Transforming:
    return cast(Transforming, framework_of(subject))


def vmap(subject: Subject) -> Iterator[Verdict]:
    """`vmap` gives what a loop gives."""
    sets, whole = [subject.arrays(seed) for seed in (0, 5, 6)], [False] * len(subject.inputs)
    looped = [run(subject, arrays, whole).outputs for arrays in sets]
    stacked = [np.stack(arrays) for arrays in zip(*sets, strict=True)]
    framework = _transforming(subject)
    results = run(subject, stacked, whole, framework.vmap(call_of(subject))).outputs
    expected = [np.stack(each) for each in zip(*looped, strict=True)]
    difference = first_difference(Result(results, []), Result(expected, []), [])
    name = f"{framework.name}.vmap"
    yield failed(f"under {name}, {difference}") if difference else ok(f"{name} gives the same as a loop")


def forward_mode(subject: Subject) -> Iterator[Verdict]:
    """Forward-mode derivatives agree with backward, or with differences if the framework has no reverse mode for it."""
    arrays, wants = subject.arrays(), wants_of(subject)
    one = run(subject, arrays)
    if not any(one.differentiable) or not (subject.has_gradient or subject.refusal):
        return
    arriving = arriving_at(subject, one)
    random = np.random.default_rng(3)
    moves = [random.uniform(0.5, 1.5, a.shape) * random.choice((-1, 1), a.shape) for a in arrays]
    directions = [m.astype(a.dtype) for m, a, has in zip(moves, arrays, wants, strict=True) if has]
    tangents = _transforming(subject).push(call_of(subject), arrays, wants, directions, one.differentiable)
    actual = _dot(tangents, arriving)
    if subject.has_gradient:
        other, expected = "backward gives", _dot(one.pull(arriving), directions)
    else:
        step, remaining = subject.precision.step, iter(directions)
        steps = [step * next(remaining) if has else 0 for has in wants]
        ahead, behind = (run(subject, [a + sign * s for a, s in zip(arrays, steps, strict=True)]) for sign in (1, -1))
        changes = [a - b for a, b, has in zip(ahead.outputs, behind.outputs, one.differentiable, strict=True) if has]
        other, expected = "finite differences give", _dot(changes, arriving) / (2 * step)
    if abs(actual - expected) <= (1e-6 if subject.precision is FLOAT64 else 1e-3) * (1 + abs(expected)):
        yield ok(f"forward mode agrees with {other.rpartition(' ')[0]}")
    elif not any(t is not None and t.any() for t in tangents):  # autograd.Function without jvp raises an error
        yield note("forward mode (torch.func.jvp) gives zero without an error, as of every custom_op: do not use it")
    else:
        yield failed(f"forward mode gives {actual:.6g} for a derivative of which {other} {expected:.6g}: is jvp right?")


def _dot(left: Sequence[np.ndarray | None], right: Arrays) -> float:
    """The sum of all products; None counts as zeros."""
    return sum(float((a * b).sum()) for a, b in zip(left, right, strict=True) if a is not None)
