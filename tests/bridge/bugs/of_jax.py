"""Mistakes in rules that were written for JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bugs import JAX, Operator, bug


def normal(*shapes: tuple[int, ...]) -> Callable[[], tuple[Any, ...]]:
    def draw() -> tuple[Any, ...]:
        random = np.random.default_rng(0)
        return tuple(jnp.asarray(random.standard_normal(shape), jnp.float32) for shape in shapes)

    return draw


@bug("jax-ml/jax#3213", "the derivative with respect to the second input has the wrong sign", normal((4,), (4,)), JAX)
def sine_times(mended: bool) -> Operator:
    @jax.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    def backward(saved: Any, dy: Any) -> Any:
        cosine, sine, y = saved
        return cosine * dy * y, (sine if mended else -sine) * dy

    f.defvjp(lambda x, y: (f(x, y), (jnp.cos(x), jnp.sin(x), y)), backward)
    return f


@bug("jax-ml/jax#21220", "a residual of an inner rule is a constant for the outer derivative", normal((4,)), JAX)
def nested(mended: bool) -> Operator:
    @jax.custom_vjp
    def f(x: Any) -> Any:
        return x**3

    def backward(square: Any, dy: Any) -> Any:
        return (3 * (square if mended else jax.lax.stop_gradient(square)) * dy,)

    f.defvjp(lambda x: (x**3, x**2), backward)
    return f


@bug("jax-ml/jax#4802", "the tangent of a square root by Newton is multiplied by the input", normal((4,)), JAX)
def root(mended: bool) -> Operator:
    @jax.custom_jvp
    def f(x: Any) -> Any:
        return jnp.sqrt(1 + x * x)

    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (dx,) = primals, tangents
        y = f(x)
        return y, dx * x / y if mended else dx * x * x / y

    f.defjvp(rule)
    return f
