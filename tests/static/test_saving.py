"""What a Program keeps is written and read back; a network can be used without the program that trained it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import app
from app import static
from app.errors import DtypeError, ProgramError

FEED = {"x": np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)}
LABELLED = {**FEED, "label": np.array([[0], [1]])}


@pytest.fixture
def trained() -> tuple[static.Executor, static.Variable, static.Variable]:
    """A network that has made one step: the Executor, its data and its result."""
    x, label = static.data("x", [None, 3]), static.data("label", [None, 1], "int64")
    out = app.nn.functional.softmax(static.nn.fc(app.tanh(static.nn.fc(x, 4)), 2))
    loss = app.mean(app.nn.functional.cross_entropy(out, label, use_softmax=False))
    app.optimizer.Adam(learning_rate=0.1).minimize(loss)
    executor = static.Executor()
    executor.run(static.default_startup_program())
    executor.run(feed=LABELLED)
    return executor, x, out


def test_a_saved_network_runs_in_another_scope(trained, tmp_path: Path):
    executor, x, out = trained
    test = static.default_main_program().clone(for_test=True)
    expected = executor.run(test, feed=LABELLED, fetch_list=[out])
    prefix = str(tmp_path / "folder" / "net")
    static.save_inference_model(prefix, [x], [out])
    with static.scope_guard(static.Scope()):
        program, feed, fetch = static.load_inference_model(prefix)
        assert feed == ["x"]
        np.testing.assert_array_equal(executor.run(program, feed=FEED, fetch_list=fetch), expected)
        assert {v.name for v in program.list_vars() if v.persistable} == {p.name for p in program.all_parameters()}
    assert [op.type for op in program.global_block().ops].count("matmul") == 2


@pytest.mark.parametrize("engine", ["reference", pytest.param("compiled", marks=pytest.mark.soak)])
def test_a_network_is_continued_in_another_process(engine: str, tmp_path: Path):
    with app.graph.names.guard():
        x = static.data("x", [None, 3])
        out = static.nn.fc(x, 3)
        executor = static.Executor(engine=engine)
        executor.run(static.default_startup_program())
        static.save_inference_model(str(tmp_path / "net"), [x], [out])
    startup = static.Program()
    with app.graph.names.guard(), static.scope_guard(static.Scope()):  # no name has been used there
        program, _, (loaded,) = static.load_inference_model(str(tmp_path / "net"))
        (expected,) = executor.run(program, feed=FEED, fetch_list=[loaded])
        with static.program_guard(program, startup):
            more = static.nn.fc(loaded + 1.0, 2)
        executor.run(startup)
        weight, bias = (v for v in program.all_parameters() if v.name in startup.global_block().vars)
        results = executor.run(program, feed=FEED, fetch_list=[loaded, more, weight, bias])
    np.testing.assert_array_equal(results[0], expected)
    np.testing.assert_allclose(results[1], (expected + 1.0) @ results[2] + results[3], rtol=1e-5)


def test_data_that_the_outputs_need_must_be_fed(trained, tmp_path: Path):
    _, x, _ = trained
    block = static.default_main_program().global_block()
    loss = next(v for name, v in block.vars.items() if name.startswith("mean"))
    with pytest.raises(ProgramError, match="cannot be computed from x alone; feed label too"):
        static.save_inference_model(str(tmp_path / "net"), x, loss)


def test_every_persistable_value_is_saved_and_loaded(trained, tmp_path: Path):
    path = str(tmp_path / "all")
    values = {name: value.copy() for name, value in static.global_scope().values.items()}
    static.save(static.default_main_program(), path)
    with static.scope_guard(static.Scope()):
        static.load(static.default_main_program(), path)
        restored = static.global_scope().values
        assert restored.keys() == values.keys()
        for name, value in values.items():
            np.testing.assert_array_equal(restored[name], value)


def test_the_values_of_another_scope_can_be_saved(trained, tmp_path: Path):
    executor, x, out = trained
    scope = static.Scope()
    scope.values = {name: value * 0 for name, value in static.global_scope().values.items()}
    static.save_inference_model(str(tmp_path / "net"), x, out, scope=scope)
    static.load_inference_model(str(tmp_path / "net"))
    (result,) = executor.run(static.default_main_program().clone(for_test=True), feed=LABELLED, fetch_list=[out])
    np.testing.assert_array_equal(result, np.full((2, 2), 0.5))


def test_values_of_another_network_are_an_error(trained, tmp_path: Path):
    path = str(tmp_path / "all")
    static.save(static.default_main_program(), path)
    other = static.Program()
    with static.program_guard(other, static.Program()), app.graph.names.guard():
        static.nn.fc(static.data("x", [None, 7]), 4)
    with pytest.raises(ProgramError, match=r"fc_0.w_0 has shape \[7, 4\], in .* it has \[3, 4\]"):
        static.load(other, path)
    with static.program_guard(other, static.Program()):
        static.nn.fc(static.data("x", [None, 7]), 4, name="else")
    with pytest.raises(ProgramError, match=r"has no value for else\.w_0"):
        static.load(other, path, var_list=[v for v in other.all_parameters() if v.name.startswith("else")])


def test_stored_values_take_the_type_of_their_variables(tmp_path: Path):
    path = str(tmp_path / "all")
    program = static.default_main_program()
    count = static.create_global_var([1], 0, "int64", name="count")
    rate = static.create_global_var([1], 0.0, "float32", name="rate")
    app.save({"rate": np.array([0.5], "float64"), "count": np.array([2], "int32")}, path + ".pdparams")
    static.load(program, path)
    assert [v.tolist() for v in static.Executor(engine="reference").run(fetch_list=[count, rate])] == [[2], [0.5]]
    assert [static.global_scope().values[v].dtype.name for v in ("count", "rate")] == ["int64", "float32"]
    for restore in (lambda: static.load(program, path), lambda: program.set_state_dict({"count": np.array([2.5])})):
        app.save({"rate": np.array([0.5]), "count": np.array([2.5])}, path + ".pdparams")
        with pytest.raises(DtypeError, match="count is int64, and was given float"):
            restore()
