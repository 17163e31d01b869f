"""What cannot be compiled runs as a Python call between compiled pieces, with the results of the reference engine."""

from __future__ import annotations

from typing import Any

import both_engines
import numpy as np
import pytest
from both_engines import compiled
from numba import njit

import app
from app import static
from app.custom import custom_op
from app.engine.compiled import blas, parts, threads
from app.engine.compiled.engine import compile_program
from app.engine.compiled.explain import in_short
from app.engine.compiled.program import CompiledProgram
from app.errors import OperatorError
from app.ops.spec import spec_of

pytestmark = pytest.mark.slow

X = np.array([[-1, 2], [3, -4], [0, 0.5]], "float32")


def agree(fetch: list[Any], x: np.ndarray = X) -> np.ndarray:
    return both_engines.agree(fetch, {"x": x}, {"x": x}, compiles=False)[0]


def sorted_rows(x: Any) -> Any:
    return np.sort(x)


def test_a_function_sees_values_in_order_and_may_keep_them():
    seen: list[np.ndarray] = []
    x = static.data("x", [None, 2])
    for factor in (1.0, 2.0):
        x = app.tanh(x * factor)
        static.py_func(lambda a, f=factor: seen.append((f, a)), x, None)
    executor = static.Executor(engine="compiled")
    last = app.exp(x)
    executor.run(feed={"x": X}, fetch_list=[last])
    first = [(f, a.copy()) for f, a in seen]
    executor.run(feed={"x": X * 9}, fetch_list=[last])
    assert [f for f, _ in seen] == [1, 2, 1, 2]
    for (_, value), (_, then) in zip(seen, first, strict=False):
        np.testing.assert_array_equal(value, then)
    np.testing.assert_allclose(first[0][1], np.tanh(X), rtol=1e-6)


def test_a_function_may_return_its_input_or_a_view_of_it():
    x = static.data("x", [None, 2])
    h = app.tanh(x)
    part = static.py_func(lambda a: a[:, :1], h, static.InputSpec([None, 1]))
    same = static.py_func(lambda a: a, h, spec_of(h))
    later = app.exp(x) * 2.0
    agree([app.tanh(later * part) + same, app.transpose(later)])


@pytest.mark.filterwarnings("ignore:operator py_func")
def test_a_shape_other_than_the_declared_one_is_used_as_returned():
    x = static.data("x", [None, 2])
    y = static.py_func(lambda a: a[:1], app.tanh(x), spec_of(x))
    z = app.exp(y) + app.full_like(y, fill_value=1.5) * app.reshape(y, [-1, 2])
    assert agree([app.tanh(z)]).shape == (1, 2)


def test_an_error_of_a_custom_function_names_the_operator():
    def broken(a: Any) -> Any:
        if a[0, 0] < 0:
            raise ValueError("below zero")
        return a * 2

    x = static.data("x", [None, 2])
    y = app.tanh(static.py_func(broken, app.exp(x) - 1.0, spec_of(x)))
    executor = static.Executor(engine="compiled")
    executor.run(feed={"x": -X}, fetch_list=[y])
    with pytest.raises(
        OperatorError, match=r"operator py_func.broken \(test_python_calls.py:\d+\).*ValueError: below zero"
    ):
        executor.run(feed={"x": X}, fetch_list=[y])
    (value,) = executor.run(feed={"x": -X}, fetch_list=[y])
    np.testing.assert_allclose(value, np.tanh((np.exp(-X) - 1) * 2), rtol=1e-5)


def test_a_compiled_part_may_read_a_view_of_a_later_result_of_python():
    x = static.data("x", [None, 2])
    p = static.py_func(lambda a: a + 1, x, spec_of(x))
    begun = app.tanh(x * 2.0)
    agree([app.sum(begun, axis=1) * app.sum(app.exp(app.reshape(p, [-1, 1, 2])), axis=[1, 2])])


@pytest.mark.parametrize("optimizer", ["SGD", "Momentum", "Adam"])
def test_training_a_network_of_built_in_operators_needs_no_python_call(optimizer: str):
    x, label = static.data("x", [None, 4]), static.data("label", [None, 1], "int64")
    gate = app.nn.functional.sigmoid(static.nn.fc(x, 4))
    gated = gate * x + app.mean(gate, axis=1, keepdim=True) * app.tanh(static.nn.fc(x, 4))
    loss = app.mean(app.softmax_with_cross_entropy(static.nn.fc(gated, 3), label)[0])
    getattr(app.optimizer, optimizer)(0.1).minimize(loss)
    native = compiled(loss)
    assert native.runs_many, [step.verdict for step in native.lowered.steps if step.in_python]


def test_parts_that_call_different_functions_are_different():
    x = static.data("x", [None, 2])
    sums = static.py_func(sorted_rows, x + x, spec_of(x))
    squares = static.py_func(sorted_rows, sums * sums, spec_of(x))
    agree([app.tanh(squares)])


# --- What `explain` prints ---


def test_explain_describes_how_each_operator_runs_and_why():
    constants = {"two": 2.0}

    @custom_op(elementwise=True)
    def inlined(x: Any) -> Any:
        return x * 3

    @custom_op(elementwise=True)
    def looked_up(x: Any) -> Any:
        return x * constants["two"]

    @njit
    def on_arrays(x: Any) -> Any:
        return x[:].copy()  # a slice: nothing is proven of it

    x = static.data("x", [None, 2])
    h = app.tanh(inlined(static.nn.fc(x, 4)))
    h = static.py_func(on_arrays, h, spec_of(h))
    h = looked_up(h)
    y = static.py_func(sorted_rows, app.sum(h, axis=1), static.InputSpec([None]))
    text = static.default_main_program().explain([y], source=True)
    lines = {line.split()[1]: line for line in text.splitlines() if "  " in line and not line.startswith(" ")}
    assert "compiled: BLAS" in lines["matmul"]
    assert "inlined: in a loop with 2 others" in lines["add+inlined+tanh"]
    assert "compiled: calls a Numba function" in lines["py_func.on_arrays"]
    assert "Python call: Numba cannot compile looked_up: " in lines["looked_up"]
    assert "inlined: in a loop" in lines["sum"]
    assert "Python call: its function is plain Python" in lines["py_func.sorted_rows"]
    assert "def part_0(" in text
    assert "# " in text
    assert "def part_0(" not in static.default_main_program().explain([y], source=False)


def test_a_program_of_python_calls_alone_has_a_source_that_is_python():
    y = static.py_func(sorted_rows, static.data("x", [None]), static.InputSpec([None]))
    compile(CompiledProgram(static.default_main_program(), [y.name]).source.text, "source", "exec")


def test_explain_gives_the_reason_for_running_on_the_reference_engine():
    x = static.data("x", [2, None])
    y = app.tanh(app.sum(x, axis=1)) + app.sum(app.reshape(app.transpose(x), [-1]))
    assert static.default_startup_program().explain() == (
        "The reference engine runs this Program operator by operator: "
        "it takes no data, as a startup Program, and is run once."
    )
    agree([y], X.T.copy())


def test_where_compiling_is_switched_off_the_reference_engine_runs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    x = static.data("x", [None, 2])
    y = app.tanh(x)
    agree([y])
    assert compile_program(static.default_main_program(), [y.name]) == "NUMBA_DISABLE_JIT switches compiling off"


def test_pieces_share_out_the_batch_and_keep_blas_on_the_thread_that_calls_it(monkeypatch: pytest.MonkeyPatch):
    """With BLAS's own threads, which wait by spinning, an epoch took many times as long on a busy machine."""
    seen = []

    def on_threads(job: Any, count: int, shared: Any) -> None:
        def seeing(number: int) -> None:
            seen.append((count, {threads for _, threads in blas._counts()}))
            job(number)

        original(seeing, count, shared)

    original = threads.on_threads
    monkeypatch.setattr(threads, "on_threads", on_threads)
    monkeypatch.setattr(blas, "threads", lambda: 3)
    x = static.data("x", [None, 2])
    hidden = static.py_func(sorted_rows, fc := static.nn.fc(x, 4), spec_of(fc))
    both_engines.agree([hidden * 2.0], {"x": X})
    assert seen
    assert set(map(str, seen)) == {"(3, {1})"}


# What no longer is one


def test_parts_are_joined_and_split_in_compiled_code():
    x = static.data("x", [None, 2])
    x.stop_gradient = False
    wide = app.concat([app.tanh(x), x, x * 2.0], axis=1)
    first, middle, last = app.split(wide, [1, -1, 2], axis=1)
    tall = app.concat([x, x * 3.0], axis=0)
    left, right = app.split(app.matmul(x, x, transpose_x=True), 2, axis=0)
    value = (first * middle[:, :1]).sum() + (last * last).sum() + (tall * tall).sum() + (left * right).sum()
    fetch = [wide, middle, tall, right, *static.gradients(value, x)]
    both_engines.agree(fetch, {"x": X}, compiles=False)
    verdicts = {s.op.type: s.verdict for s in compiled(wide, first, middle, last, tall, left, right).lowered.steps}
    assert {verdicts["concat"], verdicts["split"]} == {"compiled: a copy"}


@pytest.mark.parametrize("mode", ["upscale_in_train", "downscale_in_infer"])
def test_dropout_draws_the_same_numbers_in_one_native_call(mode: str):
    x = static.data("x", [None, 50])
    y = app.nn.functional.dropout(app.tanh(x), 0.3, mode=mode) * 2.0
    feed = {"x": np.ones((20, 50), "float32")}
    evaluated = static.default_main_program().clone(for_test=True)
    (mask,) = (op.outputs[0] for op in evaluated.global_block().ops if op.definition.random)
    results = []
    for engine in ("reference", "compiled"):
        app.seed(5)
        executor = static.Executor(engine=engine)
        runs = [executor.run(feed=feed, fetch_list=[y])[0] for _ in range(3)]
        results.append([*runs, *executor.run(evaluated, feed=feed, fetch_list=[y.name, mask])])
    for reference, native in zip(*results, strict=True):
        np.testing.assert_allclose(native, reference, rtol=1e-6)
    assert not np.array_equal(results[1][0], results[1][1])
    assert compiled(app.mean(y)).runs_many


def test_a_constant_needs_no_values_of_its_inputs_beside_python_calls(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parts, "LIMIT", 1)  # so that the mask comes before the part that computes its input
    x = static.data("x", [None, 2])
    h = app.tanh(x)
    centred = h - app.mean(h, axis=0)  # which waits for all threads, and the constant mask does not
    dropped = app.nn.functional.dropout(app.exp(centred), 0.5)
    y = static.py_func(sorted_rows, dropped, spec_of(x))
    program = static.default_main_program().clone(for_test=True)
    (value,) = static.Executor(engine="compiled").run(program, feed={"x": X}, fetch_list=[y])
    np.testing.assert_allclose(value, np.sort(np.exp(np.tanh(X) - np.tanh(X).mean(axis=0))), rtol=1e-5)


def test_a_parameter_with_a_default_is_the_reason_for_a_python_call():
    @njit
    def scaled(x: Any, scale: float = 2.0) -> Any:
        return x[:].copy() * scale

    x = static.data("x", [None, 2])
    y = static.py_func(scaled, x, spec_of(x))
    assert "scaled has a parameter scale with a default; in a custom_op" in in_short(x.program, [y.name])
    both_engines.agree([y], {"x": X})


def test_a_line_says_what_python_calls_cost():
    x = static.data("x", [None, 2])
    fetch = [app.prod(static.py_func(sorted_rows, x, spec_of(x)), axis=1).name]
    line = in_short(static.default_main_program(), fetch)
    begin = "partly compiled; sorted_rows is a Python call: its function is plain Python, prod is a Python "
    assert line.startswith(begin)
    assert line.endswith(
        "with 2 Python calls in it, each batch is run from Python, which can take several times as long"
    )
    assert "; custom.relu is a Python call: " in in_short(static.default_main_program(), fetch, "custom.relu")


def test_a_line_names_a_custom_operator_once_for_both_passes():
    x = static.data("x", [None, 2])
    x.stop_gradient = False
    y = custom_op(lambda x: 2.0 * x, name="doubled", elementwise=True)(x)
    (dx,) = static.gradients([y], [x])
    assert in_short(static.default_main_program(), [y.name, dx.name]) == "compiled; doubled inlined"
