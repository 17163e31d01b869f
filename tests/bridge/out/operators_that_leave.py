"""Operators in the styles in which people write them, with examples of their inputs, for tests and docs/bridge.md."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from derivative.kernels import KERNELS

import app
from app.custom.shelf.ema import ema
from app.custom.shelf.gated import gated
from app.custom.shelf.leaky_relu import leaky_relu
from app.custom.shelf.prelu import sloped
from app.custom.shelf.relu import relu_backward, relu_forward
from app.custom.shelf.softmax import softmax
from app.custom.shelf.softplus import softplus
from app.custom.shelf.swish import swish
from app.custom.shelf.tanh import tanh_backward, tanh_forward

MATRIX = np.random.default_rng(0).uniform(-2, 2, (4, 6))


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).uniform(-2, 2, shape)


@app.custom_op(elementwise=True, like="gelu")
def gelu(x):
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


@app.custom_op(elementwise=True)
def huber(x, delta=1.0):
    if abs(x) <= delta:
        return 0.5 * x * x
    return delta * (abs(x) - 0.5 * delta)


@app.custom_op(elementwise=True)
def root(x):
    return math.sqrt(x) if x > 0 else 0.0


@app.custom_op(elementwise=True)
def hard_swish(x):
    return x * min(max(x + 3, 0), 6) / 6


@app.custom_op(elementwise=True)
def mish(x):
    return x * math.tanh(math.log1p(math.exp(-abs(x))) + max(x, 0.0))


@app.custom_op(elementwise=True, outputs=["radius", "angle"])
def polar(x, y):
    return math.hypot(x, y), math.atan2(y, x)


@app.custom_op(elementwise=True)
def taylor(x, terms=6):
    total, term = 1.0, 1.0
    for k in range(1, terms):
        term = term * x / k
        total += term
    return total


@app.custom_op(elementwise=True)
def sign(x):
    return 1.0 if x > 0 else -1.0


@sign.backward(surrogate=True)
def sign_grad(x, dout):
    return dout if abs(x) < 1 else 0.0


@app.custom_op(elementwise=True)
def halvings(x, limit=1.0):
    while x > limit:
        x = x / 2
    return x * 1.5


@app.custom_op(elementwise=True)
def relu(x):
    return x if x > 0 else 0.0


def of_functions(forward: Any, backward: Any, skips_input: bool) -> Any:
    """The operator that py_func makes of two functions."""
    x = app.static.InputSpec([4, 6], "float64")
    program = app.static.Program()
    with app.static.program_guard(program, app.static.Program()):
        app.enable_static()
        try:
            x = app.static.data("x", [4, 6], "float64")
            out = app.static.default_main_program().current_block().create_var("y", [4, 6], "float64")
            app.static.py_func(forward, x, out, backward, skip_vars_in_backward_input=x if skips_input else None)
        finally:
            app.disable_static()
    return program.global_block().ops[-1].definition


def of_kernel(name: str, **options: Any) -> tuple[Any, tuple[np.ndarray, ...]]:
    """A kernel of the tests of derived gradients as an operator."""
    kernel = KERNELS[name]
    return app.custom_op(kernel.compiled, **options), kernel.small()


ONE = (MATRIX,)
OPERATORS: dict[str, tuple[Any, tuple[np.ndarray, ...]]] = {
    "swish": (swish, ONE),
    "softplus": (softplus, ONE),
    "gelu": (gelu, ONE),
    "huber": (huber, ONE),
    "root": (root, ONE),
    "hard_swish": (hard_swish, ONE),
    "mish": (mish, ONE),
    "polar": (polar, (MATRIX, drawn(4, 6))),
    "gated": (gated, (MATRIX, drawn(4, 6))),
    "sloped": (sloped, (MATRIX, drawn(6))),
    "taylor": (taylor, ONE),
    "sign": (sign, ONE),
    "leaky_relu": (leaky_relu, ONE),
    "relu": (relu, ONE),
    "relu of py_func": (of_functions(relu_forward, relu_backward, True), ONE),
    "tanh": (of_functions(tanh_forward, tanh_backward, True), ONE),
    "halvings": (halvings, ONE),
    "softmax": (softmax, ONE),
    "ema": (ema, ONE),
    "layernorm": of_kernel("layernorm"),
    "logsumexp": of_kernel("logsumexp"),
    "conv1d": of_kernel("conv1d"),
    "topk": of_kernel("topk"),
    "prelu": of_kernel("prelu"),
    "soft_dtw": of_kernel("soft_dtw"),
    "gather": of_kernel("gather"),
    "softmax_whole": of_kernel("softmax_whole"),
    "max_pool": of_kernel("max_pool"),
}
