"""JAX, a whole epoch in one jit call with lax.scan"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.contenders.jax_step import accuracy, descend
from benchmarks.work import initial_weights, run_epochs


def train(data, work):
    images, labels, tests, truth = map(jnp.asarray, data)
    random = np.random.default_rng(work.seed)
    layers = jax.tree.map(jnp.asarray, initial_weights(work))
    whole = len(images) // work.batch * work.batch

    @partial(jax.jit, donate_argnums=0)
    def epoch(layers, images, labels, order):
        def step(layers, rows):
            return descend(layers, images[rows], labels[rows], work.rate), None

        layers, _ = jax.lax.scan(step, layers, order[:whole].reshape(-1, work.batch))
        if whole < len(order):
            layers, _ = step(layers, order[whole:])
        return layers

    def train_epoch():
        nonlocal layers
        layers = jax.block_until_ready(epoch(layers, images, labels, random.permutation(len(images))))

    return run_epochs(work, train_epoch, lambda: float(accuracy(layers, tests, truth)))
