"""Batches of any size, fetches of any kind, threads, and errors from inside native code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import both_engines
import numpy as np
import pytest
from numba import njit

import app
from app import static
from app.data import Batches
from app.engine.compiled import blas, objects
from app.engine.compiled.engine import compile_program
from app.errors import OperatorError, ShapeError
from app.ops.spec import spec_of

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (20, 6)).astype("uint8")
LABELS = RNG.integers(0, 3, (20, 1))
ORDER = RNG.permutation(20)


def network() -> dict[str, Any]:
    """A small classifier of bytes; what of it is fetched in one native call for many batches, and what of everything
    that can be fetched."""
    x, label = static.data("x", [None, 6], "uint8"), static.data("label", [None, 1], "int64")
    logits = static.nn.fc(app.tanh(static.nn.fc(x.astype("float32") / 255.0, 40)), 3)
    loss = app.mean(app.softmax_with_cross_entropy(logits, label)[0])
    app.optimizer.Momentum(0.5).minimize(loss)
    every = [loss, loss, "x", logits, "fc_1.w_0", "label", "learning_rate_0"]
    return {"fetch": [loss, "fc_0.b_0"], "every": every, "loss": loss, "program": static.default_main_program()}


def first_values() -> static.Scope:
    scope = static.Scope()
    static.Executor(engine="reference").run(static.default_startup_program(), scope=scope)
    rng = np.random.default_rng(5)
    for name, value in sorted(scope.values.items()):
        if value.ndim:
            scope.values[name] = rng.uniform(-0.5, 0.5, value.shape).astype(value.dtype)
    return scope


def train(
    model: dict[str, Any], batches: Any, fetch: Any, engine: str = "compiled"
) -> tuple[list[Any], dict[str, Any]]:
    scope = first_values()
    executor = static.Executor(engine=engine)
    values = executor.train_from_dataset(model["program"], batches, ["x", "label"], fetch, scope=scope)
    return values, scope.values


def batches(size: int = 8, count: int = 20) -> Batches:
    return Batches(IMAGES, LABELS, ORDER[:count], size)


def close(actual: Any, expected: Any) -> None:
    if isinstance(actual, dict):
        assert actual.keys() == expected.keys()
        actual, expected = actual.values(), [expected[name] for name in actual]
    for a, b in zip(actual, expected, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


# --- Many batches ---


def test_many_batches_in_one_call_equal_single_batches_and_the_reference_engine():
    model = network()
    many, after = train(model, batches(), model["fetch"])
    single, after_single = train(model, list(batches()), model["fetch"])
    expected, after_reference = train(model, batches(), model["fetch"], engine="reference")
    assert many[0].shape == (3,)
    for values, state in ((single, after_single), (expected, after_reference)):
        close(many, values)
        close(after, state)
    lying = replace(batches(), order=None)  # in the order that the data lies in
    close(train(model, lying, model["fetch"])[0], train(model, lying, model["fetch"], "reference")[0])


@pytest.mark.parametrize("order", [[3, -1, 0], [0, 1, 20]])
def test_rows_that_the_data_do_not_have_are_never_read(order: list[int]):
    changed = Batches(IMAGES, LABELS, np.array([0, 1, 2]), 2)
    changed.order[:] = order  # after the check of Batches
    model, results = network(), []
    for engine in ("reference", "compiled"):
        try:
            results.append(train(model, changed, model["fetch"], engine)[0])
        except IndexError as error:
            results.append(str(error))
    if order[1] < 0:  # counts from the end, as in NumPy
        close(results[1], results[0])
    else:
        assert results == ["index 20 is out of bounds for axis 0 with size 20"] * 2


def test_the_last_batch_and_batches_of_another_size_do_not_compile_again(monkeypatch: pytest.MonkeyPatch):
    model = network()
    train(model, batches(), model["fetch"])
    names = [model["loss"].name, "fc_0.b_0"]
    native = compile_program(model["program"], names)
    monkeypatch.setattr(objects, "compiled", None)
    for size in (1, 3, 20, 100):
        train(model, batches(size), model["fetch"])
        train(model, list(batches(size)), model["fetch"])
    assert compile_program(model["program"], names) is native


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_fetched_rows_are_a_list_of_batches_and_no_data_give_no_batches(engine: str):
    model = network()
    (losses, _, _, logits, *_), _ = train(model, batches(), model["every"], engine)
    assert losses.shape == (3,)
    assert [v.shape for v in logits] == [(8, 3), (8, 3), (4, 3)]
    values, after = train(model, batches(count=0), model["fetch"], engine)
    assert [len(v) for v in values] == [0, 0]
    close(after, first_values().values)


def test_data_of_a_fixed_size_is_fed_batch_by_batch():
    x = static.data("x", [4, 6], "uint8")
    label = static.data("label", [4, 1], "int64")
    total = app.sum(x.astype("float32")) + app.sum(label.astype("float32"))
    model = {"program": static.default_main_program()}
    actual, _ = train(model, batches(4), [total])
    expected, _ = train(model, batches(4), [total], engine="reference")
    close(actual, expected)


# --- Fetches ---


def test_several_fetch_lists_and_programs_share_one_scope():
    model = network()
    test, feed = model["program"].clone(for_test=True), {"x": IMAGES, "label": LABELS}
    results = []
    for engine in ("reference", "compiled"):
        scope, executor, seen = first_values(), static.Executor(engine=engine), []
        for fetch in ([], model["every"]):
            seen += executor.run(model["program"], feed, fetch, scope=scope)
            seen += executor.run(test, feed, [model["loss"]], scope=scope)
        results.append(seen)
    close(results[1], results[0])


def test_a_parameter_that_the_program_does_not_use_and_data_of_a_fixed_shape():
    x, fixed = static.data("x", [None, 6]), static.data("fixed", [6])
    static.default_main_program().global_block().create_parameter("alone", [2])
    y = app.sum(app.tanh(x * fixed), axis=0)
    scope = static.Scope()
    scope.values["alone"] = np.array([1, 2], "float32")
    feed = {"x": np.ones((4, 6), "float32"), "fixed": np.arange(6, dtype="float32")}
    values = static.Executor(engine="compiled").run(feed=feed, fetch_list=[y, "alone", "fixed"], scope=scope)
    close(values, [4 * np.tanh(np.arange(6)), [1, 2], np.arange(6)])


# --- Threads ---


@pytest.mark.parametrize("threads", [1, 2])
def test_a_label_out_of_range_ends_the_run_before_anything_is_updated(threads: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(blas, "threads", lambda: threads)
    model = network()
    wrong = LABELS.copy()
    wrong[ORDER[[0, 7]]] = 3  # one in the share of each thread
    bad = Batches(IMAGES, wrong, ORDER, 8)
    scope = first_values()
    with pytest.raises(OperatorError, match="operator softmax_with_cross_entropy: labels must be valid classes"):
        static.Executor(engine="compiled").train_from_dataset(model["program"], bad, ["x", "label"], scope=scope)
    close(scope.values, first_values().values)
    assert np.isfinite(train(model, batches(), model["fetch"])[0][0]).all()


@njit
def refuses(a: Any) -> Any:
    if a[a.shape[0] - 1, 0] > 5:
        raise ValueError("above five")
    return a.copy()


@njit
def shortens(a: Any) -> Any:
    return a[: a.shape[0] // 2].copy() if a[a.shape[0] - 1, 0] > 5 else a.copy()


@pytest.mark.parametrize(
    ("function", "rows", "message"),
    [
        (refuses, True, "its function raised ValueError: above five"),
        pytest.param(refuses, False, "its function raised ValueError: above five", marks=pytest.mark.soak),
        (shortens, False, "returned a shape other than the declared one"),
        pytest.param(shortens, True, "returned a shape other than the declared one", marks=pytest.mark.soak),
    ],
)
def test_an_error_of_a_numba_function_ends_every_thread_and_names_the_operator(
    function: Any, rows: bool, message: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(blas, "threads", lambda: 2)
    x = static.data("x", [None, 2])
    y = app.sum(static.py_func(function, app.tanh(x) + x, spec_of(x), row_by_row=rows))
    executor = static.Executor(engine="compiled")
    bad = np.arange(20, dtype="float32").reshape(10, 2)
    for _ in range(2):
        with pytest.raises(OperatorError, match=rf"operator py_func.{function.__name__} \(.*\): .*{message}"):
            executor.run(feed={"x": bad}, fetch_list=[y])
    good = np.ones((4, 2), "float32")
    close(executor.run(feed={"x": good}, fetch_list=[y]), [np.sum(good + np.tanh(good))])


def test_a_parameter_of_another_shape_than_declared_is_an_error():
    model = network()
    scope = first_values()
    scope.values["fc_0.w_0"] = np.ones((2, 2), "float32")
    with pytest.raises(ShapeError, match=r"fc_0.w_0 is declared with shape \[6, 40\], but has \[2, 2\]"):
        static.Executor(engine="compiled").run(model["program"], {"x": IMAGES, "label": LABELS}, scope=scope)


# --- Values that are no ordinary numbers ---


NAN = np.array([[1, np.nan, 3], [np.inf, -np.inf, 0]], "float32")
line = app.custom_op(elementwise=True, name="line")(lambda x, slope=2.0: x * slope)


def of_numbers(x: Any) -> list[Any]:
    """Of NaN and infinities, and with settings that are not finite."""
    results = [app.max(x), app.min(x, axis=0), app.clip(x, -np.inf, 0.5)]
    for setting in (np.inf, -np.inf, np.nan):
        results += [line(x, float(setting)), app.full_like(x, fill_value=float(setting))]
    return results


def of_truth(x: Any) -> list[Any]:
    return [x + x, x * x, (x + x) == x, app.sum(x + x)]


@pytest.mark.parametrize(("value", "function"), [(NAN, of_numbers), (np.array([True, False, True]), of_truth)])
def test_nan_and_truth_values_are_treated_as_in_the_reference_engine(value: np.ndarray, function: Any):
    x = static.data("x", [None, *value.shape[1:]], value.dtype.name)
    both_engines.agree(function(x), {"x": value}, rtol=0, atol=0)


def test_a_value_without_axes_is_fetched_beside_itself_with_one():
    y = app.tanh(static.data("x", []))
    both_engines.agree([y, app.unsqueeze(y, 0), app.reshape(y, [1, 1])], {"x": np.float32(0.5)})
