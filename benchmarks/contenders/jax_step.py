"""JAX, one jit call per step"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.work import initial_weights, run_epochs


def train(data, work, relu=jax.nn.relu):
    if work.slope is not None:
        relu = partial(leaky, slope=work.slope)
    images, labels, tests, truth = map(jnp.asarray, data)
    random = np.random.default_rng(work.seed)
    layers = jax.tree.map(jnp.asarray, initial_weights(work))

    @partial(jax.jit, donate_argnums=0)
    def step(layers, images, labels, rows):
        return descend(layers, images[rows], labels[rows], work.rate, relu)

    def train_epoch():
        nonlocal layers
        order = random.permutation(len(images))
        for first in range(0, len(order), work.batch):
            layers = step(layers, images, labels, order[first : first + work.batch])
        jax.block_until_ready(layers)

    return run_epochs(work, train_epoch, lambda: float(accuracy(layers, tests, truth, relu)))


def scores(layers, images, relu=jax.nn.relu):
    x = images * jnp.float32(2 / 255) - 1  # here, where XLA fuses it with the gathering of the batch
    for w, b in layers[:-1]:
        x = relu(x @ w + b)
    w, b = layers[-1]
    return x @ w + b


def descend(layers, images, labels, rate, relu=jax.nn.relu):
    """The layers after a step of SGD."""

    def loss(layers):
        logs = jax.nn.log_softmax(scores(layers, images, relu))
        return -jnp.take_along_axis(logs, labels[:, None], axis=1).mean()

    return jax.tree.map(lambda value, gradient: value - rate * gradient, layers, jax.grad(loss)(layers))


def leaky(x, slope):
    return jnp.where(x > 0, x, slope * x)


@partial(jax.jit, static_argnames="relu")
def accuracy(layers, images, labels, relu=jax.nn.relu):
    return (scores(layers, images, relu).argmax(1) == labels).mean()
