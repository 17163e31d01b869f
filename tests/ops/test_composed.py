"""Functions made of operators: NumPy's numbers, the same in a Program, and gradients that agree with differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import app
from app import static, to_tensor
from app.autograd import gradcheck
from app.errors import DtypeError
from app.ops import REGISTRY
from app.ops.public import PUBLIC

X = np.array([[-1.3, 0.4, 2.1], [0.7, -0.6, 1.9]])
Y = np.array([[0.3, -1.7, 0.8], [1.2, 2.5, -0.9]])
DEEP = np.linspace(-2.0, 2.3, 24).reshape(2, 3, 4)
PLACES = np.array([1, 0, 1])
ALONG = np.array([[2, 0], [1, 1]])
OVER_ALL = ["sum", "mean", "max", "min", "prod", "any", "all", "amax", "amin"]
OVER_ALL += ["logsumexp", "norm", "std", "var"]

Case = tuple[Callable[..., Any], Callable[..., Any], Sequence[np.ndarray]]


def alike(arrays: Sequence[np.ndarray], *names: str) -> dict[str, Case]:
    """Functions that have one name and one meaning in NumPy and here."""
    return {name: (getattr(app, name), getattr(np, name), arrays) for name in names}


CASES: dict[str, Case] = {
    "norm": (app.norm, np.linalg.norm, [DEEP]),
    "norm of rows": (lambda x: x.norm("fro", 1), lambda x: np.linalg.norm(x, axis=1), [X]),
    **{
        f"norm {p}": (lambda x, p=p: app.norm(x, p, 1, True), lambda x, p=p: np.linalg.norm(x, p, 1, True), [X])
        for p in (1, 2.0, np.inf)
    },
    "scale": (lambda x: app.scale(x, 2.0, 1.0), lambda x: 2 * x + 1, [X]),
    "scale first the bias": (lambda x: app.scale(x, 2.0, 1.0, False, "tanh"), lambda x: np.tanh(2 * (x + 1)), [X]),
    "add_n": (lambda x, y: app.add_n([x, y, x]), lambda x, y: 2 * x + y, [X, Y]),
    "broadcast_tensors": (lambda *v: app.add_n(app.broadcast_tensors([*v])), lambda x, y: x + y, [X, Y[:, :1]]),
    "broadcast_to": (lambda x: app.broadcast_to(x, [2, 2, 3]), lambda x: np.broadcast_to(x, (2, 2, 3)), [X]),
    "t": (lambda x: x.t(), np.transpose, [X]),
    "t of a row": (app.t, np.transpose, [X[0]]),
    "swapaxes": (lambda x: app.swapaxes(x, 0, -1), lambda x: np.swapaxes(x, 0, -1), [DEEP]),
    "moveaxis": (lambda x: app.moveaxis(x, [0, 1], [-1, 0]), lambda x: np.moveaxis(x, [0, 1], [-1, 0]), [DEEP]),
    "moveaxis of one": (lambda x: app.moveaxis(x, 0, 2), lambda x: np.moveaxis(x, 0, 2), [DEEP]),
    "stack": (lambda *v: app.stack([*v], 1), lambda *v: np.stack(v, 1), [X, Y]),
    "stack at the end": (lambda *v: app.stack([*v], -1), lambda *v: np.stack(v, -1), [X, Y]),
    **{
        f"take_along_axis {place}": (
            lambda x, i=index: app.take_along_axis(x, i, 1), lambda x, i=index: np.take_along_axis(x, i, 1), [x]
        )
        for place, (x, index) in {"": (X, ALONG), "of one line": (X, ALONG[:1]), "by many": (X[:1], ALONG)}.items()
    },
    "take_along_axis of some lines": (
        lambda x: app.take_along_axis(x, ALONG[:1], 1, broadcast=False), lambda x: x[:1, [2, 0]], [X]
    ),
    "gather": (lambda x: app.gather(x, PLACES, 1), lambda x: x[:, PLACES], [X]),
    "gather by a column": (lambda x: app.gather(x, PLACES[:, None]), lambda x: x[PLACES], [X]),
    "masked_fill": (lambda x: app.masked_fill(x, x > 0.5, 9), lambda x: np.where(x > 0.5, 9, x), [X]),
    "var": (app.var, lambda x: np.var(x, ddof=1), [X]),
    "var of rows": (lambda x: x.var(0, False, True), lambda x: np.var(x, 0, keepdims=True), [X]),
    "std": (lambda x: x.std([0, 2]), lambda x: np.std(x, (0, 2), ddof=1), [DEEP]),
    "mm": (app.mm, np.matmul, [X, Y.T]),
    "dot": (app.dot, lambda x, y: (x * y).sum(-1), [X, Y]),
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
    "rank": (app.rank, np.ndim, [DEEP]),
    **{f"allclose {by}": (app.allclose, np.allclose, [X, X + by]) for by in (1e-9, 1e-3)},
}  # fmt: skip
EVERY = {**CASES, **WITHOUT_GRADIENT}


def test_every_composed_function_is_in_the_table():
    held = {name.split()[0] for name in EVERY}
    own = {name for name, entry in PUBLIC.items() if entry.function is not REGISTRY.get(name)}
    assert held == own - {"assign"}


@pytest.mark.parametrize("name", EVERY)
def test_numbers_agree_with_numpy_in_both_modes_and_gradients_with_finite_differences(name: str):
    function, expected, arrays = EVERY[name]
    right = np.asarray(expected(*arrays))
    eager = function(*map(to_tensor, arrays)).numpy()
    program = static.Program()
    with static.program_guard(program, static.Program()):
        result = function(*(static.data(f"x{i}", a.shape, a.dtype.name) for i, a in enumerate(arrays)))
    (run,) = static.Executor().run(program, {f"x{i}": a for i, a in enumerate(arrays)}, [result])
    for numbers in (eager, run):
        assert numbers.shape == right.shape
        np.testing.assert_allclose(numbers, right, rtol=1e-12, atol=1e-12)
    if name in CASES and np.all(np.abs(arrays[0]) < 1e100):
        assert gradcheck(function, [to_tensor(a, stop_gradient=False) for a in arrays])


# What numbers alone do not say


@pytest.mark.parametrize("axis", [[], ()])
@pytest.mark.parametrize("name", OVER_ALL)
def test_a_reduction_over_an_empty_list_of_axes_is_one_over_all(name: str, axis: Any):
    reduce = getattr(app, name)
    x = app.to_tensor(X, stop_gradient=False)
    reduced = reduce(x, axis=axis, keepdim=True)
    assert (reduce(x, axis=axis).shape, reduced.shape) == ([], [1, 1])
    np.testing.assert_array_equal(reduced.numpy(), [[reduce(x).numpy()]])
    assert reduce(static.data("x", X.shape, "float64"), axis=axis).shape == ()


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
    for index in (to_tensor([[1], [0], [1]]), to_tensor(np.zeros([0, 1], np.int64))):
        for gather in (app.gather, app.Tensor.gather, app.jit.to_static(app.gather, backend="reference")):
            np.testing.assert_array_equal(gather(x, index).numpy(), X[index.numpy()[:, 0]])
    assert app.gather(x, to_tensor([[1, 0]]), axis=1).shape == [2, 1, 2]


def test_bounds_of_whole_numbers_are_whole():
    x = to_tensor([0, 1, 3])
    assert app.clip(x, 1.0, 2.0).tolist() == [1, 1, 2]
    message = r"bounds of int64 are whole numbers, found 0\.5; write x\.astype\('float32'\) first"
    for clip in (lambda: app.clip(x, 0.5, 2.5), lambda: app.jit.to_static(lambda x: x.clip(max=0.5))(x)):
        with pytest.raises(DtypeError, match=message):
            clip()
    assert app.clip(x.astype("float32"), 0.5, 2.5).tolist() == [0.5, 1.0, 2.5]


def test_a_clipped_value_between_bounds_that_leave_no_range_has_no_gradient():
    for clip in (lambda x: app.clip(x, 2.0, 1.0), app.jit.to_static(lambda x: x.clip(2.0, 1.0))):
        x = to_tensor([0.0, 1.0, 2.0], stop_gradient=False)
        y = clip(x)
        y.sum().backward()
        assert (y.tolist(), x.grad.tolist()) == ([1, 1, 1], [0, 0, 0])


def test_the_norm_of_zeros_has_the_gradient_zero_and_that_of_half_precision_does_not_overflow():
    x = app.to_tensor([[0.0, 0.0], [3.0, 4.0]], stop_gradient=False)
    app.norm(x, axis=1).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[0, 0], [0.6, 0.8]], rtol=1e-6)
    half = app.norm(to_tensor(np.float16([300, 400])))
    assert (half.dtype, half.item(), app.norm(to_tensor([3, 4])).item()) == ("float16", 500.0, 5.0)


def test_where_takes_a_python_condition():
    x, y = to_tensor([1.0, 2.0]), to_tensor([3.0, 4.0])
    assert (app.where(True, x, y).tolist(), app.where(0, x, y).tolist()) == ([1, 2], [3, 4])


@pytest.mark.parametrize("shape", [[0, 3], [3, 0], [0, 0]])
@pytest.mark.parametrize("function", [app.softmax, app.log_softmax])
def test_softmax_of_no_elements_is_empty(function: Callable[..., Any], shape: list[int]):
    assert function(app.ones(shape)).shape == shape
    x = static.data("x", [None, shape[1]])
    x.stop_gradient = False
    y = function(x)
    fetch = [y, *static.gradients([y], [x])]
    for engine in ("reference", "compiled"):
        results = static.Executor(engine=engine).run(feed={"x": np.ones(shape, "float32")}, fetch_list=fetch)
        assert [list(array.shape) for array in results] == [shape, shape]


def test_the_logarithm_of_the_sum_of_no_exponentials_is_minus_infinity():
    with np.errstate(divide="ignore"):
        assert app.logsumexp(app.ones([2, 0]), axis=1).tolist() == [-np.inf, -np.inf]


def test_the_gradient_of_atan2_is_zero_at_the_origin_as_that_which_is_derived():
    derived = app.custom_op(elementwise=True)(lambda y, x: np.arctan2(y, x))
    for function in (app.atan2, derived):
        y, x = (to_tensor([0.0, 2.0, 0.0], stop_gradient=False) for _ in range(2))
        function(y, x).sum().backward()
        assert (y.grad.tolist(), x.grad.tolist()) == ([0, 0.25, 0], [0, -0.25, 0])


def test_softmax_of_large_numbers_does_not_overflow():
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
    assert (x.std().item(), x.argsort(1).shape) == (app.std(x).item(), [2, 3])
    assert not hasattr(x, "stack")
    program = static.Program()
    with static.program_guard(program, static.Program()):
        variable = static.data("x", [-1, 3], "float64")
        assert variable.std(axis=1).shape == (-1,)
        (value,) = static.Executor().run(program, {"x": X}, [variable.std(axis=0)])
    np.testing.assert_allclose(value, X.std(0, ddof=1))
