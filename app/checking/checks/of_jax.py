"""What only JAX can be asked: `jit`, `vmap`, forward mode, and whether `fwd` gives what the function gives.

An error that JAX raises is a note, since nobody gets a wrong number. A wrong number without an error is a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jax
import numpy as np

from app.bridge.jax import JAX, chosen
from app.checking.checks.differences import first_difference, gradient_names
from app.checking.checks.of_any_framework import arriving_at, call_of, run, wants_of
from app.checking.subject import FLOAT64, Subject
from app.checking.verdict import Verdict, failed, note, ok


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:110] if lines else type(error).__name__


def _names(subject: Subject, count: int) -> list[str]:
    return [*(f"output {place}" for place in range(count)), *gradient_names(subject.float_inputs)]


def primal(subject: Subject) -> Iterator[Verdict]:
    """The rule that is used under differentiation gives the same results as the function."""
    wants, arrays = wants_of(subject), subject.arrays()
    if not any(wants):
        return
    values = JAX.tensors(arrays, wants)
    with jax.enable_x64(True):
        results, _ = jax.vjp(JAX.of_floats(call_of(subject), values, wants), *chosen(values, wants))
    expected = [o for o in subject.outputs(arrays) if o.dtype.kind == "f"]
    difference = first_difference([JAX.array(r) for r in results], expected, _names(subject, len(expected)))
    name = subject.name
    rule = f": its forward rule must return what {name} returns, as in `return {name}(x), x`"
    yield (
        failed(f"under jax.vjp and jax.grad, {difference}{rule}")
        if difference
        else ok("jax.vjp gives the same results")
    )


def jit(subject: Subject) -> Iterator[Verdict]:
    """`jax.jit` gives the same as without it, gradients too."""
    arrays, wants = subject.arrays(), wants_of(subject)
    plain = run(subject, arrays)
    flowing = arriving_at(subject, plain)
    try:
        compiled = JAX.run(jax.jit(call_of(subject)), arrays, wants)
        gradients = compiled.pull(flowing) if flowing else []
    except Exception as error:
        yield note(f"no jax.jit: {subject.reason(error)}")
        return
    expected = plain.pull(flowing) if flowing else []
    names = _names(subject, len(plain.outputs))
    difference = first_difference([*compiled.outputs, *gradients], [*plain.outputs, *expected], names)
    yield failed(f"under jax.jit, {difference}") if difference else ok("jax.jit gives the same, gradients too")


def vmap(subject: Subject) -> Iterator[Verdict]:
    """`jax.vmap` gives what a loop gives."""
    call = call_of(subject)
    sets = [JAX.tensors(subject.arrays(seed), []) for seed in (0, 5, 6)]
    with jax.enable_x64(True):
        looped = [JAX.leaves(call(*values)) for values in sets]
        stacked = [jax.numpy.stack(each) for each in zip(*sets, strict=True)]
        try:
            results = JAX.leaves(jax.vmap(call)(*stacked))
        except Exception as error:
            yield note(f"no jax.vmap: {subject.reason(error)}")
            return
    expected = [np.stack([JAX.array(one) for one in each]) for each in zip(*looped, strict=True)]
    difference = first_difference([JAX.array(r) for r in results], expected, _names(subject, len(expected)))
    yield failed(f"under jax.vmap, {difference}") if difference else ok("jax.vmap gives the same as a loop")


def forward_mode(subject: Subject) -> Iterator[Verdict]:
    """`jax.jvp` agrees with `jax.vjp`."""
    arrays, wants = subject.arrays(), wants_of(subject)
    if not any(wants) or subject.is_surrogate:
        return
    one = run(subject, arrays)
    flowing = arriving_at(subject, one)
    values = JAX.tensors(arrays, wants)
    random = np.random.default_rng(3)
    directions = [
        np.asarray(random.uniform(0.5, 1.5, a.shape)).astype(a.dtype)
        for a, needed in zip(arrays, wants, strict=True)
        if needed
    ]
    function = JAX.of_floats(call_of(subject), values, wants)
    try:
        with jax.enable_x64(True):
            _, tangents = jax.jvp(function, tuple(chosen(values, wants)), tuple(map(jax.numpy.asarray, directions)))
    except Exception as error:
        yield note(f"no forward mode (jax.jvp): {subject.reason(error)}")
        return
    actual = sum(float((JAX.array(t) * d).sum()) for t, d in zip(tangents, flowing, strict=True))
    gradients = one.pull(flowing)
    expected = sum(float((g * d).sum()) for g, d in zip(gradients, directions, strict=True) if g is not None)
    if abs(actual - expected) <= (1e-6 if subject.precision is FLOAT64 else 1e-3) * (1 + abs(expected)):
        yield ok("forward mode agrees with backward")
    else:
        yield failed(f"jax.jvp gives {actual:.6g} for a derivative of which jax.vjp gives {expected:.6g}")


CHECKS: dict[str, Callable[[Subject], Iterator[Verdict]]] = {
    "primal": primal,
    "jit": jit,
    "vmap": vmap,
    "forward": forward_mode,
}
