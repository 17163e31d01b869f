"""A custom operator of every kind, each a function that works on Tensors and in Programs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

import app
from app.autograd import PyLayer
from app.custom import custom_op
from app.ops.spec import spec_of
from app.static import py_func

# py_func


def _soft(x: Any) -> Any:
    return x / (1 + np.abs(x))


def _soft_grad(x: Any, y: Any, dy: Any) -> Any:
    out = dy.copy()
    out[x < 0] = dy[x < 0] * (1 + y[x < 0]) ** 2
    out[x >= 0] = dy[x >= 0] * (1 - y[x >= 0]) ** 2
    return out


def py_func_plain(x: Any) -> Any:
    return py_func(_soft, x, spec_of(x), _soft_grad)


@njit
def _double(x: Any) -> Any:
    out = np.empty_like(x)
    for i in range(x.size):
        out.flat[i] = x.flat[i] * 2
    return out


def py_func_numba(x: Any) -> Any:
    return py_func(_double, x, spec_of(x), _times_two, skip_vars_in_backward_input=x)


@njit
def _times_two(y: Any, dy: Any) -> Any:
    out = np.empty_like(dy)  # Numba compiles a loop faster than arithmetic of arrays
    for i in range(dy.size):
        out.flat[i] = dy.flat[i] * 2 + y.flat[i] * 0
    return out


def py_func_numba_rows(x: Any) -> Any:
    return py_func(_double, x, spec_of(x), _times_two, skip_vars_in_backward_input=x, row_by_row=True)


def py_func_numba_forward(x: Any) -> Any:
    return py_func(_double, x, spec_of(x), _times_two.py_func, skip_vars_in_backward_input=x)


def py_func_half_numba(x: Any) -> Any:
    return py_func(_soft, x, spec_of(x), _soft_grad_numba)


@njit
def _soft_grad_numba(x: Any, y: Any, dy: Any) -> Any:
    out = np.empty_like(dy)
    for i in range(dy.size):
        rest = 1 - abs(y.flat[i])
        out.flat[i] = dy.flat[i] * rest * rest
    return out


def _both(x: Any, y: Any) -> Any:
    return x + y, x * y


def _both_grad(x: Any, y: Any, s: Any, p: Any, ds: Any, dp: Any) -> Any:
    return ds + dp * y, ds + dp * x


def py_func_two_outputs(x: Any, y: Any) -> Any:
    x, y = x + y, x - y  # of one shape
    total, product = py_func(_both, [x, y], [spec_of(x), spec_of(x)], _both_grad)
    return app.tanh(total) * product


def _product_grad(x: Any, y: Any, s: Any, p: Any, ds: Any, dp: Any) -> Any:
    assert not ds.any()
    return dp * y, dp * x


def py_func_one_gradient(x: Any, y: Any) -> Any:
    x, y = x + y, x - y
    return py_func(_both, [x, y], [spec_of(x), spec_of(x)], _product_grad)[1]


# custom_op


@custom_op
def cube(x: Any) -> Any:
    return x * x * x


@cube.backward
def _(x: Any, dy: Any) -> Any:
    return dy * 3 * x * x


@custom_op(outputs=("low", "high"))
@njit
def split_sign(x: Any) -> Any:
    low, high = np.empty_like(x), np.empty_like(x)
    for i in range(x.size):
        low.flat[i] = min(x.flat[i], 0)
        high.flat[i] = max(x.flat[i], 0)
    return low, high


@split_sign.backward
@njit
def _(x: Any, dlow: Any, dhigh: Any) -> Any:
    out = np.empty_like(x)
    for i in range(x.size):
        out.flat[i] = dlow.flat[i] if x.flat[i] < 0 else dhigh.flat[i]
    return out


@custom_op
@njit
def scaled(x: Any, factor: float = 0.5) -> Any:
    return x * factor


@scaled.backward
@njit
def _(dy: Any, factor: Any) -> Any:
    return dy * factor


@njit
def _helped(x: Any) -> Any:
    return x if x > 0 else x * 0.125


@custom_op(elementwise=True)
def leaky(x: Any, y: Any, bend: float = 0.25) -> Any:
    return _helped(x) + bend * y


@leaky.backward
def _(x: Any, y: Any, dz: Any, bend: float) -> Any:
    return (dz if x > 0 else dz * 0.125), bend * dz


@custom_op(elementwise=True, outputs=("a", "b"))
def two_numbers(x: Any) -> Any:
    return x * 2, 1 - x


@two_numbers.backward
def _(x: Any, da: Any, db: Any) -> Any:
    return 2 * da - db


STEPS = {"low": -0.5, "high": 0.75}


@custom_op(elementwise=True)
def looked_up(x: Any) -> Any:
    """Numba compiles no dictionary of a module, so this stays Python."""
    return STEPS["low" if x < 0 else "high"] * x


@looked_up.backward
def _(x: Any, dy: Any) -> Any:
    return STEPS["low" if x < 0 else "high"] * dy


# PyLayer


class TanhLayer(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = app.tanh(x)
        ctx.save_for_backward(y)
        ctx.note = "kept between the two"
        return y

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (y,) = ctx.saved_tensor()
        assert ctx.note
        return dy * (1 - y * y)


ONE = {
    "py_func plain": py_func_plain,
    "py_func numba": py_func_numba,
    "py_func numba rows": py_func_numba_rows,
    "py_func half numba": py_func_half_numba,
    "py_func numba forward": py_func_numba_forward,
    "custom_op plain": lambda x: cube(app.tanh(x)),
    "custom_op numba": lambda x: scaled(x, factor=-0.75),
    "custom_op two outputs": lambda x: split_sign(x)[1] - 0.5 * split_sign(x)[0],
    "custom_op one of two outputs": lambda x: split_sign(x)[0],
    "elementwise two outputs": lambda x: app.tanh(two_numbers(x)[0]) * two_numbers(x)[1],
    "elementwise one of two outputs": lambda x: two_numbers(x)[1],
    "elementwise python": looked_up,
    "PyLayer": TanhLayer.apply,
}
TWO = {
    "elementwise": lambda x, y: leaky(x, y),
    "elementwise set": lambda x, y: leaky(x, y, bend=-1.5),
    "py_func two outputs": py_func_two_outputs,
    "py_func one gradient": py_func_one_gradient,
}
