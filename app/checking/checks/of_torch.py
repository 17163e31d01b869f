"""What only PyTorch can be asked: modes, what is saved, transforms, compilers, fake tensors, autocast, leaks.

An error that PyTorch raises is a note, since nobody gets a wrong number. A wrong number without an error is a failure.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from app.checking.checks.differences import first_difference, gradient_names
from app.checking.checks.of_any_framework import arriving_at, call_of, foreign_of, framework_of, run, wants_of
from app.checking.subject import FLOAT64, Arrays, Subject
from app.checking.verdict import Verdict, failed, note, ok

_CUSTOM_OP = "torch.library.custom_op"
_CALLS = 200


def _leaves(results: Any) -> list[Any]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(results) if isinstance(leaf, torch.Tensor)]


def _tensors(subject: Subject, arrays: Arrays | None = None) -> list[Any]:
    """Inputs as tensors with memory of their own; floats need a gradient."""
    arrays = subject.arrays() if arrays is None else arrays
    return framework_of(subject).tensors([a.copy() for a in arrays], wants_of(subject))


def _array(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.numpy(force=True))


def _arrays(tensors: Sequence[Any]) -> list[np.ndarray | None]:
    return [None if t is None else _array(t) for t in tensors]


def _arriving(tensors: Sequence[Any]) -> list[Any]:
    """Random gradients of these tensors."""
    random = np.random.default_rng(1)
    return [torch.from_numpy(np.asarray(random.uniform(0.5, 1.5, tuple(t.shape)))).to(t.dtype) for t in tensors]


def _run(call: Callable[..., Any], tensors: list[Any]) -> tuple[list[Any], list[Any]]:
    """Results, and the gradients of the tensors that need one."""
    results = _leaves(call(*tensors))
    derived = [r for r in results if r.requires_grad]
    sources = [t for t in tensors if t.requires_grad]
    if not (derived and sources):
        return results, [None] * len(sources)
    return results, list(torch.autograd.grad(derived, sources, _arriving(derived), allow_unused=True))


def _names(subject: Subject, results: Sequence[Any]) -> list[str]:
    return [*(f"output {place}" for place in range(len(results))), *gradient_names(subject.float_inputs)]


def _line(error: Any, length: int = 110) -> str:
    """The first line of an error's message."""
    lines = str(error).strip().splitlines()
    return lines[0][:length] if lines else type(error).__name__


def modes(subject: Subject) -> Iterator[Verdict]:
    """Results are the same under `torch.no_grad()`."""
    with torch.no_grad():
        without = _leaves(call_of(subject)(*_tensors(subject)))
    difference = first_difference(_arrays(without), subject.outputs(subject.arrays()), _names(subject, without))
    yield failed(f"under torch.no_grad(), {difference}") if difference else ok("torch.no_grad() gives the same results")


def one_output(subject: Subject) -> Iterator[Verdict]:
    """Outputs can be used one at a time; backward then gets None or zeros for the others."""
    tensors = _tensors(subject)
    derived = [r for r in _leaves(call_of(subject)(*tensors)) if r.requires_grad]
    sources = [t for t in tensors if t.requires_grad]
    if len(derived) < 2 or not sources:
        return
    sums = [torch.zeros_like(t) for t in sources]
    for place, (one, arriving) in enumerate(zip(derived, _arriving(derived), strict=True)):
        try:
            parts = torch.autograd.grad([one], sources, [arriving], retain_graph=True, allow_unused=True)
        except Exception as error:
            yield failed(f"with only output {place} used, backward raises {subject.reason(error)}")
            return
        sums = [total if part is None else total + part for total, part in zip(sums, parts, strict=True)]
    together = torch.autograd.grad(derived, sources, _arriving(derived), allow_unused=True)
    difference = first_difference(_arrays(sums), _arrays(together), gradient_names(subject.float_inputs))
    yield failed(f"used one output at a time, {difference}") if difference else ok("outputs can be used one at a time")


def saved(subject: Subject) -> Iterator[Verdict]:
    """A change in place between forward and backward is noticed by PyTorch, or makes no difference."""
    if not subject.has_gradient:
        return
    _, expected = _run(call_of(subject), _tensors(subject))
    for what in ("an input", "a result"):
        leaves = _tensors(subject)
        inputs = [t.clone() for t in leaves]
        results = _leaves(call_of(subject)(*inputs))
        derived = [r for r in results if r.requires_grad]
        sources = [t for t in leaves if t.requires_grad]
        flowing = _arriving(derived)
        changed, others = (inputs, results) if what == "an input" else (results, inputs)
        try:
            with torch.no_grad():
                for tensor in changed:
                    if tensor.is_floating_point() and not any(tensor is other for other in others):
                        tensor.mul_(1.5).add_(0.25)
            gradients = torch.autograd.grad(derived, sources, flowing, allow_unused=True)
        except RuntimeError:
            continue  # PyTorch noticed it
        difference = first_difference(_arrays(gradients), _arrays(expected), gradient_names(subject.float_inputs))
        if difference:
            yield failed(
                f"if {what} is changed in place before backward, as ReLU(inplace=True) does, {difference}, and PyTorch "
                "does not notice: keep tensors with ctx.save_for_backward, not as attributes, through .detach() or "
                ".data"
            )
            return
    yield ok("a change in place between forward and backward is noticed, or makes no difference")


def forward_mode(subject: Subject) -> Iterator[Verdict]:
    """Forward-mode derivatives agree with backward."""
    if not subject.has_gradient or subject.is_surrogate:
        return
    arrays = subject.arrays()
    one = run(subject, arrays)
    flowing = arriving_at(subject, one)
    gradients = one.pull(flowing)
    random = np.random.default_rng(3)
    directions = [random.uniform(0.5, 1.5, a.shape).astype(a.dtype) for a in arrays if a.dtype.kind == "f"]
    expected = sum(float((g * d).sum()) for g, d in zip(gradients, directions, strict=True) if g is not None)
    remaining = iter(directions)
    try:
        with forward_ad.dual_level():
            tensors = [torch.from_numpy(a.copy()) for a in arrays]
            duals = [
                forward_ad.make_dual(t, torch.from_numpy(np.asarray(next(remaining)))) if t.is_floating_point() else t
                for t in tensors
            ]
            results = _leaves(call_of(subject)(*duals))
            derived = [r for r, has in zip(results, one.differentiable, strict=True) if has]
            tangents = [forward_ad.unpack_dual(r).tangent for r in derived]
    except Exception as error:
        yield note(f"no forward mode (torch.func.jvp): {subject.reason(error)}")
        return
    actual = sum(float((_array(t) * d).sum()) for t, d in zip(tangents, flowing, strict=True) if t is not None)
    if abs(actual - expected) <= (1e-6 if subject.precision is FLOAT64 else 1e-3) * (1 + abs(expected)):
        yield ok("forward mode agrees with backward")
    elif not any(t is not None and t.any() for t in tangents):  # autograd.Function without jvp raises an error
        yield note("forward mode (torch.func.jvp) gives zero without an error, as of every custom_op: do not use it")
    else:
        yield failed(
            f"forward mode gives {actual:.6g} for a derivative of which backward gives {expected:.6g}: is jvp right?"
        )


def vmap(subject: Subject) -> Iterator[Verdict]:
    """`torch.vmap` gives what a loop gives, and so do batched gradients."""
    call = call_of(subject)
    sets = [subject.arrays(seed) for seed in (0, 5, 6)]
    stacked = [torch.from_numpy(np.stack(arrays)) for arrays in zip(*sets, strict=True)]
    looped = [_leaves(call(*map(torch.from_numpy, arrays))) for arrays in sets]
    try:
        results = _leaves(torch.vmap(lambda *tensors: tuple(_leaves(call(*tensors))))(*stacked))
    except Exception as error:
        yield note(f"no torch.vmap: {subject.reason(error)}")
        return
    expected: list[Any] = [torch.stack(each) for each in zip(*looped, strict=True)]
    difference = first_difference(_arrays(results), _arrays(expected), _names(subject, results))
    if difference:
        yield failed(f"under torch.vmap, {difference}")
        return
    yield from _batched_gradients(subject, call, sets[0])


def _batched_gradients(subject: Subject, call: Callable[..., Any], arrays: Arrays) -> Iterator[Verdict]:
    tensors = _tensors(subject, arrays)
    derived = [r for r in _leaves(call(*tensors)) if r.requires_grad]
    sources = [t for t in tensors if t.requires_grad]
    if derived and sources:
        many = [torch.stack([d, -2 * d, 0.5 * d]) for d in _arriving(derived)]
        options: dict[str, Any] = {"retain_graph": True, "allow_unused": True}
        try:
            batched = torch.autograd.grad(derived, sources, many, is_grads_batched=True, **options)
        except Exception as error:
            yield note(f"no batched gradients (torch.func.jacrev): {subject.reason(error)}")
            return
        for place in range(3):
            single = torch.autograd.grad(derived, sources, [d[place] for d in many], **options)
            parts = [None if g is None else g[place] for g in batched]
            difference = first_difference(_arrays(parts), _arrays(single), gradient_names(subject.float_inputs))
            if difference:
                yield failed(f"with batched gradients (torch.func.jacrev), {difference}")
                return
    yield ok("torch.vmap gives the same as a loop, batched gradients too")


def compiled(subject: Subject) -> Iterator[Verdict]:
    """`torch.compile` gives what eager mode gives, gradients too."""
    call = call_of(subject)

    def around(*tensors: Any) -> Any:  # with something on both sides, which the compiler may move or reuse
        moved = [t * 1.0 if t.is_floating_point() else t for t in tensors]
        return tuple(r * 1.0 if r.is_floating_point() else r for r in _leaves(call(*moved)))

    results, gradients = _run(around, _tensors(subject))
    for whole in (True, False):
        torch._dynamo.reset()
        try:
            actual = _run(torch.compile(around, backend="aot_eager", fullgraph=whole), _tensors(subject))
        except Exception as error:
            refused = f"no torch.compile{' in one graph' if whole else ''}: {subject.reason(error)}"
            if not whole:
                yield note(refused)
            continue
        difference = first_difference(
            [*_arrays(actual[0]), *_arrays(actual[1])],
            [*_arrays(results), *_arrays(gradients)],
            _names(subject, results),
        )
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
            real = _leaves(call(*tensors))
            try:
                with FakeTensorMode(allow_non_fake_inputs=True) as mode:
                    faked = _leaves(call(*map(mode.from_tensor, tensors)))
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
    args, kwargs = foreign_of(subject).arguments(_tensors(subject), subject.settings)
    outcome = torch.library.opcheck(operator, tuple(args), kwargs, test_utils=tests, raise_exception=False)
    for test, result in outcome.items():
        if result != "SUCCESS":
            message = f"torch.library.opcheck: {test}: {subject.reason(result)}"
            yield failed(message) if test == "test_schema" else note(message)
            return
    yield ok("torch.library.opcheck passes")


def autocast(subject: Subject) -> Iterator[Verdict]:
    """Inside `torch.autocast`, with float32 and with bfloat16 inputs, results and gradients are close to float32."""
    if not subject.has_gradient:
        return
    # rounded first, so that numbers that are compared with each other are the same in both types
    rounded = [torch.from_numpy(a).bfloat16() if a.dtype.kind == "f" else a for a in subject.arrays(dtype="float32")]
    call, arrays = call_of(subject), [a if isinstance(a, np.ndarray) else _array(a.float()) for a in rounded]
    results, gradients = _run(call, _tensors(subject, arrays))
    numbers = [_array(t) for t in [*results, *gradients] if t is not None and t.is_floating_point()]
    atol = 0.06 * max([1e-3, *(float(np.max(abs(n), initial=0)) for n in numbers)])
    refused = ""
    for dtype in (torch.float32, torch.bfloat16):

        def around(*tensors: Any, dtype: Any = dtype) -> Any:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                outputs = call(*[t.to(dtype) if t.is_floating_point() else t for t in tensors])
            return [r.float() if r.is_floating_point() else r for r in _leaves(outputs)]

        try:
            actual = _run(around, _tensors(subject, arrays))
        except Exception as error:
            refused = refused or f"{dtype} inputs raise {subject.reason(error)}; torch.amp.custom_fwd casts them"
            continue
        pairs = [
            (f, e, name)
            for f, e, name in zip(
                [*actual[0], *actual[1]], [*results, *gradients], _names(subject, results), strict=True
            )
            if e is None or e.is_floating_point()
        ]
        some, others, names = ([pair[i] for pair in pairs] for i in range(3))
        difference = first_difference(_arrays(some), _arrays(others), names, 0.1, atol)
        if difference:
            yield failed(f"inside torch.autocast, with {dtype} inputs, {difference}")
            return
    yield note(f"inside torch.autocast, {refused}") if refused else ok("torch.autocast gives the same, within bfloat16")


def leak(subject: Subject) -> Iterator[Verdict]:
    """Calls leave no result in memory, nor for the garbage collector, which does not know how large a tensor is."""
    alive: list[Any] = []
    call, on = call_of(subject), gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for _ in range(_CALLS):
            alive += [weakref.ref(r) for r in _leaves(call(*_tensors(subject)))]
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


CHECKS: dict[str, Callable[[Subject], Iterator[Verdict]]] = {
    "modes": modes,
    "one output": one_output,
    "saved": saved,
    "forward": forward_mode,
    "vmap": vmap,
    "autocast": autocast,
    "leak": leak,
    "fake": fake,
    "opcheck": opcheck,
    "compile": compiled,
}
