"""Custom operators in ONNX: as what they declare equal, as a function made of their body, or as one of our domain."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from as_python import uncompiled
from numba import njit
from onnx.reference import ReferenceEvaluator

import app
from app import static
from app.custom.lookup import find_operator

__all__ = ["uncompiled"]

X = np.linspace(-2.0, 2.0, 12).astype("float32").reshape(3, 4)


def exported(operator: Callable[[Any], Any], folder: Path) -> tuple[onnx.ModelProto, np.ndarray]:
    """A Program with nothing but the operator, and what it gives for X."""
    x = static.data("x", [None, 4])
    program, fetch = static.default_main_program(), [operator(x)]
    model = onnx.load(app.onnx.export(program, folder / "model", feed=[x], fetch=fetch))
    return model, static.Executor().run(program, {"x": X}, fetch)[0]


def by_runtime(model: onnx.ModelProto) -> Any:
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": X})[0]


def by_reference(model: onnx.ModelProto) -> Any:
    """The result of ONNX's reference evaluator with the custom operators of the default Program."""
    program, fetch = static.default_main_program(), model.graph.output[0].name
    operators = app.onnx.reference_operators(program, feed="x", fetch=fetch)
    return ReferenceEvaluator(model, new_ops=operators).run(None, {"x": X})[0]


def kinds(model: onnx.ModelProto) -> list[tuple[str, str]]:
    return [(node.domain, node.op_type) for node in model.graph.node]


# Declared equal


@app.custom_op(onnx="Relu")
def my_relu(x: Any) -> Any:
    return np.where(x > 0, x, np.zeros((), x.dtype))


class Steep(app.autograd.Function):
    @staticmethod
    def onnx(onnx: Any, x: Any) -> Any:
        return onnx.Relu(x) * 2.0

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return app.maximum(x, 0.0) * 2.0

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        return dy


def by_py_func(x: Any) -> Any:
    return static.py_func(lambda a: np.maximum(a, 0), x, static.InputSpec([-1, 4], "float32"), onnx="Relu")


@app.custom_op(elementwise=True, onnx=lambda onnx, x, slope: onnx.LeakyRelu(x, alpha=slope))
def leaky(x: Any, slope: float = 0.5) -> Any:
    return x if x > 0 else x * slope


@pytest.mark.parametrize(
    ("operator", "nodes"),
    [
        (my_relu, ["Relu"]),
        (by_py_func, ["Relu"]),
        (find_operator("custom.relu"), ["Relu"]),
        (lambda x: leaky(x, slope=0.25), ["LeakyRelu"]),
        (Steep.apply, ["Relu", "Constant", "Mul"]),
    ],
)
def test_an_operator_with_an_onnx_equivalent_is_exported_as_its_nodes(operator: Any, nodes: list[str], tmp_path: Path):
    model, expected = exported(operator, tmp_path)
    assert kinds(model) == [("", name) for name in nodes]
    np.testing.assert_allclose(by_runtime(model), expected, rtol=1e-6)


# Written with the framework's operators


class Swish(app.autograd.PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any, beta: float) -> Any:
        s = app.sigmoid(x * beta)
        ctx.save_for_backward(x, s)
        ctx.beta = beta
        return x * s

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        x, s = ctx.saved_tensor()
        return dy * (s + ctx.beta * x * s * (1 - s))


@app.custom_op
def composed(x: Any) -> Any:
    return app.tanh(x) * app.sigmoid(x) + 1.0


@app.custom_op(elementwise=True)
def bump(x: Any, height: float = 2.0) -> Any:
    return height * np.exp(-x * x)


@app.custom_op(outputs=("low", "high"))
def halves(x: Any) -> Any:
    return app.minimum(x, 0.0), app.maximum(x, 0.0)


@pytest.mark.parametrize("operator", [composed, lambda x: bump(x, height=3.0), lambda x: halves(x)[1]])
def test_an_operator_written_with_operators_is_exported_as_a_function(operator: Any, tmp_path: Path):
    model, expected = exported(operator, tmp_path)
    assert [domain for domain, _ in kinds(model)] == ["opsmith"]
    assert [f.name for f in model.functions] == [model.graph.node[0].op_type]
    np.testing.assert_allclose(by_runtime(model), expected, rtol=1e-5, atol=1e-6)


def test_a_pylayer_is_exported_as_the_operators_of_its_forward(tmp_path: Path):
    model, expected = exported(lambda x: Swish.apply(x, 2.0), tmp_path)
    assert kinds(model) == [("", name) for name in ("Constant", "Mul", "Sigmoid", "Mul")]
    np.testing.assert_allclose(by_runtime(model), expected, rtol=1e-5, atol=1e-6)
    x = static.data("again", [None, 4])
    static.save_inference_model(str(tmp_path / "saved"), [x], [Steep.apply(Swish.apply(x, 2.0))])
    model = onnx.load(app.onnx.export(str(tmp_path / "saved"), tmp_path / "again"))
    (result,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"again": X})
    np.testing.assert_allclose(result, 2 * np.maximum(expected, 0), rtol=1e-5, atol=1e-6)


@app.custom_op
def outer(x: Any) -> Any:
    return composed(x) * 2.0


@pytest.mark.parametrize(
    ("operator", "functions", "nodes"),
    [
        (
            lambda x: bump(bump(x)) + bump(x, height=1.5),  # one function for each setting
            ["bump", "bump_2"],
            ["bump", "bump", "bump_2", "Add"],
        ),
        (outer, ["composed", "outer"], ["outer"]),
    ],
    ids=["reused", "nested"],
)
def test_functions_are_made_once_for_each_setting_and_call_each_other(
    operator: Any, functions: list[str], nodes: list[str], tmp_path: Path
):
    model, expected = exported(operator, tmp_path)
    assert sorted(f.name for f in model.functions) == functions
    assert [kind for _, kind in kinds(model)] == nodes
    np.testing.assert_allclose(by_runtime(model), expected, rtol=1e-5)


# Choices between numbers


@app.custom_op(elementwise=True)
def branching(x: Any, most: float = 1.0) -> Any:
    return most if x > most else x


@app.custom_op(elementwise=True)
def equal_to_zero(x: Any) -> Any:
    return 1.0 * x if x == 0 else 2.0 * x


@app.custom_op(elementwise=True)
def between(x: Any) -> Any:
    return min(max(x, -0.5), 1.25)


@app.custom_op(elementwise=True)
def on_a_grid(x: Any) -> Any:
    return round(x * 4) / 4 + math.floor(x) + np.rint(x)


@app.custom_op(elementwise=True)
def sign_of(x: Any) -> Any:
    if x > 0:
        return 1.0
    if x < 0:
        return -1.0
    return 0.0


@njit
def bent(x: Any) -> Any:
    return x if x > 0 or x < -1 else x / 2


@app.custom_op(elementwise=True)
def summed(x: Any) -> Any:
    total = 0.0
    for k in range(3):
        total += bent(x - k) if x != k else math.exp(-x)
    return total


@app.custom_op(elementwise=True)
def larger(x: Any, y: Any) -> Any:
    return np.maximum(x, y) if abs(x) < 1 and y < 2 else float(y)


CASES = [lambda x: branching(x, most=0.5), equal_to_zero, between, on_a_grid, sign_of, summed]


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("operator", [*CASES, lambda x: larger(x, x * x - 1.0)])
def test_choices_between_numbers_are_nodes_that_every_runtime_has(operator: Any, tmp_path: Path):
    model, expected = exported(operator, tmp_path)
    assert {node.domain for function in model.functions for node in function.node} <= {""}
    np.testing.assert_allclose(by_runtime(model), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("uncompiled")
def test_a_choice_between_two_plain_numbers_has_the_type_of_the_inputs(tmp_path: Path):
    stepped = app.custom_op(elementwise=True)(lambda x, low=0.1: low if x < 0 else 16777217.3)
    x = static.data("x", [None], "float64")
    path = app.onnx.export(static.default_main_program(), str(tmp_path / "stepped.onnx"), feed=[x], fetch=[stepped(x)])
    (result,) = onnxruntime.InferenceSession(path).run(None, {"x": np.array([-1.0, 1.0])})
    assert result.tolist() == [0.1, 16777217.3]


def between_near_numbers(x: float, y: float) -> float:
    if x < 0:
        return 123456789.1 if y < 0 else 1.0
    return 123456789.2 if y < 0 else 1.0


@pytest.mark.usefixtures("uncompiled")
def test_numbers_that_print_alike_stay_apart(tmp_path: Path):
    x, y = (static.data(name, [None], "float64") for name in "xy")
    out = app.custom_op(elementwise=True)(between_near_numbers)(x, y)
    path = app.onnx.export(static.default_main_program(), str(tmp_path / "near.onnx"), feed=[x, y], fetch=[out])
    numbers = {"x": np.array([-1.0, 1.0]), "y": np.array([-1.0, -1.0])}
    (result,) = onnxruntime.InferenceSession(path).run(None, numbers)
    assert result.tolist() == [123456789.1, 123456789.2]


def test_a_choice_sends_nan_where_python_does(tmp_path: Path):
    x = np.full((3, 4), np.nan, "float32")
    for operator in (between, sign_of, equal_to_zero):
        model, _ = exported(operator, tmp_path)
        session = onnxruntime.InferenceSession(model.SerializeToString())
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], operator(app.to_tensor(x)).numpy())


def test_a_function_with_too_many_ways_through_it_is_opaque(tmp_path: Path):
    @app.custom_op(elementwise=True)
    def deep(x):
        for k in range(10):
            x = x + k if x > k else x - k
        return x

    model, expected = exported(deep, tmp_path)
    assert not model.functions
    np.testing.assert_allclose(by_reference(model), expected, rtol=1e-6)


# Opaque


@njit
def looped(x: np.ndarray) -> np.ndarray:
    y = np.empty_like(x)
    for i in range(x.size):
        y.flat[i] = x.flat[i] if x.flat[i] > 0.5 else 0
    return y


@app.custom_op
def raised(x: Any, by: tuple[float, ...] = ()) -> Any:
    return np.sort(x) + np.float32(sum(by))


opaque_array = app.custom_op(looped, name="shrunk")
OPAQUE = [opaque_array, raised, lambda x: raised(x, by=(0.5, 1.5))]


@pytest.mark.parametrize("operator", OPAQUE)
def test_an_opaque_operator_is_one_of_our_domain_that_the_reference_evaluator_runs(operator: Any, tmp_path: Path):
    model, expected = exported(operator, tmp_path)
    ((domain, _),) = kinds(model)
    assert (domain, len(model.functions)) == ("opsmith", 0)
    np.testing.assert_allclose(by_reference(model), expected, rtol=1e-6)


def test_operators_can_be_named_for_the_reference_evaluator(tmp_path: Path):
    model, expected = exported(lambda x: raised(opaque_array(x), by=(0.75,)), tmp_path)
    evaluator = ReferenceEvaluator(model, new_ops=app.onnx.reference_operators(opaque_array, raised))
    np.testing.assert_allclose(evaluator.run(None, {"x": X})[0], expected)


def test_opaque_operators_of_one_name_get_different_names(tmp_path: Path):
    def scaled(factor: float) -> Callable[[Any], Any]:
        def times(a: np.ndarray) -> np.ndarray:
            return np.ascontiguousarray(a * np.float32(factor), "float32") + np.float32(float(a.sum()) * 0)

        return lambda x: static.py_func(times, x, static.InputSpec([-1, 4], "float32"))

    model, expected = exported(lambda x: scaled(3.0)(scaled(2.0)(x)), tmp_path)
    assert [kind for _, kind in kinds(model)] == ["py_func_times", "py_func_times_2"]
    np.testing.assert_allclose(expected, 6 * X, rtol=1e-6)
    np.testing.assert_allclose(by_reference(model), expected, rtol=1e-6)
