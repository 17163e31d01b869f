"""Functions made of operators: NumPy's numbers, the same in a Program, and gradients that agree with differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy import special

import app
from app import static, to_tensor
from app.autograd import gradcheck
from app.errors import DtypeError
from app.ops import REGISTRY
from app.ops.public import PUBLIC

X = np.array([[-1.3, 0.4, 2.1], [0.7, -0.6, 1.9]])
Y = np.array([[0.3, -1.7, 0.8], [1.2, 2.5, -0.9]])
DEEP = np.linspace(-2.0, 2.3, 24).reshape(2, 3, 4)
HALF = np.abs(X) / 5 + 0.1
HOLES = np.array([[1.0, np.nan, 3.0], [np.nan, -np.inf, np.inf]])
PLACES = np.array([1, 0, 1])
ALONG = np.array([[2, 0], [1, 1]])
POINTS = np.array([[1, 2], [0, 0]])
OVER_ALL = ["sum", "mean", "max", "min", "prod", "any", "all", "amax", "amin"]
OVER_ALL += ["logsumexp", "norm", "std", "var", "count_nonzero"]

Case = tuple[Callable[..., Any], Callable[..., Any], Sequence[np.ndarray]]


def put(x: np.ndarray, index: np.ndarray, values: Any, axis: int) -> np.ndarray:
    out = x.copy()
    np.put_along_axis(out, index, values, axis)
    return out


def added(x: np.ndarray, index: Any, values: Any) -> np.ndarray:
    out = x.copy()
    np.add.at(out, index, values)
    return out


def norms(order: Any, axis: Any = None, keepdim: bool = False) -> Case:
    return (
        lambda x: app.matrix_norm(x, order, axis or (-2, -1), keepdim),
        lambda x: np.linalg.norm(x, order, axis or (-2, -1), keepdim),
        [DEEP if axis else X],
    )


def alike(arrays: Sequence[np.ndarray], *names: str) -> dict[str, Case]:
    """Functions that have one name and one meaning in NumPy and here."""
    return {name: (getattr(app, name), getattr(np, name), arrays) for name in names}


def einsum(equation: str, *arrays: np.ndarray) -> dict[str, Case]:
    return {f"einsum {equation}": (lambda *v: app.einsum(equation, *v), lambda *v: np.einsum(equation, *v), arrays)}


CASES: dict[str, Case] = {
    **alike([X], "deg2rad", "rad2deg"),
    **alike([X, Y], "fmax", "fmin", "hypot", "logaddexp"),
    **alike([HOLES], "nan_to_num"),
    **alike([DEEP], "tril", "triu"),
    **alike([DEEP, DEEP[0]], "inner"),
    **alike([X, Y[0]], "outer"),
    **{f"matrix_norm {order}": norms(order) for order in ("fro", 1, -1, np.inf, -np.inf)},
    "matrix_norm of others": norms(1, (2, 0)),
    "matrix_norm kept": norms(np.inf, (0, 1), True),
    "vector_norm": (lambda x: app.vector_norm(x, 3.0, 1), lambda x: np.linalg.norm(x, 3, 1), [X]),
    "norm": (app.norm, np.linalg.norm, [DEEP]),
    "norm of rows": (lambda x: x.norm("fro", 1), lambda x: np.linalg.norm(x, axis=1), [X]),
    "dist": (lambda x, y: app.dist(x, y, 1), lambda x, y: np.abs(x - y).sum(), [X, Y]),
    "diff": (lambda x: app.diff(x, 2, 1), lambda x: np.diff(x, 2, 1), [X]),
    "diff joined": (lambda x, y: app.diff(x, 1, 0, y, y), lambda x, y: np.diff(x, 1, 0, y, y), [X, Y]),
    "frac": (app.frac, lambda x: x - np.trunc(x), [X]),
    "logit": (app.logit, special.logit, [HALF]),
    "logit near": (lambda x: app.logit(x, 0.3), lambda x: special.logit(np.clip(x, 0.3, 0.7)), [HALF]),
    "nan_to_num given": (
        lambda x: app.nan_to_num(x, 7.0, 8.0, 9.0), lambda x: np.nan_to_num(x, nan=7.0, posinf=8.0, neginf=9.0), [HOLES]
    ),
    "fmax of NaN": (app.fmax, np.fmax, [HOLES, Y]),
    "fmin of NaN": (lambda x, y: app.fmin(y, x), np.fmin, [HOLES, Y]),
    "hypot of large": (app.hypot, np.hypot, [np.array([1e300, 0.0, np.inf]), np.array([1e300, 0.0, 1.0])]),
    "logaddexp of a row": (app.logaddexp, np.logaddexp, [X, Y[0]]),
    "logaddexp of large": (app.logaddexp, np.logaddexp, [np.array([np.inf, 1e300]), np.array([-np.inf, 1e300])]),
    "lerp": (lambda x, y: app.lerp(x, y, 0.25), lambda x, y: x + 0.25 * (y - x), [X, Y]),
    "scale": (lambda x: app.scale(x, 2.0, 1.0), lambda x: 2 * x + 1, [X]),
    "scale first the bias": (lambda x: app.scale(x, 2.0, 1.0, False, "tanh"), lambda x: np.tanh(2 * (x + 1)), [X]),
    "add_n": (lambda x, y: app.add_n([x, y, x]), lambda x, y: 2 * x + y, [X, Y]),
    "tile": (lambda x: app.tile(x, [2, 1, 3]), lambda x: np.tile(x, [2, 1, 3]), [X]),
    "tile zero times": (lambda x: app.tile(x, [2, 0, 3]), lambda x: np.tile(x, [2, 0, 3]), [X]),
    "tile rows": (lambda x: app.tile(x, 2), lambda x: np.tile(x, 2), [DEEP]),
    "broadcast_tensors": (lambda *v: app.add_n(app.broadcast_tensors([*v])), lambda x, y: x + y, [X, Y[:, :1]]),
    "broadcast_to": (lambda x: app.broadcast_to(x, [2, 2, 3]), lambda x: np.broadcast_to(x, (2, 2, 3)), [X]),
    "t": (lambda x: x.t(), np.transpose, [X]),
    "t of a row": (app.t, np.transpose, [X[0]]),
    "swapaxes": (lambda x: app.swapaxes(x, 0, -1), lambda x: np.swapaxes(x, 0, -1), [DEEP]),
    "swapdims": (lambda x: app.swapdims(x, 0, 1), lambda x: np.swapaxes(x, 0, 1), [DEEP]),
    "moveaxis": (lambda x: app.moveaxis(x, [0, 1], [-1, 0]), lambda x: np.moveaxis(x, [0, 1], [-1, 0]), [DEEP]),
    "moveaxis of one": (lambda x: app.moveaxis(x, 0, 2), lambda x: np.moveaxis(x, 0, 2), [DEEP]),
    "roll": (lambda x: app.roll(x, 2), lambda x: np.roll(x, 2), [X]),
    "roll along axes": (lambda x: app.roll(x, [1, -5], [0, -1]), lambda x: np.roll(x, [1, -5], [0, -1]), [DEEP]),
    "repeat_interleave": (lambda x: app.repeat_interleave(x, 2, 1), lambda x: np.repeat(x, 2, 1), [DEEP]),
    "repeat_interleave all": (lambda x: app.repeat_interleave(x, 3), lambda x: np.repeat(x, 3), [X]),
    "unflatten": (lambda x: app.unflatten(x, -1, [2, -1]), lambda x: x.reshape(2, 3, 2, 2), [DEEP]),
    "view_as": (app.view_as, lambda x, y: x.reshape(y.shape), [X, Y.reshape(3, 2)]),
    "flip": (lambda x: app.flip(x, 1), lambda x: np.flip(x, 1), [X]),
    "flip of two axes": (lambda x: app.flip(x, [0, -1]), lambda x: np.flip(x, (0, -1)), [DEEP]),
    "stack": (lambda *v: app.stack([*v], 1), lambda *v: np.stack(v, 1), [X, Y]),
    "stack at the end": (lambda *v: app.stack([*v], -1), lambda *v: np.stack(v, -1), [X, Y]),
    "hstack": (lambda *v: app.hstack([*v]), lambda *v: np.hstack(v), [X, Y]),
    "hstack of rows": (lambda *v: app.hstack([*v]), lambda *v: np.hstack(v), [X[0], Y[1]]),
    "hstack of numbers": (lambda *v: app.hstack([*v]), lambda *v: np.hstack(v), [X[0, 0], Y[1, 1]]),
    "vstack": (lambda *v: app.vstack([*v]), lambda *v: np.vstack(v), [X[0], Y[1]]),
    "row_stack": (lambda *v: app.row_stack([*v]), lambda *v: np.vstack(v), [X, Y]),
    "chunk": (lambda x: app.chunk(x, 2, 1)[1], lambda x: np.array_split(x, 2, 1)[1], [X]),
    "unstack": (lambda x: app.unstack(x, 1)[1], lambda x: x[:, 1], [DEEP]),
    "unbind": (lambda x: app.unbind(x)[1], lambda x: x[1], [DEEP]),
    "slice": (lambda x: app.slice(x, [1, 2], [0, -3], [2, 9]), lambda x: x[:, 0:2, -3:9], [DEEP]),
    "scatter": (lambda x, y: app.scatter(x, PLACES[:2], y), lambda x, y: y[::-1].copy(), [X, Y]),
    "scatter adding": (
        lambda x, y: app.scatter(x, PLACES, y, overwrite=False), lambda x, y: np.stack([y[1], y[0] + y[2]]),
        [X, DEEP[0, :, :3]],
    ),
    **{
        f"take_along_axis {place}": (
            lambda x, i=index: app.take_along_axis(x, i, 1), lambda x, i=index: np.take_along_axis(x, i, 1), [x]
        )
        for place, (x, index) in {"": (X, ALONG), "of one line": (X, ALONG[:1]), "by many": (X[:1], ALONG)}.items()
    },
    "take_along_axis of some lines": (
        lambda x: app.take_along_axis(x, ALONG[:1], 1, broadcast=False), lambda x: x[:1, [2, 0]], [X]
    ),
    **{
        f"put_along_axis {place}": (
            lambda x, y: app.put_along_axis(x, ALONG[:1], y, 1), lambda x, y: put(x, ALONG[:1], y, 1), arrays
        )
        for place, arrays in {"": [X[:1], Y[:1, :2]], "in every line": [X, Y[:, :2]]}.items()
    },
    "put_along_axis adding": (
        lambda x, y: app.put_along_axis(x, ALONG, y, 1, "add"),
        lambda x, y: added(x, (np.array([[0], [1]]), ALONG), y),
        [X, Y[:, :2]],
    ),
    "take": (lambda x: app.take(x, POINTS), lambda x: np.take(x, POINTS), [X]),
    "index_sample": (lambda x: app.index_sample(x, ALONG), lambda x: np.take_along_axis(x, ALONG, 1), [X]),
    "gather_nd": (lambda x: app.gather_nd(x, POINTS), lambda x: x[[1, 0], [2, 0]], [DEEP]),
    "gather_nd of rows": (lambda x: app.gather_nd(x, POINTS[:, :1]), lambda x: x[[1, 0]], [DEEP]),
    "gather": (lambda x: app.gather(x, PLACES, 1), lambda x: x[:, PLACES], [X]),
    "gather by a column": (lambda x: app.gather(x, PLACES[:, None]), lambda x: x[PLACES], [X]),
    "index_select": (lambda x: app.index_select(x, PLACES, 1), lambda x: x[:, PLACES], [X]),
    "index_add": (lambda x, y: app.index_add(x, PLACES, 1, y), lambda x, y: added(x, (slice(None), PLACES), y), [X, Y]),
    "masked_select": (lambda x: app.masked_select(x, x > 0.5), lambda x: x[x > 0.5], [X]),
    "masked_select by a row": (
        lambda x: app.masked_select(x, np.array([True, False, True])), lambda x: x[:, [0, 2]].ravel(), [X]
    ),
    "masked_fill": (lambda x: app.masked_fill(x, x > 0.5, 9), lambda x: np.where(x > 0.5, 9, x), [X]),
    "where": (lambda x, y: app.where(x > 0.5, x, y), lambda x, y: np.where(x > 0.5, x, y), [X, Y]),
    "sort": (lambda x: app.sort(x, 0, True), lambda x: -np.sort(-x, 0), [X]),
    "topk": (lambda x: app.topk(x, 2, 1).values, lambda x: -np.sort(-x, 1)[:, :2], [X]),
    "var": (app.var, lambda x: np.var(x, ddof=1), [X]),
    "var of rows": (lambda x: x.var(0, False, True), lambda x: np.var(x, 0, keepdims=True), [X]),
    "std": (lambda x: x.std([0, 2]), lambda x: np.std(x, (0, 2), ddof=1), [DEEP]),
    "tril below": (lambda x: app.tril(x, -1), lambda x: np.tril(x, -1), [X]),
    "triu above": (lambda x: app.triu(x, 1), lambda x: np.triu(x, 1), [X]),
    "diagonal": (lambda x: app.diagonal(x, 1, -1, 0), lambda x: np.diagonal(x, 1, -1, 0), [DEEP]),
    "diagonal below": (lambda x: app.diagonal(x, -1), lambda x: np.diagonal(x, -1), [X]),
    "diagonal outside": (lambda x: app.diagonal(x, 7), lambda x: np.diagonal(x, 7), [X]),
    "diag": (lambda x: app.diag(x, 1), lambda x: np.diag(x, 1), [X]),
    "diag of a row": (app.diag, np.diag, [X[0]]),
    **{
        f"diag of a row {offset}": (
            lambda x, k=offset: app.diag(x, k, 2.0),
            lambda x, k=offset: np.where(np.eye(3 + abs(k), k=k), np.diag(x, k), 2.0),
            [X[0]],
        )
        for offset in (-1, 2)
    },
    "trace": (lambda x: app.trace(x, 0, 1, 2), lambda x: np.trace(x, 0, 1, 2), [DEEP]),
    "mv": (app.mv, np.matmul, [X, Y[0]]),
    "inner of numbers": (app.inner, np.inner, [X[0, 0], Y[0, 0]]),
    "addmm": (lambda c, x, y: app.addmm(c, x, y, 0.5, 2.0), lambda c, x, y: 0.5 * c + 2 * x @ y, [X[:, :2], X, Y.T]),
    "mm": (app.mm, np.matmul, [X, Y.T]),
    "bmm": (app.bmm, np.matmul, [DEEP, DEEP.transpose(0, 2, 1)]),
    "dot": (app.dot, lambda x, y: (x * y).sum(-1), [X, Y]),
    **einsum("ij,kj->ik", X, Y), **einsum("ij->ji", X), **einsum("ij->", X), **einsum("ij,ij->i", X, Y),
    **einsum("ij,j->j", X, Y[0]), **einsum("bij,bjk->bik", DEEP, DEEP.transpose(0, 2, 1)),
    **einsum("bij,kj->bki", DEEP, DEEP[0]), **einsum("i,j", X[0], Y[1]), **einsum("ij,jk,kl->il", X, Y.T, X),
    **einsum("ii->i", X[:, :2]), **einsum("ii", X[:, :2]), **einsum("iii->i", DEEP[:, :2, :2]),
    **einsum("jij->i", DEEP.transpose(1, 0, 2)[:, :, :3]), **einsum("ij,jk->ki", X[:, :1], Y.T),
    **einsum("bij,bi->j", DEEP[:1], X),
    "neg": (app.neg, np.negative, [X]),
    "mod": (app.mod, np.mod, [X, Y]),
    "floor_mod": (app.floor_mod, np.mod, [X, Y]),
    "amax": (lambda x: app.amax(x, 1), lambda x: x.max(1), [X]),
    "amin": (lambda x: app.amin(x, 1), lambda x: x.min(1), [X]),
}  # fmt: skip
WITHOUT_GRADIENT: dict[str, Case] = {
    **alike([X], "ones_like"),
    "zeros_like": (lambda x: app.zeros_like(x, "int64"), lambda x: np.zeros_like(x, "int64"), [X]),
    "empty_like": (app.empty_like, np.zeros_like, [X]),
    "shape": (app.shape, np.shape, [DEEP]),
    "numel": (app.numel, np.size, [DEEP]),
    "rank": (app.rank, np.ndim, [DEEP]),
    "argsort": (lambda x: app.argsort(x, 1, True), lambda x: np.argsort(-x, 1), [X]),
    "unique": (lambda x: app.unique(x.astype("int64")), lambda x: np.unique(x.astype("int64")), [X]),
    "count_nonzero": (lambda x: app.count_nonzero(x > 0, 1), lambda x: np.count_nonzero(x > 0, 1), [X]),
    **{f"equal_all {len(x)} {x is X}": (app.equal_all, np.array_equal, [X, x]) for x in (X, Y, X[:1])},
    **{f"allclose {by}": (app.allclose, np.allclose, [X, X + by]) for by in (1e-9, 1e-3)},
    "tril of truth values": (lambda x: app.tril(x > 0), lambda x: np.tril(x > 0), [X]),
    "nan_to_num of whole numbers": (lambda x: app.nan_to_num(x.astype("int64")), lambda x: x.astype("int64"), [X]),
    "nonzero": (lambda x: app.nonzero(x > 0.5), lambda x: np.argwhere(x > 0.5), [X]),
}  # fmt: skip
EVERY = {**CASES, **WITHOUT_GRADIENT}


def test_every_composed_function_is_in_the_table():
    held = {name.split()[0] for name in EVERY}
    own = {name for name, entry in PUBLIC.items() if entry.function is not REGISTRY.get(name)}
    assert held == own - {"assign"}


@pytest.mark.parametrize("name", EVERY)
def test_numbers_agree_with_numpy_in_both_modes_and_gradients_with_finite_differences(name: str):
    function, expected, arrays = EVERY[name]
    wanted = np.asarray(expected(*arrays))
    found = function(*map(to_tensor, arrays)).numpy()
    program = static.Program()
    with static.program_guard(program, static.Program()):
        result = function(*(static.data(f"x{i}", a.shape, a.dtype.name) for i, a in enumerate(arrays)))
    (run,) = static.Executor().run(program, {f"x{i}": a for i, a in enumerate(arrays)}, [result])
    for numbers in (found, run):
        assert numbers.shape == wanted.shape
        np.testing.assert_allclose(numbers, wanted, rtol=1e-12, atol=1e-12)
    if name in CASES and np.all(np.abs(arrays[0]) < 1e100):
        assert gradcheck(function, [to_tensor(a, stop_gradient=False) for a in arrays])


# What numbers alone do not say


@pytest.mark.parametrize("axis", [[], ()])
@pytest.mark.parametrize("name", OVER_ALL)
def test_a_reduction_over_an_empty_list_of_axes_is_one_over_all(name: str, axis: Any):
    reduce = getattr(app, name)
    x = app.to_tensor(X, stop_gradient=False)
    kept = reduce(x, axis=axis, keepdim=True)
    assert (reduce(x, axis=axis).shape, kept.shape) == ([], [1, 1])
    np.testing.assert_array_equal(kept.numpy(), [[reduce(x).numpy()]])
    np.testing.assert_array_equal(app.jit.to_static(lambda x: reduce(x, axis=axis))(x).numpy(), reduce(x).numpy())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_variance_of_no_numbers_is_not_a_number():
    nothing = app.zeros([0, 2])
    for unbiased in (True, False):
        assert np.isnan(app.var(nothing, unbiased=unbiased).numpy())
        assert np.isnan(app.std(nothing, axis=0, unbiased=unbiased).numpy()).all()


def test_the_derivatives_of_a_standard_deviation_are_zero_where_values_are_equal():
    x = app.to_tensor([[2.0, 2.0, 2.0], [1.0, 2.0, 3.0]], stop_gradient=False)
    (slope,) = app.grad(app.std(x, axis=1).sum(), [x], create_graph=True)
    np.testing.assert_allclose(slope.numpy(), [[0, 0, 0], [-0.5, 0, 0.5]])
    (second,) = app.grad(slope[:, 0].sum(), [x])
    np.testing.assert_allclose(second.numpy(), [[0, 0, 0], [1 / 12, -1 / 6, 1 / 12]], rtol=1e-5)


def test_a_column_of_indices_gathers_as_a_list_of_them():
    x = app.to_tensor(X, stop_gradient=False)
    for index in (to_tensor([[1], [0], [1]]), app.nonzero(to_tensor([1, 1])), to_tensor(np.zeros([0, 1], np.int64))):
        for gather in (app.gather, app.Tensor.gather, app.jit.to_static(app.gather)):
            np.testing.assert_array_equal(gather(x, index).numpy(), X[index.numpy()[:, 0]])
    assert app.gather(x, to_tensor([[1, 0]]), axis=1).shape == [2, 1, 2]


def test_bounds_of_whole_numbers_are_whole():
    x = to_tensor([0, 1, 3])
    assert app.clip(x, 1.0, 2.0).tolist() == [1, 1, 2]
    told = r"bounds of int64 are whole numbers, found 0\.5; write x\.astype\('float32'\) first"
    for clip in (lambda: app.clip(x, 0.5, 2.5), lambda: app.jit.to_static(lambda x: x.clip(max=0.5))(x)):
        with pytest.raises(DtypeError, match=told):
            clip()
    assert app.clip(x.astype("float32"), 0.5, 2.5).tolist() == [0.5, 1.0, 2.5]


def test_topk_has_names_and_keeps_the_first_of_equal_values():
    found = app.topk(to_tensor([3, 1, 3, 2]), 2)
    assert (found.values.tolist(), found.indices.tolist()) == ([3, 3], [0, 2])
    values, places = app.topk(to_tensor([3, 1, 3, 2]), 2, largest=False)
    assert (values.tolist(), places.tolist()) == ([1, 2], [1, 3])


def test_unique_and_nonzero_return_more_on_demand():
    found = app.unique(to_tensor([3, 1, 3, 2]), return_index=True, return_inverse=True, return_counts=True)
    assert [v.tolist() for v in found] == [[1, 2, 3], [1, 3, 0], [2, 0, 2, 1], [1, 1, 2]]
    out, counts = app.unique(to_tensor([[1, 1], [1, 1], [0, 2]]), return_counts=True, axis=0)
    assert (out.tolist(), counts.tolist()) == ([[0, 2], [1, 1]], [1, 2])
    x = to_tensor([[0, 5], [7, 0]])
    for found in (app.nonzero(x, as_tuple=True), app.where(x > 0)):
        assert [v.tolist() for v in found] == [[0, 1], [1, 0]]


def test_where_takes_a_python_condition():
    x, y = to_tensor([1.0, 2.0]), to_tensor([3.0, 4.0])
    assert (app.where(True, x, y).tolist(), app.where(0, x, y).tolist()) == ([1, 2], [3, 4])


def test_softmax_of_no_rows_is_empty_and_of_large_numbers_does_not_overflow():
    assert app.softmax(app.ones([0, 3])).shape == [0, 3]
    for low in (0.0, -1000.0):
        x = to_tensor([low + 1000, low])
        assert app.softmax(x).tolist() == pytest.approx([1, 0], abs=1e-20)
        assert app.log_softmax(x).tolist() == [0, -1000]


def test_accuracy_counts_no_label_where_all_scores_are_nan():
    for k in (1, 3):
        assert app.accuracy(to_tensor(np.full((4, 3), np.nan)), to_tensor([0, 1, 2, 0]), k=k).item() == 0


def test_bits_of_whole_numbers_and_truth_values():
    n, b = to_tensor([6, 3]), to_tensor([True, False])
    assert [v.tolist() for v in (n & 3, n | 1, n ^ 2, ~n, 1 & n)] == [[2, 3], [7, 3], [4, 1], [-7, -4], [0, 1]]
    assert [v.tolist() for v in (b & True, b | b, b ^ True, ~b)] == [[True, False]] * 2 + [[False, True]] * 2
    assert [v.dtype for v in (b & b, ~b, n & 1)] == ["bool", "bool", "int64"]


def test_functions_are_methods_of_values():
    x = to_tensor(X)
    assert (x.std().item(), x.topk(1).values.shape, x.unbind()[0].shape) == (app.std(x).item(), [2, 1], [3])
    assert not hasattr(x, "einsum")
    program = static.Program()
    with static.program_guard(program, static.Program()):
        variable = static.data("x", [-1, 3], "float64")
        assert variable.std(axis=1).shape == (-1,)
        (value,) = static.Executor().run(program, {"x": X}, [variable.std(axis=0)])
    np.testing.assert_allclose(value, X.std(0, ddof=1))


@pytest.mark.parametrize(("chunks", "sizes"), [(2, [3, 3]), (4, [2, 2, 2]), (5, [2, 2, 2])])
def test_chunks_are_equal_but_for_the_last(chunks: int, sizes: list[int]):
    assert [part.shape[0] for part in app.chunk(app.arange(6), chunks)] == sizes
