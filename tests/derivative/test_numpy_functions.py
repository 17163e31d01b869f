"""Derived gradients of NumPy's functions and statements on whole arrays against differences."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from derivative.array_slopes import (
    central_differences,
    gradient_arguments,
    largest_difference,
    listed,
    weights_for,
)
from modules_of_text import module_of_text
from numba import njit

from app.derivative.arrays import derive, written_out
from app.derivative.scope import UnderivableError

EXPRESSIONS = [
    # other places
    "x.T * 2", "np.transpose(x)", "x.transpose(1, 0)", "np.transpose(z, (2, 0, 1))", "np.swapaxes(z, 0, -1)",
    "np.moveaxis(z, 0, 2)", "np.flip(x)", "np.flip(x, axis=1)", "np.fliplr(x)", "np.flipud(x)", "np.roll(x, 1, axis=1)",
    "np.roll(v, -2)",
    # other shapes
    "x.reshape(2, 12) * 2", "x.reshape((2, 2, 6))", "x.reshape(-1)", "z.reshape(2, -1)", "np.ravel(x)", "x.flatten()",
    "x[None]", "x[..., np.newaxis] * x[:, None, :1]", "np.expand_dims(v, 0) * x", "x[:, :1].squeeze(1)",
    "np.atleast_2d(v)", "np.broadcast_to(v, (4, 6)) * x", "np.broadcast_to(x[:1], (4, 6)) * v",
    "x.astype(np.float64) * (x > 1).astype(np.float64)",
    # some elements
    "x[::2]", "x[:, 1::2] * 2", "x[1:, ::3]", "x[..., :1]", "x[..., 0]", "x[[0, 2]]", "x[:, [1, 3]]", "z[0][:, [1, 0]]",
    "x[np.arange(4), x.argmax(axis=1)]", "x[[0, 1], [1, 0]]", "np.take(x, 2, axis=1)", "np.take(v, [0, 0, 3])",
    "np.split(x, 2, axis=1)[0] * np.split(x, 2, axis=1)[1]", "np.diag(v)", "np.diag(x[:, :4])", "np.tril(x)",
    "np.triu(x, 1)", "np.trace(x[:, :4])", "np.diff(x)", "np.diff(x, axis=0)",
    # several times, and several arrays
    "np.repeat(v, 2)", "np.repeat(x, 2, axis=1)", "np.tile(v, 2)", "np.tile(x, (2, 1))", "np.stack([x, 2 * x])",
    "np.stack([v, v * v], axis=1)", "np.concatenate([x, x * x], axis=1)", "np.concatenate((v, v[:2]))",
    "np.vstack([x, v])", "np.hstack([v, 2 * v])", "np.column_stack([v, v * v])", "np.array([v, 2 * v])",
    "np.array([[v[0], 1.0], [v[1] * v[2], 0.0]])", "np.array([[x, 2 * x], [x, x]])",
    "np.hstack((v, v[0], (v[1], 2.0)))",
    "np.append(v, [v[0] * v[1]])", "np.append(x, x * x, axis=1)", "np.append(v, v[0] * 2)",
    "np.pad(v, (1, 2), mode='constant')", "np.pad(x, 1, 'constant', constant_values=0)",
    "np.pad(x, 1)", "np.pad(x, ((1, 0), (0, 2)))", "np.pad(v, (1, 2))",
    # made of indices
    "x * np.arange(6)", "v * np.arange(7, 1, -1)", "x[:2] * np.arange(1, 12, 2)", "x * np.linspace(0, 1, 6)",
    "np.eye(6, dtype=x.dtype) * v", "np.identity(6, dtype=np.float64) * v", "np.eye(6, dtype=bool) * v",
    "v * np.linspace(v[0], 1, len(v))", "x @ np.eye(6)", "x @ np.eye(6, 3, 1)", "x @ np.identity(6)",
    # reductions
    "x - np.mean(x)", "np.sum(x, axis=(0, 1))", "z.sum(axis=(0, 2))", "np.max(x, axis=-1)", "np.ptp(x, axis=0)",
    "x * np.nansum(x, axis=1)[:, None] + np.nanprod(v)", "x - np.nanmean(x, axis=0)",
    "np.nanvar(x, 0) + np.nanvar(v, ddof=1)",
    "np.nanstd(x, axis=1)", "np.nanmax(x, axis=1) - np.nanmin(x)",
    "x.var(axis=1, keepdims=True) * x", "np.var(x)", "np.var(x, 0, ddof=1)",
    "np.var(z, axis=(0, 2), keepdims=True) * z",
    "(x - x.mean()) / x.std()", "np.std(x, 1)",
    "np.average(x, axis=0)", "x / np.linalg.norm(x)", "x / np.linalg.norm(x, axis=1, keepdims=True)",
    "np.linalg.norm(x * 0)", "np.std(x * 0) + np.nanstd(x * 0, axis=1)", "np.cumsum(x, axis=1)", "x.cumsum(axis=0)",
    "np.cumsum(x)", "np.cumprod(x, axis=1)", "x * sum(x)", "sum(z) * x[:3, :4]", "v * max(v) - min(v)",
    "np.outer(x, v)", "np.outer(v, x[:, 1:])",
    "np.count_nonzero(x > 1) * x", "x * np.any(x > 1.5)", "x * (x > 0.1).all(axis=0)",
    "np.exp(x) / np.exp(x).sum(-1)[:, None]",
    # products
    "np.inner(v, v * v)", "np.inner(x, x)", "np.vdot(x, x)", "np.vdot(x[:1, :4], x[:, :1])",
    "np.cross(x[:, :3], v[3:])", "np.cross([0.0, 1.0, 2.0], z[..., :3])", "np.cross(v[:3], v[3:])",
    "z @ z.transpose(0, 2, 1)", "z @ x[:, :3]", "x[:2, :3] @ z * 2", "z @ v[:4]", "v[:3] @ z",
    "np.matmul(z[:, None], z.swapaxes(1, 2)[None] * 2)",
    "np.dot(x, v)", "x.dot(v)", "np.dot(x.T, x[:, 0])[0] * v", "np.outer(v, v)",
    "np.einsum('ij,kj->ik', x, x)", "np.einsum('ij->j', x)", "np.einsum('ij,j', x, v)",
    "np.einsum('bij,bkj->bik', z, z)",
    # choices
    "np.clip(x, 0.5, 1.2)", "x.clip(0.5, None)", "np.clip(v, None, v[::-1])",
    "np.select([x > 1, x > 0.5], [x, 2 * x], 0.0)",
    "x * ((x > 1) & (x < 1.5) | ~(v > 0.5))", "np.where((x > 1) ^ (v > 1), x, v)", "x * np.array_equal(x, v)",
    "x * x[x > 1].sum()", "np.mean(np.log(x[x > 1])) * v", "np.sum(x[(x > 0.5) & (x < 1.5)] ** 2 - v[0])",
    "x * 2 if x.sum() > 0 else x", "x * np.heaviside(x - 1, 0.5)", "np.fix(x) * x", "np.maximum(x, v)",
]  # fmt: skip
REVERSED = (
    "np.transpose(z, (2, 0, 1))", "np.roll(x, 1, axis=1)", "np.flip(x)", "x.reshape((2, 2, 6))",
    "x[..., np.newaxis] * x[:, None, :1]", "np.broadcast_to(v, (4, 6)) * x", "x[1:, ::3]", "x[:, [1, 3]]",
    "x[np.arange(4), x.argmax(axis=1)]", "np.take(v, [0, 0, 3])", "np.diag(v)", "np.triu(x, 1)", "np.diff(x, axis=0)",
    "np.repeat(x, 2, axis=1)", "np.tile(x, (2, 1))", "np.stack([v, v * v], axis=1)",
    "np.concatenate([x, x * x], axis=1)", "np.array([[v[0], 1.0], [v[1] * v[2], 0.0]])", "np.pad(x, ((1, 0), (0, 2)))",
    "v * np.linspace(v[0], 1, len(v))", "x @ np.eye(6)", "np.ptp(x, axis=0)",
    "x * np.nansum(x, axis=1)[:, None] + np.nanprod(v)", "np.nanvar(x, 0) + np.nanvar(v, ddof=1)",
    "np.nanmax(x, axis=1) - np.nanmin(x)", "np.var(z, axis=(0, 2), keepdims=True) * z", "np.linalg.norm(x * 0)",
    "np.cumsum(x)", "np.cumprod(x, axis=1)", "np.vdot(x[:1, :4], x[:, :1])", "np.cross(x[:, :3], v[3:])",
    "x[:2, :3] @ z * 2", "np.outer(v, v)", "np.einsum('bij,bkj->bik', z, z)", "np.clip(v, None, v[::-1])",
    "np.select([x > 1, x > 0.5], [x, 2 * x], 0.0)", "x * x[x > 1].sum()",
    "np.sum(x[(x > 0.5) & (x < 1.5)] ** 2 - v[0])", "x * np.heaviside(x - 1, 0.5)", "np.maximum(x, v)",
)  # fmt: skip
"""Those of which each run of the tests derives the gradient. It is that of the loops that an expression becomes."""
STATEMENTS = {
    "a mask chooses elements": "y = x.copy()\ny[x < 1] = 0\ny[y > 1.2] *= 0.1\nreturn y * x",
    "a mask chooses elements on both sides": "y = x * v\ny[x > 1] = np.exp(y[x > 1]) - x[x > 1] * v[0]\nreturn y",
    "two masks divide an array": "y = x * v\nm = y > 1\ny[m] *= y[m]\ny[~m] = 1 / y[~m]\nreturn y * x",
    "results of a helper are assigned together": "a, b = v[0], v[1]\ny = v * 1.0\nfor i in range(3):\n"
    "    a, b = exchanged(a, b * v[i])\n    y[i] += a * b\ny[0], y[1] = exchanged(y[0], y[1])\nreturn y * v",
    "arrays of a helper are assigned together": "a = v * 2\ny = v * 1.0\nfor i in range(3):\n    a, c = powers(a)\n"
    "    y[i] += c.sum()\nreturn y * a",
    "a state is carried through a loop": "h = v\nc, k = x[0], 1.0\nfor i in range(4):\n    h, c = cell(x[i], h, c)\n"
    "    k = k * h[0]\nreturn h * k + c * v",
    "an input gets another value in a loop": "for i in range(4):\n    v, k = np.tanh(v * x[i]), i\nreturn v",
    "arrays are exchanged": "a = v * 2\nb = v * v\nfor i in range(3):\n"
    "    a[i] = b[0] * b[i + 1]\n    a, b = b, a\nreturn a * v",
    "an array is transposed in a branch": "m = x[:, :4] * 2\nif v[0] > 0:\n    m = m.T\nreturn m * x[:, :4]",
    "an array of indices chooses where numbers go": "y = x * v\ny[np.arange(4), x.argmax(axis=1)] = v[0]\n"
    "y[[0, 0, 2], 1] = y[[1, 2, 3], 2] * 3\nreturn y * x",
    "one row is assigned to all": "y = x * 1.0\ny[:] = x[:1] * 2\nreturn y * v",
    "a mask chooses rows": "y = x * x\ny[np.array([x[0, 0] < 5, False, True, True])] *= 3\nreturn y",
    "a value gets two names": "y = w = x * 2\ny[0] = w[1] * x[0]\nreturn y + w",
    "parts of an input get names together": "a, b = x[0], x[1]\na, b = b, a\nreturn a * a + b",
    "a range is reversed": "y = np.zeros_like(v)\ns = 0.0\nfor i in reversed(range(1, 6)):\n    s += v[i]\n"
    "    y[i] = s * s\nreturn y",
    "a view of another shape shows changes": "y = np.zeros_like(x)\nr = y.reshape(-1)\ny[0] = v\nreturn r * 2",
    "a view of another shape is written": "y = x * 1.0\nr = y.reshape(-1)\nr[3:] *= 2.0\nreturn y * y",
    "another name and a diagonal show changes": "y = x[:, :4] * 1.0\nw = np.asarray(y)\nd = np.diag(y)\ny[0] = v[:4]\n"
    "return d * w * x[:, 4:5]",
    "a list keeps what was computed for it": "y = x * 1.0\nparts = [y * 2, y]\ny[0] = v\nreturn np.stack(parts) * x",
    "a choice between inputs": "y = x * 2 if v[0] > 0 else x * 3\ny[0] = v\nreturn y * x",
    "a size that changes later": "n = 2\ny = x.reshape(n, -1)\nt = np.broadcast_to(v, (n, 6))\nn = 3\n"
    "return (y[:, :6] * t).sum(axis=0) * n",
    "a result is returned early": "if x[0, 0] > 5:\n    return x * 2\ny = x * x\nif y[0, 0] > 0.01:\n"
    "    return y\nreturn x",
    "results are returned early": "if v[0] > v[1]:\n    return v[2:], v[0]\nreturn v[:4] * 2, 3.0",
    "the last branch raises an error": "if v[1] > 0:\n    return v * v\nraise ValueError('negative')",
    "a helper returns its array early": "y = x * v\nreturn scaled(y) * y",
    "an argument has no value": "return power(x) + power(x, v, 3)",
    "an array is unpacked": "a, b, c, d = x\nreturn a * b + c * d",
    "an element is unpacked": "p, q, r = v[:3] * 2\nreturn p * q * v + r",
    "several places get a value": "y = np.empty((6, 6))\nfor i in range(6):\n"
    "    y[i, :] = y[:, i] = v * v[i]\nreturn y",
    "sizes, and numbers of axes": "n = len(x.shape) * np.ndim(x)\n"
    "return v * np.shape(x)[1] + np.size(v) * n + x.max() * np.finfo(float).eps",
    "a slice counts from its end": "y = np.zeros_like(v)\nfor k in range(1, 4):\n    y[k:] += v[:-k] * v[k]\nreturn y",
    "a step is computed": "y = np.zeros(3)\nfor k in range(2, 5):\n    y[: len(v[1:6:k])] += v[1:6:k] * v[k]\nreturn y",
    "a transposed array gets a shape": "y = x * v\nreturn y.T.reshape(-1) * y.reshape(-1)",
    "features are normalised": "m = np.mean(x, 0)\ns = np.var(x, 0)\nreturn (x - m) / np.sqrt(s + 1e-5) * v",
    "heads attend": "q = x.reshape(4, 2, 3).transpose(1, 0, 2)\ns = np.einsum('hid,hjd->hij', q, q)\n"
    "e = np.exp(s - s.max(axis=-1, keepdims=True))\np = e / e.sum(axis=-1, keepdims=True)\n"
    "return np.einsum('hij,hjd->hid', p, q).transpose(1, 0, 2).reshape(x.shape)",
}
HELPERS = """
def exchanged(a, b):
    return b, a

def powers(a):
    return a * a, a * a * a

def cell(a, h, c):
    gate = 1 / (1 + np.exp(-a - h))
    c_next = gate * c + np.tanh(a * h)
    h_next = gate * np.tanh(c_next)
    return h_next, c_next

def scaled(a):
    n = np.linalg.norm(a)
    if n == 0:
        return a
    return np.asarray(a) / n

def power(a, by=None, n=None):
    a = np.asarray(a, dtype=np.float64)
    if by is None:
        by = a * 2
    if n is None:
        n = 2
    return a ** n * by
"""
REFUSED = {
    "y = v * 2\nw = y[::2].reshape(3, 1)\ny[0] = 0.0\nreturn w": r"write `\.copy\(\)` where",
    "for i in range(3):\n    if v[i] > 1:\n        return v\nreturn x[0]": "returns before the end",
    "if v[0] > 1:\n    return v\nreturn x": "return arrays of one shape",
    "if v[0] > 1:\n    y = v[int(v[0]) :] * 2\n    return y\nn = int(v[1])\nreturn v[n:]": "make the array before them",
    "y = x * 2\nw = x * 3\na, b = y, w\nreturn a * b": "another name, together with others",
    "y = x * 2\ny[[0, 0]] += 1.0\nreturn y": "changes elements by an array of indices",
    "return np.dot(z, z)": "write np.matmul",
    "y = x * v\nw = scaled(y)\ny[0, 0] = 1.0\nreturn w": r"write `\.copy\(\)` where",
    "y = x * v\nw = scaled(y)\nw[0, 0] = 1.0\nreturn y": r"write `\.copy\(\)` where",
    "y = x * v\nfor i in range(3):\n    w = scaled(y)\n    y[i] = w[0]\nreturn y": "return a copy",
    "return np.pad(x, 1, mode='edge')": "something other than zeros",
    "return np.add.outer(v, v)": "calls np.add.outer",
    "return x & 1": "works on bits",
    "y = x * 2\ny[x > 1] = y[x > 1] * v\nreturn y": "stands beside elements that a mask chooses",
    "return x[x[:, 0] > 1].sum()": "takes rows by a mask",
    "y = x * 2\ny[x[:, 0] > 1] = x[x[:, 0] > 1] * 3\nreturn y": "takes rows by a mask",
    "return x[x > 1]": "is a mask, .* write np.where",
    "return z[0, :, [1, 0]]": "index one after the other",
    "return np.tril(v)": "needs a matrix",
    "return np.squeeze(x)": "needs the axis that it removes",
    "return np.var(x, 0, None)": "calls var with arguments that cannot be derived: ",
    "return np.linalg.norm(x, 1, axis=1)": "calls norm with arguments that cannot be derived: too many",
    "return np.arange(0.0, 1.0, 0.5) * v[:2]": "np.linspace",
    "y = x * 2\nreturn np.sum(a=y)": "is more .* write it as loops",
    "y = x * 2\nreturn np.log(y, v[0])": "where 1 can be derived",
    "return x * max([v[0], v[1]])": "where 2 can be derived",
    "return x * sum([v[0], v[1]])": "calls sum, .* write a loop",
    "return x.clip(min=0.1)": "calls clip with",
    "y = []\ny.append(v)\nreturn y[0]": "calls y.append, .* assign to its elements",
    "return v[0].T * x": "reads 'T'",
    "return x.sort()": "write a loop",
    "y = x * 1.0\nparts = [y]\nfor i in range(3):\n    y = y * x\nreturn parts[0]": "while views of the former exist",
    "y = x * 2\nw = y if x[0, 0] > 0 else x\ny[0] = v\nreturn w": "chooses between arrays",
    "y = x.copy()\ny[x > 1] = x[0, :2]\nreturn y": "write np.where",
}  # fmt: skip


def function_of(text: str) -> tuple[Any, list[np.ndarray]]:
    """A function of those of x, v and z that a text has, and arrays for it."""
    random = np.random.default_rng(0)
    shapes = {"x": (4, 6), "v": (6,), "z": (2, 3, 4)}
    names = [name for name in shapes if re.search(rf"\b{name}\b(?! =)", text) and not re.search(rf"\b{name} = ", text)]
    body = text.replace("\n", "\n    ")
    function = module_of_text(f"import numpy as np\n{HELPERS}\ndef f({', '.join(names)}):\n    {body}\n").f
    return function, [random.uniform(0.3, 1.7, shapes[name]) for name in names]


def texts() -> list[str]:
    return [*(f"return {text}" for text in EXPRESSIONS), *STATEMENTS.values()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "orders"),
    [
        *((text, 1) for text in (*(f"return {text}" for text in REVERSED), *STATEMENTS.values())),
        # all of them, and their gradients, which are loops as in the tests of kernels
        *(pytest.param(text, 2, marks=pytest.mark.soak) for text in texts()),
    ],
)
def test_its_gradient_agrees_with_differences(text: str, orders: int):
    function, arguments = function_of(text)
    for _ in range(orders):
        derived, weights = derive(function, *arguments), weights_for(function, arguments)
        inputs = gradient_arguments(derived.function, function, arguments, weights)
        gradients = derived.function(*inputs)
        assert largest_difference(gradients, central_differences(function, arguments, weights)) < 1e-5, derived.source
        function, arguments = derived.function, inputs


def test_a_check_whose_message_is_computed_is_left_to_the_forward_pass():
    function, (x,) = function_of(
        "for d in range(x.ndim):\n    if x.shape[d] < 1:\n        raise ValueError('%d' % x.shape[d])\nreturn x * 2"
    )
    np.testing.assert_array_equal(derive(function, x).function(x, x), 2 * x)


def test_an_array_of_a_branch_that_only_a_later_test_reads_is_kept_whole():
    function, arguments = function_of(
        "y = x * 2\nif x[0, 0] < 5:\n    z = x * x\n    w = v[int(v[0]) :]\n    if z[0, 0] > 0.01:\n        y = x * 3\n"
        "else:\n    y = x * 4\nreturn y"
    )
    derived, weights = derive(function, *arguments), weights_for(function, arguments)
    gradients = derived.function(*gradient_arguments(derived.function, function, arguments, weights))
    assert largest_difference(gradients, central_differences(function, arguments, weights)) < 1e-5, derived.source


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("text", texts())
def test_written_out_as_loops_it_gives_the_same_also_for_nan(text: str):
    function, arguments = function_of(text)
    loops = written_out(function, *arguments)
    for array in (None, *arguments):
        if array is not None:
            array[(0,) * array.ndim] = array.flat[-2] = np.nan
        for actual, expected in zip(listed(loops(*arguments)), listed(function(*arguments)), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.soak
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("text", texts())
def test_numba_compiles_it(text: str, dtype: str):
    function, arguments = function_of(text)
    arguments = [a.astype(dtype) for a in arguments]
    weights = [np.ones_like(y, dtype) for y in listed(function(*arguments))]
    gradient = derive(function, *arguments).function
    inputs = gradient_arguments(gradient, function, arguments, weights)
    for actual, expected in zip(
        listed(njit(error_model="numpy")(gradient)(*inputs)), listed(gradient(*inputs)), strict=True
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-4 if dtype == "float32" else 1e-12, atol=1e-5)


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_derived_is_refused_with_its_line_and_what_to_write(text: str):
    function, arguments = function_of(text)
    with pytest.raises(UnderivableError, match=rf"\.py:\d+: `.*{REFUSED[text]}"):
        derive(function, *arguments)
