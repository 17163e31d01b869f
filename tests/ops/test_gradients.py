"""Every differentiable operator's gradient, and that gradient's own, held against finite differences."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from op_calls import OF_VALUES, Call, applied

import app
from app import Tensor, grad, static, to_tensor
from app.ops import REGISTRY, OpDef

Function = Callable[..., list[Tensor]]

X = np.array([[-1.3, 0.4, 2.1], [0.7, -0.6, 1.9]])
Y = np.array([[0.3, -1.7, 0.8], [1.2, 2.5, -0.9]])
POSITIVE = np.abs(X) + 0.2
ROW, COLUMN, NUMBER = Y[0], Y[:, :1], np.asarray(0.7)
DEEP = np.linspace(-2.0, 2.3, 24).reshape(2, 3, 4)
CUBE = np.array(3, "float32")  # without a gradient, as x ** y is no number beside 3 where x is below zero
EMPTY = np.zeros((0, 3))
LABELS = np.array([2, 0])
IMAGES = np.random.default_rng(0).uniform(-2, 2, (2, 2, 4, 3))
FILTERS = np.random.default_rng(1).uniform(-2, 2, (2, 2, 3, 2))
SPARSE = {"stride": (2, 3), "padding": ((1, 2), (0, 1)), "dilation": (1, 2)}
ROUND = {"padding": "same", "stride": (2, 2)}
IN_GROUPS = {"groups": 2, "padding": ((1, 1), (0, 0))}
PAIRS = {"kernel": (2, 2), "stride": (2, 2)}
LAPPING = {"kernel": (3, 2), "stride": (2, 1), "padding": ((1, 0), (1, 1)), "ceil_mode": True}


def of_one(x: np.ndarray = X, **attributes: Any) -> list[Call]:
    return [Call([v], attributes) for v in (x, np.array(x[0, 0]), EMPTY)]


def of_images(name: str, *settings: dict[str, Any], filters: Any = FILTERS, places: str = "xw") -> list[Call]:
    """Calls of an operator on images, on the weight, and on what another one gives of them."""
    calls = []
    for setting in settings:
        weight = filters[:, :1] if setting.get("groups") else filters
        inputs = {"x": IMAGES, "w": weight}
        y = REGISTRY[name](*([IMAGES, weight] if name == "conv2d" else [IMAGES]), **setting)
        calls.append(Call([{**inputs, "y": np.cos(np.asarray(y) * 9)}[place] for place in places], setting))
    return calls


def of_two(x: np.ndarray = X, y: np.ndarray = Y) -> list[Call]:
    stretched = [(x, y[0]), (y[:, :1] * 0 + x[:, :1], y[:1]), (x, np.array(y[0, 0])), (x[0], y)]
    return [Call(list(pair)) for pair in [(x, y), *stretched, (EMPTY, y[0])]]


def reduced(x: np.ndarray = DEEP, **attributes: Any) -> list[Call]:
    axes = [{}, {"axis": 1}, {"axis": (0, -1), "keepdim": True}, {"axis": -1, "keepdim": True}]
    return [*(Call([x], {**a, **attributes}) for a in axes), Call([np.asarray(1.5)])]


CASES: dict[str, list[Call]] = {
    **{name: of_one() for name in ("negative", "exp", "sin", "cos", "tanh", "square", "abs", "assign")},
    **{name: of_one() for name in ("sign", "floor", "ceil", "round", "relu", "leaky_relu", "sigmoid", "softplus")},
    **{
        name: of_one()
        for name in ("silu", "elu", "softsign", "tan", "sinh", "cosh", "asinh", "atan", "erf", "expm1", "trunc")
    },
    **{name: of_one(X * 0.4) for name in ("asin", "acos", "atanh")},
    "acosh": of_one(POSITIVE + 1),
    "round ": of_one(decimals=1),
    **{name: of_one(POSITIVE) for name in ("log", "log1p", "log2", "log10", "sqrt", "rsqrt")},
    "reciprocal": of_one(POSITIVE),
    "clip": [*of_one(min=-0.5, max=1.95), *of_one(max=0.5), *of_one()],
    "elu ": of_one(alpha=0.3),
    "leaky_relu ": of_one(negative_slope=0.3),
    **{name: of_two() for name in ("add", "subtract", "multiply", "maximum", "minimum")},
    "divide": of_two(),
    "atan2": of_two(),
    "remainder": of_two(X * 2.9, Y),
    "floor_divide": of_two(X * 2.9, Y),
    "pow": [*of_two(POSITIVE, Y), Call([X, CUBE]), Call([np.zeros(2), np.float32([2, 3])])],
    "where": [
        Call([X > 0, X, Y]),
        Call([ROW > 0, COLUMN, X]),
        Call([X > 0, NUMBER, NUMBER]),
        Call([np.asarray(True), X, ROW]),
    ],
    **{name: reduced() for name in ("sum", "mean", "max", "min")},
    "prod": reduced(DEEP + 3),
    "logsumexp": reduced(),
    "expand_reduced": [
        Call([DEEP.sum(1), DEEP], {"axis": 1}),
        Call([DEEP.sum((0, 2), keepdims=True), DEEP], {"axis": (0, 2), "keepdim": True, "share": True}),
        Call([NUMBER, DEEP], {"share": True}),
    ],
    "sum_to": [Call([DEEP], {"shape": s}) for s in ([3, 4], [3, 1], [1, 1, 4], [], [2, 3, 4])],
    "sum_like": [Call([DEEP, DEEP[0]]), Call([DEEP, DEEP[:, :1]]), Call([DEEP, NUMBER])],
    "expand": [Call([ROW], {"shape": [2, 3]}), Call([COLUMN], {"shape": [-1, 4]}), Call([NUMBER], {"shape": [2, 2]})],
    "expand_as": [Call([ROW, X]), Call([COLUMN, X]), Call([NUMBER, DEEP])],
    **{name: [Call([X]), Call([DEEP], {"axis": 1})] for name in ("softmax", "log_softmax")},
    "cast": [Call([X], {"dtype": "float64"})],
    "reshape": [Call([DEEP], {"shape": s}) for s in ([24], [0, -1], [4, 3, 2])],
    "reshape_to": [Call([X, np.array([3, 2])], {"known": (3, 2)})],
    "reshape_like": [Call([X, Y.T]), Call([NUMBER, Y[:1, :1]])],
    "flatten": [Call([DEEP], {"start_axis": 1}), Call([NUMBER])],
    "squeeze": [Call([DEEP[:, :1]], {"axis": 1}), Call([X[:, None]], {"axis": [1]})],
    "unsqueeze": [Call([X], {"axis": 1}), Call([X], {"axis": [0, -1]})],
    "transpose": [Call([DEEP]), Call([DEEP], {"perm": [2, 0, 1]}), Call([DEEP], {"perm": [0, -1, 1]})],
    "concat": [Call([X, Y, X[:, :1]], {"axis": 1}), Call([X, Y[:1]]), Call([X, X], {"axis": -1})],
    "split": [Call([X], {"num_or_sections": 3, "axis": 1}), Call([DEEP], {"num_or_sections": [1, -1], "axis": 2})],
    "gather": [Call([X, np.array([1, 0, 1])]), Call([X, np.array([[2], [-1]])], {"axis": 1}), Call([X, np.array(1)])],
    "take_items": [
        *(
            Call([DEEP], {"items": items})
            for items in [(0,), (("slice", None, None, -2),), ("...", 1), (None, 1, ("slice", 0, 2, None)), (1, 2, 3)]
        ),
        Call([DEEP, np.array([2, 0]), np.array([1, 1])], {"items": (0, ("array", 0), ("array", 1))}),
        Call([DEEP, np.array([1, 0, 1])], {"items": (("slice", None, None, -1), ("array", 0))}),
        Call([X, X > 0], {"items": (("array", 0),)}),
        Call([X, np.array([[2, 0], [1, 1]])], {"items": (("along", 1),)}),
        Call([X, np.array([[1, 0, 1]])], {"items": (("along", 0),)}),
    ],
    "put_items": [
        Call([X, Y[0], *arrays], {"items": items, **ways})
        for ways in ({}, {"accumulate": True}, {"onto_zeros": True}, {"accumulate": True, "onto_zeros": True})
        for arrays, items in [
            ([], (1,)),
            ([np.array([1, 0, 1]), np.array([0, 2, 1])], (("array", 0), ("array", 1))),
            ([np.array([0, 1])], (("array", 0),)),
            ([np.array([0, 0, 1])], (("array", 0),)),
            ([np.array([1, 1, 0]), np.array([2, 2, 2])], (("array", 0), ("array", 1))),
            ([np.array([[1, 1, 0]])], (("along", 1),)),
            ([np.array([[2, 0, 1]])], (("along", 1),)),
        ]
    ]
    + [
        Call([X, NUMBER, X > 0], {"items": (("array", 0),)}),
        Call([X, Y[:, :2], np.array([2, 2])], {"items": ("...", ("array", 0)), "accumulate": True}),
    ],
    "split_like": [Call([X, Y[:, :1], Y[:, 1:]], {"axis": 1}), Call([X, Y[:1], Y[1:]])],
    "in_training": [Call([X, Y]), Call([X, Y], {"training": False})],
    "matmul": [
        Call([X, Y.T]),
        Call([X, Y], {"transpose_y": True}),
        Call([X, Y], {"transpose_x": True}),
        Call([X, Y.T], {"transpose_x": True, "transpose_y": True}),
        Call([DEEP, DEEP[0]], {"transpose_y": True}),
        Call([DEEP[0], DEEP], {"transpose_x": True}),
        Call([DEEP[:1], DEEP], {"transpose_y": True}),
        Call([DEEP[:, None], DEEP], {"transpose_y": True}),
        *(Call([x, y]) for x, y in [(ROW, Y[1]), (X, ROW), (ROW, Y.T), (DEEP, DEEP[0, 0]), (DEEP[0, :, 0], DEEP)]),
        Call([DEEP[0, 0], DEEP], {"transpose_x": True, "transpose_y": True}),
        Call([DEEP, DEEP[0, :, 0]], {"transpose_x": True}),
        Call([EMPTY, Y.T]),
    ],
    "conv2d": of_images("conv2d", {}, SPARSE, ROUND, IN_GROUPS),
    "conv2d_input": of_images("conv2d", {}, SPARSE, ROUND, IN_GROUPS, places="ywx"),
    "conv2d_weight": of_images("conv2d", {}, SPARSE, ROUND, IN_GROUPS, places="xyw"),
    "max_pool2d": of_images("max_pool2d", PAIRS, LAPPING, places="x"),
    "max_pool2d_scatter": of_images("max_pool2d", PAIRS, LAPPING, places="yx"),
    "max_pool2d_gather": of_images("max_pool2d", PAIRS, LAPPING, places="xx"),
    "avg_pool2d": of_images("avg_pool2d", PAIRS, LAPPING, LAPPING | {"exclusive": False}, places="x"),
    "avg_pool2d_expand": of_images("avg_pool2d", PAIRS, LAPPING | {"exclusive": False}, places="yx"),
    "softmax_with_cross_entropy": [Call([X, LABELS]), Call([X, LABELS[:, None]]), Call([EMPTY, LABELS[:0]])],
    "index_sample": [Call([X, LABELS]), Call([X, LABELS[:, None]])],
}


def test_every_differentiable_operator_is_checked_and_no_other():
    assert {name.strip() for name in CASES} == {name for name, op in OF_VALUES.items() if op.differentiable}


def function_of(definition: OpDef, call: Call) -> Function:
    """The operator with its settings, as a function from Tensors to a list of the results that have gradients."""

    def function(*tensors: Tensor) -> list[Tensor]:
        return [result for result in applied(definition, tensors, call.attributes) if result.dtype == "float64"]

    return function


def gradient_of(function: Function) -> Function:
    """The function that gives the gradients of a weighted sum of another's results."""

    def gradients(*tensors: Tensor) -> list[Tensor]:
        results = [r for r in function(*tensors) if not r.stop_gradient]
        inputs = [t for t in tensors if not t.stop_gradient]
        if not results:
            return [app.zeros_like(t) for t in inputs]
        slopes = grad(results, inputs, [Tensor(w) for w in weights_of(results)], create_graph=True, allow_unused=True)
        return [app.zeros_like(t) if g is None else g for t, g in zip(inputs, slopes, strict=True)]

    return gradients


def weights_of(results: Sequence[Tensor]) -> list[np.ndarray]:
    return [weights(i, tuple(r.shape)) for i, r in enumerate(results)]


@functools.cache
def weights(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape)


def tensors_of(arrays: Sequence[np.ndarray]) -> list[Tensor]:
    return [to_tensor(x, stop_gradient=x.dtype != "float64") for x in arrays]


def total(function: Function, arrays: Sequence[np.ndarray]) -> float:
    results = function(*tensors_of(arrays))
    return sum(float(np.sum(w * r.numpy())) for w, r in zip(weights_of(results), results, strict=True))


def assert_gradient(function: Function, arrays: Sequence[np.ndarray], step: float = 1e-5) -> None:
    """Along two random directions, central differences of the weighted sum of the results are as the gradients say.

    A single wrong element shows: a direction moves every element of every input, each by another number.
    """
    gradients = [g.numpy() for g in gradient_of(function)(*tensors_of(arrays))]
    inputs = [x for x in arrays if x.dtype == "float64"]
    assert [(g.dtype, g.shape) for g in gradients] == [(x.dtype, x.shape) for x in inputs]
    for seed in range(2):
        random = np.random.default_rng(seed)
        moves = [random.uniform(0.5, 1.5, x.shape) * random.choice([-1, 1], x.shape) for x in inputs]

        def moved(by: float, moves: Sequence[np.ndarray] = moves) -> float:
            remaining = iter(moves)
            return total(function, [x + by * next(remaining) if x.dtype == "float64" else x for x in arrays])

        products = np.concatenate([np.ravel(g * move) for g, move in zip(gradients, moves, strict=True)])
        near = 1e-8 + 1e-6 * np.abs(products).sum()
        slope = (moved(step) - moved(-step)) / (2 * step)
        assert products.sum() == pytest.approx(slope, rel=0, abs=near), (arrays, gradients)


@pytest.mark.parametrize("name", CASES)
def test_gradients_and_their_gradients_agree_with_finite_differences(name: str):
    for call in CASES[name]:
        function = function_of(REGISTRY[name.strip()], call)
        assert_gradient(function, call.inputs)
        assert_gradient(gradient_of(function), call.inputs)


# Where a function has no derivative, or more than one could be given


@pytest.mark.parametrize(
    ("function", "arrays", "expected"),
    [
        (lambda x: x.prod(axis=1), [[[2.0, 0.0, 3.0], [0.0, 4.0, 0.0]]], [[[0, 6, 0], [0, 0, 0]]]),
        (app.maximum, [[1.0, 1.0], [1.0, 5.0]], [[0.5, 0.0], [0.5, 1.0]]),
        (app.minimum, [[1.0, 1.0], [1.0, 5.0]], [[0.5, 1.0], [0.5, 0.0]]),
        *((operator, [[3.0, 3.0, 3.0, 3.0]], [[0.25] * 4]) for operator in (app.max, app.min)),
        *((operator, [[0.0]], [[0.0]]) for operator in (app.abs, app.relu, app.sign)),
        (lambda x: x.clip(-1.0, 1.0), [[-2.0, -1.0, 0.0, 1.0, 2.0]], [[0, 1, 1, 1, 0]]),
        (lambda x: x**2 + x**1 + x**0, [[0.0]], [[1.0]]),
        (lambda x: x.max() * np.inf, [[1.0, 2.0]], [[0.0, np.inf]]),
    ],
)
def test_gradients_where_a_function_has_no_single_one(function: Any, arrays: list[Any], expected: list[Any]):
    tensors = [to_tensor(x, dtype="float64", stop_gradient=False) for x in arrays]
    function(*tensors).sum().backward()
    assert [t.grad.tolist() for t in tensors] == expected


def test_the_second_derivative_of_a_product_is_right_at_zeros():
    rows = to_tensor([[2.0, 0.0, 3.0], [0.0, 4.0, 0.0], [0.0, 0.0, 0.0]], "float64", stop_gradient=False)
    assert app.autograd.gradgradcheck(lambda x: x.prod(axis=1), rows)


EDGES = [
    # x, y, the slope along x and the one along y
    (0.0, -1.0, -np.inf, -np.inf),
    (0.0, -0.5, -np.inf, -np.inf),
    (0.0, 0.0, 0.0, 0.0),
    (0.0, 0.5, np.inf, 0.0),
    (0.0, 1.0, 1.0, 0.0),
    (0.0, 2.0, 0.0, 0.0),
    (2.0, 0.0, 0.0, np.log(2.0)),
    (-2.0, 2.0, -4.0, np.nan),
    (-2.0, 0.0, 0.0, np.nan),
    (np.inf, 2.0, np.inf, np.inf),
    (np.inf, 1.0, 1.0, np.inf),
    (np.inf, 0.0, 0.0, np.inf),
    (1e-310, 0.0, 0.0, np.log(1e-310)),
    (np.nan, 0.0, 0.0, np.nan),
    (np.inf, -1.0, 0.0, 0.0),
]
"""As PyTorch has them, but for the last, where the limit is 0 and PyTorch's product is not a number."""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("engine", ["reference", pytest.param("compiled", marks=pytest.mark.soak)])
def test_powers_at_the_edges(engine: str):
    x, y, along_x, along_y = map(np.array, zip(*EDGES, strict=True))
    tensors = [to_tensor(x, stop_gradient=False), to_tensor(y, stop_gradient=False)]
    gradients = [np.asarray(g) for g in grad((tensors[0] ** tensors[1]).sum(), tensors)]
    program = static.Program()
    with static.program_guard(program, static.Program()):
        variables = [static.data(name, [None], "float64") for name in "xy"]
        for variable in variables:
            variable.stop_gradient = False
        fetch = static.gradients((variables[0] ** variables[1]).sum(), variables)
    gradients += static.Executor(engine=engine).run(program, {"x": x, "y": y}, fetch)
    for number, slopes in enumerate(gradients):
        np.testing.assert_allclose(slopes, (along_x, along_y)[number % 2], rtol=1e-12, err_msg=str(number))


def test_the_second_derivatives_of_a_power_are_right_at_the_exponent_0():
    x, y = (to_tensor(v, "float64", stop_gradient=False) for v in ([2.0, 0.5, 1.0], [0.0, 0.0, 0.0]))
    assert app.autograd.gradgradcheck(app.pow, [x, y])
