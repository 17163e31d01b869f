"""What only JAX can be asked: `jit`, and whether `fwd` gives what the function gives."""

from __future__ import annotations

from collections.abc import Iterator

import jax

from app.bridge.jax import JAX, chosen
from app.checking.checks.differences import first_difference
from app.checking.checks.foreign import call_of, forward_mode, result_of, run, vmap, wants_of
from app.checking.subject import Result, Subject
from app.checking.verdict import Verdict, failed, ok


def primal(subject: Subject) -> Iterator[Verdict]:
    """The rule that is used under differentiation gives the same results as the function."""
    wants, arrays = wants_of(subject), subject.arrays()
    values = JAX.tensors(arrays, wants)
    with JAX.types_of(arrays):
        results, _ = jax.vjp(JAX.of_floats(call_of(subject), values, wants), *chosen(values, wants))
    expected = [o for o in subject.outputs(arrays) if o.dtype.kind == "f"]
    difference = first_difference(Result([JAX.array(r) for r in results], []), Result(expected, []), [])
    rule = f": its forward rule must return what {subject.name} returns, as in `return {subject.name}(x), x`"
    yield (
        failed(f"under jax.vjp and jax.grad, {difference}{rule}")
        if difference
        else ok("jax.vjp gives the same results")
    )


def jit(subject: Subject) -> Iterator[Verdict]:
    """`jax.jit` gives the same as without it, gradients too."""
    arrays = subject.arrays()
    compiled = result_of(subject, run(subject, arrays, call=jax.jit(call_of(subject))))
    plain = result_of(subject, run(subject, arrays))
    difference = first_difference(compiled, plain, subject.float_inputs)
    yield failed(f"under jax.jit, {difference}") if difference else ok("jax.jit gives the same, gradients too")


__all__ = ["forward_mode", "jit", "primal", "vmap"]
