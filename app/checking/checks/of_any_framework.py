"""What holds by construction for operators of opsmith, and matters for those of other frameworks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from app.bridge.framework import Framework, Run
from app.bridge.function import Foreign
from app.checking.checks.differences import first_difference, gradient_names
from app.checking.subject import Arrays, Subject
from app.checking.verdict import Verdict, failed, ok


def foreign_of(subject: Subject) -> Foreign:
    assert subject.operator.foreign is not None
    return subject.operator.foreign


def framework_of(subject: Subject) -> Framework:
    return foreign_of(subject).framework


def call_of(subject: Subject) -> Callable[..., Any]:
    """The operator as a function of the framework's tensors."""
    return foreign_of(subject).of_tensors(subject.settings)


def wants_of(subject: Subject) -> list[bool]:
    return [foreign_of(subject).has_backward and one.is_float for one in subject.inputs]


def run(subject: Subject, arrays: Arrays, wants: list[bool] | None = None) -> Run:
    """Run the operator in its framework, whose arrays may share memory with what it keeps."""
    return framework_of(subject).run(call_of(subject), arrays, wants_of(subject) if wants is None else wants)


def arriving_at(subject: Subject, one: Run) -> Arrays:
    """Random gradients of the outputs that have one."""
    drawn = subject.arriving(one.outputs)
    return [d for d, has in zip(drawn, one.differentiable, strict=True) if has]


def alone(subject: Subject) -> Iterator[Verdict]:
    """Each gradient is the same when no other input needs one."""
    if len(subject.float_inputs) < 2 or not subject.has_gradient:
        return
    arrays = subject.arrays()
    whole = run(subject, arrays)
    drawn = subject.arriving(whole.outputs)
    together = iter(whole.pull(arriving_at(subject, whole)))
    for place, one in enumerate(subject.inputs):
        if not one.is_float:
            continue
        expected = next(together)
        try:
            here = run(subject, arrays, [p == place for p in range(len(arrays))])
            flowing = [d for d, has in zip(drawn, here.differentiable, strict=True) if has]
            (gradient,) = here.pull(flowing) if flowing else [None]
        except Exception as error:
            yield failed(f"when only {one.name} needs a gradient, it raises {subject.reason(error)}")
            return
        difference = first_difference([gradient], [expected], gradient_names([one.name]))
        if difference:
            yield failed(f"when only {one.name} needs a gradient, {difference}")
            return
    yield ok("each gradient is the same when no other input needs one")


def kept(subject: Subject) -> Iterator[Verdict]:
    """A second call changes neither the results nor the gradients of the first, which it would if it used a buffer."""
    first = run(subject, subject.arrays())
    before = [o.copy() for o in first.outputs]
    second = run(subject, subject.arrays(seed=7))
    names = [f"output {place}" for place in range(len(before))]
    difference = first_difference(first.outputs, before, names, 0, 0)
    if difference:
        yield failed(f"a second call changes the result of the first, as both are the same memory: {difference}")
        return
    if subject.has_gradient:
        gradients = first.pull(arriving_at(subject, first))
        held = [None if g is None else g.copy() for g in gradients]
        second.pull([np.asarray(2 * d) for d in arriving_at(subject, second)])
        difference = first_difference(gradients, held, gradient_names(subject.float_inputs), 0, 0)
        if difference:
            yield failed(
                f"a second backward pass changes the gradient of the first, which is the same memory: {difference}"
            )
            return
    yield ok("results and gradients stay as they are in later calls")


def shared(subject: Subject) -> Iterator[Verdict]:
    """A result does not share memory with an input."""
    arrays = subject.arrays()
    outputs = run(subject, arrays).outputs
    for place, output in enumerate(outputs):
        for one, array in zip(subject.inputs, arrays, strict=True):
            if np.shares_memory(output, array) and foreign_of(subject).kind == "torch.library.custom_op":
                yield failed(f"output {place} shares memory with the input {one.name}: return a copy (x.clone())")
                return
    yield ok("no result shares memory with an input")


CHECKS: dict[str, Callable[[Subject], Iterator[Verdict]]] = {"alone": alone, "kept": kept, "shared": shared}
