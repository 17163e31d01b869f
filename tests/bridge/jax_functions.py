"""Operators of JAX: right ones, and wrong ones, each in one way."""

from functools import partial

import jax
import jax.numpy as jnp


@jax.custom_vjp
def swish(x):
    return x * jax.nn.sigmoid(x)


def _swish_forward(x):
    return swish(x), x


def _swish_backward(x, dy):
    s = jax.nn.sigmoid(x)
    return (dy * s * (1 + x * (1 - s)),)


swish.defvjp(_swish_forward, _swish_backward)


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def leaky(x, slope):
    return jnp.where(x > 0, x, slope * x)


leaky.defvjp(lambda x, slope: (leaky(x, slope), x), lambda slope, x, dy: (jnp.where(x > 0, dy, slope * dy),))


@jax.custom_jvp
def cube(x):
    return x**3


@cube.defjvp
def cube_jvp(primals, tangents):
    return primals[0] ** 3, 3 * primals[0] ** 2 * tangents[0]


@jax.custom_jvp
def forward_only(x):
    return jnp.sin(x)


@forward_only.defjvp
def forward_only_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return jnp.sin(x), jnp.cos(x) * (jnp.maximum(t, 0) + jnp.minimum(t, 0))  # JAX has no reverse mode of maximum


@jax.custom_jvp
def absolute_tangent(x):
    return jnp.sin(x)


@absolute_tangent.defjvp
def absolute_tangent_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return jnp.sin(x), jnp.cos(x) * jnp.abs(t)


@jax.custom_vjp
def lost_second(x):
    return x**3


lost_second.defvjp(lambda x: (x**3, x), lambda x, dy: (3 * dy * x * jax.lax.stop_gradient(x),))


def depends_on_tracing(x):
    return x * (2.0 if isinstance(x, jax.core.Tracer) else 3.0)


def plain(x, y):
    return jnp.tanh(x) * y
