"""What only PyTorch can be asked: modes, what is saved, transforms, compilers, fake tensors, autocast, leaks.

An error that PyTorch raises is a note, since nobody gets a wrong number. A wrong number without an error is a failure.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from app.bridge.framework import Call
from app.bridge.torch import TORCH
from app.checking.checks import foreign
from app.checking.checks.differences import first_difference
from app.checking.checks.foreign import call_of, foreign_of, forward_mode, result_of, run, wants_of
from app.checking.subject import Arrays, Result, Subject
from app.checking.verdict import Verdict, failed, note, ok

_CUSTOM_OP = "torch.library.custom_op"
_CALLS = 200


def _inputs(subject: Subject) -> tuple[list[Any], list[Any]]:
    """Inputs as tensors with memory of their own, and those of them that need a gradient: floats."""
    tensors = TORCH.tensors([a.copy() for a in subject.arrays()], wants_of(subject))
    return tensors, [t for t in tensors if t.requires_grad]


def _differentiated(subject: Subject, results: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The results that have a gradient, and random gradients that arrive there."""
    drawn = map(torch.from_numpy, subject.arriving([TORCH.array(r) for r in results]))
    pairs = [(r, d) for r, d in zip(results, drawn, strict=True) if r.requires_grad]
    return [r for r, _ in pairs], [d for _, d in pairs]


def _gradients(tensors: Sequence[Any]) -> Result:
    """Gradients, to be compared."""
    return Result([], [None if t is None else TORCH.array(t) for t in tensors])


def modes(subject: Subject) -> Iterator[Verdict]:
    """Results are the same under `torch.no_grad()`."""
    with torch.no_grad():
        without = [TORCH.array(r) for r in TORCH.leaves(call_of(subject)(*_inputs(subject)[0]))]
    difference = first_difference(Result(without, []), Result(subject.outputs(subject.arrays()), []), [])
    yield failed(f"under torch.no_grad(), {difference}") if difference else ok("torch.no_grad() gives the same results")


def one_output(subject: Subject) -> Iterator[Verdict]:
    """Outputs can be used one at a time; backward then gets None or zeros for the others."""
    tensors, sources = _inputs(subject)
    derived, arriving = _differentiated(subject, TORCH.leaves(call_of(subject)(*tensors)))
    if len(derived) < 2 or not sources:
        return
    sums = [torch.zeros_like(t) for t in sources]
    for place, (one, gradient) in enumerate(zip(derived, arriving, strict=True)):
        try:
            parts = torch.autograd.grad([one], sources, [gradient], retain_graph=True, allow_unused=True)
        except Exception as error:
            yield failed(f"with only output {place} used, backward raises {subject.reason(error)}")
            return
        sums = [total if part is None else total + part for total, part in zip(sums, parts, strict=True)]
    together = torch.autograd.grad(derived, sources, arriving, allow_unused=True)
    difference = first_difference(_gradients(sums), _gradients(together), subject.float_inputs)
    yield failed(f"used one output at a time, {difference}") if difference else ok("outputs can be used one at a time")


def saved(subject: Subject) -> Iterator[Verdict]:
    """A change in place between forward and backward is noticed by PyTorch, or makes no difference."""
    expected = Result([], result_of(subject, run(subject, subject.arrays())).gradients)
    for what in ("an input", "a result"):
        leaves, sources = _inputs(subject)
        inputs = [t.clone() for t in leaves]
        results = TORCH.leaves(call_of(subject)(*inputs))
        derived, arriving = _differentiated(subject, results)
        changed, others = (inputs, results) if what == "an input" else (results, inputs)
        try:
            with torch.no_grad():
                for tensor in changed:
                    if tensor.is_floating_point() and not any(tensor is other for other in others):
                        tensor.mul_(1.5).add_(0.25)
            gradients = torch.autograd.grad(derived, sources, arriving, allow_unused=True)
        except RuntimeError:
            continue  # PyTorch noticed it
        difference = first_difference(_gradients(gradients), expected, subject.float_inputs)
        if difference:
            yield failed(
                f"if {what} is changed in place before backward, as ReLU(inplace=True) does, {difference}, and PyTorch "
                "does not notice: keep tensors with ctx.save_for_backward, not as attributes, through .detach() or "
                ".data"
            )
            return
    yield ok("a change in place between forward and backward is noticed, or makes no difference")


def vmap(subject: Subject) -> Iterator[Verdict]:
    """`torch.vmap` gives what a loop gives, and so do batched gradients."""
    (verdict,) = foreign.vmap(subject)
    tensors, sources = _inputs(subject)
    derived, arriving = _differentiated(subject, TORCH.leaves(call_of(subject)(*tensors)))
    if verdict.failed or not (derived and sources):
        yield verdict
        return
    many = [torch.stack([d, -2 * d, 0.5 * d]) for d in arriving]
    options: dict[str, Any] = {"retain_graph": True, "allow_unused": True}
    try:
        batched = torch.autograd.grad(derived, sources, many, is_grads_batched=True, **options)
    except Exception as error:
        yield note(f"no batched gradients (torch.func.jacrev): {subject.reason(error)}")
        return
    for place in range(3):
        single = torch.autograd.grad(derived, sources, [d[place] for d in many], **options)
        parts = [None if g is None else g[place] for g in batched]
        difference = first_difference(_gradients(parts), _gradients(single), subject.float_inputs)
        if difference:
            yield failed(f"with batched gradients (torch.func.jacrev), {difference}")
            return
    yield ok("torch.vmap gives the same as a loop, batched gradients too")


def compiled(subject: Subject) -> Iterator[Verdict]:
    """`torch.compile` gives what eager mode gives, gradients too."""
    call = call_of(subject)

    def around(*tensors: Any) -> Any:  # with something on both sides, which the compiler may move or reuse
        moved = [t * 1.0 if t.is_floating_point() else t for t in tensors]
        return tuple(r * 1.0 if r.is_floating_point() else r for r in TORCH.leaves(call(*moved)))

    expected = result_of(subject, run(subject, subject.arrays(), call=around))
    for whole in (True, False):
        torch._dynamo.reset()
        try:
            native = torch.compile(around, backend="aot_eager", fullgraph=whole)
            actual = result_of(subject, run(subject, subject.arrays(), call=native))
        except Exception as error:
            refused = f"no torch.compile{' in one graph' if whole else ''}: {subject.reason(error)}"
            if not whole:
                yield note(refused)
            continue
        difference = first_difference(actual, expected, subject.float_inputs)
        if difference:
            yield failed(f"under torch.compile, {difference}")
        elif whole:
            yield ok("torch.compile in one graph gives the same, gradients too")
        else:
            yield note(f"torch.compile gives the same, but breaks the graph: {refused}")
        return


def fake(subject: Subject) -> Iterator[Verdict]:
    """Shapes, types and strides under fake tensors equal the real ones, in several layouts, sizes and types."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    if foreign_of(subject).kind != _CUSTOM_OP:
        return
    call, layouts = call_of(subject), {"contiguous": np.ascontiguousarray, "column-major": np.asfortranarray}
    for dtype, rows in ((d, r) for d in ("float64", "float32") for r in (None, 1, 5)):
        try:
            arrays = (subject if rows is None else subject.with_batch(rows)).arrays(dtype=dtype)
            call(*map(torch.from_numpy, arrays))
        except Exception:  # it takes no other size or type
            continue
        for layout, change in layouts.items():
            tensors = [torch.from_numpy(change(a)) for a in arrays]
            real = TORCH.leaves(call(*tensors))
            try:
                with FakeTensorMode(allow_non_fake_inputs=True) as mode:
                    faked = TORCH.leaves(call(*map(mode.from_tensor, tensors)))
            except Exception as error:
                if "DynamicOutputShape" not in type(error).__name__ and "unbacked" not in str(error):
                    yield note(f"no fake tensors, which torch.compile and torch.export need: {subject.reason(error)}")
                return
            for place, (fake, true) in enumerate(zip(faked, real, strict=True)):
                difference = _misdescribed(fake, true)
                if difference:
                    inputs = ", ".join(f"{layout} {dtype}{list(t.shape)}" for t in tensors)
                    yield failed(f"register_fake says that output {place} has {difference}, on {inputs}")
                    return
    yield ok("register_fake gives the right shapes, types and strides")


def _misdescribed(fake: Any, true: Any) -> str:
    if any(isinstance(size, torch.SymInt) for size in fake.shape):
        return ""
    facts = {"shape": (list(fake.shape), list(true.shape)), "type": (fake.dtype, true.dtype)}
    if true.numel() > 1 and fake.shape == true.shape:
        sizes = [place for place, size in enumerate(true.shape) if size > 1]
        facts["strides"] = tuple([t.stride()[place] for place in sizes] for t in (fake, true))  # type: ignore[assignment]
    return next((f"{what} {one}; it has {other}" for what, (one, other) in facts.items() if one != other), "")


def opcheck(subject: Subject) -> Iterator[Verdict]:
    """PyTorch's own checks of a custom operator: its schema, autograd registration, fake tensors, dispatch."""
    if foreign_of(subject).kind != _CUSTOM_OP:
        return
    thing = foreign_of(subject).thing
    operator = getattr(thing, "_opoverload", thing)
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    args, kwargs = foreign_of(subject).arguments(_inputs(subject)[0], subject.settings)
    outcome = torch.library.opcheck(operator, tuple(args), kwargs, test_utils=tests, raise_exception=False)
    for test, result in outcome.items():
        if result != "SUCCESS":
            message = f"torch.library.opcheck: {test}: {subject.reason(result)}"
            yield failed(message) if test == "test_schema" else note(message)
            return
    yield ok("torch.library.opcheck passes")


def autocast(subject: Subject) -> Iterator[Verdict]:
    """Inside `torch.autocast`, with float32 and with bfloat16 inputs, results and gradients are close to float32."""
    # rounded first, so that numbers that are compared with each other are the same in both types
    floats = [(torch.from_numpy(a), a.dtype.kind == "f") for a in subject.arrays(dtype="float32")]
    arrays = [TORCH.array(t.bfloat16().float() if real else t) for t, real in floats]
    call, expected = call_of(subject), _of_floats(subject, call_of(subject), arrays)
    numbers = [n for n in (*expected.outputs, *expected.gradients) if n is not None]
    atol = 0.06 * max([1e-3, *(float(np.max(abs(n), initial=0)) for n in numbers)])
    refused = ""
    for dtype in (torch.float32, torch.bfloat16):

        def around(*tensors: Any, dtype: Any = dtype) -> Any:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return call(*[t.to(dtype) if t.is_floating_point() else t for t in tensors])

        try:
            actual = _of_floats(subject, around, arrays)
        except Exception as error:
            refused = refused or f"{dtype} inputs raise {subject.reason(error)}; torch.amp.custom_fwd casts them"
            continue
        difference = first_difference(actual, expected, subject.float_inputs, 0.1, atol)
        if difference:
            yield failed(f"inside torch.autocast, with {dtype} inputs, {difference}")
            return
    yield note(f"inside torch.autocast, {refused}") if refused else ok("torch.autocast gives the same, within bfloat16")


def _of_floats(subject: Subject, call: Call, arrays: Arrays) -> Result:
    """The outputs that are floats, as float32, and the gradients."""

    def floats(*tensors: Any) -> Any:
        return [r.float() for r in TORCH.leaves(call(*tensors)) if r.is_floating_point()]

    return result_of(subject, run(subject, arrays, call=floats))


def leak(subject: Subject) -> Iterator[Verdict]:
    """Calls leave no result in memory, nor for the garbage collector, which does not know how large a tensor is."""
    alive: list[Any] = []
    call, on = call_of(subject), gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for _ in range(_CALLS):
            alive += [weakref.ref(r) for r in TORCH.leaves(call(*_inputs(subject)[0]))]
        waiting = sum(r() is not None for r in alive)
    finally:
        if on:
            gc.enable()
    gc.collect()
    held = sum(r() is not None for r in alive)
    if held > len(alive) // 4:
        yield failed(f"after {_CALLS} calls, {held} of {len(alive)} results are still in memory: something keeps them")
    elif waiting > len(alive) // 4:
        yield failed(
            f"after {_CALLS} calls, {waiting} of {len(alive)} results wait for Python's garbage collector, as a "
            "cycle keeps them (ctx.y = y): keep tensors with ctx.save_for_backward"
        )
    else:
        yield ok(f"{_CALLS} calls leave nothing in memory")


__all__ = [
    "autocast", "compiled", "fake", "forward_mode", "leak", "modes", "one_output", "opcheck", "saved", "vmap",
]  # fmt: skip
