"""The Executor: what may be fed and fetched, what stays between runs, learning rates, whole data sets."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.data import Batches
from app.errors import DtypeError, OperatorError, ProgramError, ShapeError

COMPILED_IN_SOAK = ("reference", pytest.param("compiled", marks=pytest.mark.soak))


def run(fetch: Any = (), feed: Any = None, program: Any = None, engine: str = "reference") -> list[Any]:
    return static.Executor(engine=engine).run(program, feed, fetch)


def ones(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.ones(shape, dtype)


# --- Running ---


def test_a_run_needs_no_program_feed_or_fetch_list():
    assert run() == run(feed={}) == []
    static.data("x", [1])
    with static.program_guard(static.Program()):
        assert run([static.data("y", [1]) + 1.0], {"y": ones(1)})[0] == 2


def test_values_of_one_run_are_forgotten_unless_they_are_persistable():
    y = static.data("x", [1]) + 1.0
    run([y], {"x": ones(1)})
    assert static.global_scope().find_var(y.name) is None
    with pytest.raises(ProgramError, match="nothing was fed for x"):
        run([y])


def test_each_engine_is_chosen_by_name():
    with pytest.raises(ProgramError, match=r"there is no engine 'warp'; expected one of .*reference"):
        static.Executor(engine="warp")
    with pytest.raises(ProgramError, match="no engine 'toy' that explains Programs; expected one of compiled"):
        static.Program().explain(engine="toy")
    static.Executor("cpu").close()


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_an_error_of_an_operator_names_the_line_that_made_it(engine: str):
    x, i = static.data("x", [None, 3]), static.data("i", [None], "int64")
    line = inspect.currentframe().f_lineno + 1
    y = app.gather(x * 2.0, i) + 1.0
    with pytest.raises(OperatorError, match=r"operator gather of .* index 5 is out of bounds") as caught:
        run([y], {"x": ones(2, 3), "i": np.array([5])}, engine=engine)
    assert caught.value.__notes__ == [f"operator gather was made at test_executor.py:{line}"]


def test_an_error_of_an_operator_names_what_it_was_given():
    z = static.data("x", [None, 3]) + static.data("y", [None, 3])
    with pytest.raises(ShapeError, match=r"operator add of \(float32\[2, 3\], float32\[4, 3\]\).*cannot be broadcast"):
        run([z], {"x": ones(2, 3), "y": ones(4, 3)})


@pytest.mark.parametrize("seed", [None, 7])
def test_a_startup_program_draws_new_values_unless_it_has_a_random_seed(seed: int | None):
    startup, values = static.default_startup_program(), []
    startup.random_seed = seed
    static.nn.fc(static.data("x", [None, 3]), 4)
    for _ in range(2):
        run(program=startup)
        values.append(static.global_scope().value("fc_0.w_0").copy())
    assert np.array_equal(*values) == (seed is not None)
    assert len(np.unique(values[0])) == 12


@pytest.mark.parametrize("seed", [None, 7])
def test_dropout_drops_other_elements_in_every_run_unless_its_program_has_a_random_seed(seed: int | None):
    program = static.Program()
    program.random_seed = seed
    with static.program_guard(program, static.Program()):
        x = static.data("x", [100])
        first, second = (app.nn.functional.dropout(x) for _ in range(2))
    executors = [static.Executor(engine=name) for name in ("reference", "compiled", "compiled")]
    runs = [each.run(program, {"x": np.ones(100, "float32")}, [first, second]) for each in executors]
    assert len({mask.tobytes() for run in runs for mask in run}) == (6 if seed is None else 2)


def test_a_schedule_sets_the_learning_rate_of_a_program_and_of_its_clone():
    schedule = app.optimizer.lr.StepDecay(0.5, step_size=1, gamma=0.5)
    app.optimizer.SGD(schedule).minimize(app.mean(static.nn.fc(static.data("x", [None, 3]), 1)))
    run(program=static.default_startup_program())
    for rate in (0.5, 0.25):
        for program in (static.default_main_program(), static.default_main_program().clone()):
            assert run(["learning_rate_0"], {"x": ones(1, 3)}, program)[0] == rate
        schedule.step()


# --- What is fed ---


def test_data_that_are_read_must_be_fed():
    x, y = static.data("x", [2]), static.data("y", [2])
    static.data("label", [2], "int64")
    z = x + y
    assert run([z], {"x": ones(2), "y": ones(2)})[0].sum() == 4
    with pytest.raises(ProgramError, match="nothing was fed for y; fed were x"):
        run([z], {"x": ones(2)})
    with pytest.raises(ProgramError, match="nothing was fed for x, y; fed were none"):
        run([z])
    for engine in ("reference", "compiled"):
        with pytest.raises(ProgramError, match="nothing was fed for label; fed were x, y"):
            run([z, "label"], {"x": ones(2), "y": ones(2)}, engine=engine)


def test_lists_numbers_and_tensors_are_converted_to_the_declared_type():
    x, n = static.data("x", [2]), static.data("n", [], "int32")
    for fed in ([0.5, 1], app.to_tensor([0.5, 1])):
        values = run([x, n], {"x": fed, "n": 3})
        assert [(v.dtype.name, v.tolist()) for v in values] == [("float32", [0.5, 1]), ("int32", 3)]


@pytest.mark.parametrize(
    ("fed", "error", "message"),
    [
        *(
            ({"x": ones(*s)}, ShapeError, r"x takes shape \[-1, 3\], but was fed \[")
            for s in ((3,), (2, 3, 1), (2, 4), ())
        ),
        *(
            ({"x": ones(2, 3, dtype=t)}, DtypeError, rf"x takes float32, but was fed {t}; use \.astype")
            for t in ("float64", "int32", "bool")
        ),
        ({"n": 0.5}, DtypeError, "n takes int32, but was fed float64"),
        ({"x": [[1.0], [1.0, 2.0]]}, ProgramError, "what was fed for x is not an array"),
        ({"z": ones(2)}, ProgramError, "'z' was fed, but the Program has no such variable; its data are n, x"),
        ({"tanh.out_0": ones(2, 3)}, ProgramError, "tanh.out_0 was fed, but the Program computes it"),
    ],
)
def test_wrong_feeds_are_errors(fed: Any, error: type[Exception], message: str):
    static.data("n", [], "int32")
    app.tanh(static.data("x", [None, 3]))
    with pytest.raises(error, match=message):
        run([], {"x": ones(2, 3), **fed})


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_what_is_fed_for_a_persistable_variable_is_its_value_from_then_on(engine: str):
    x = static.data("x", [None])
    total = static.create_global_var([2], 1.0, "float32", name="total")
    before = total * 1.0
    app.assign(total + app.sum(x), output=total)
    run(program=static.default_startup_program())
    fed = ones(2) * 5
    for feed, expected in (({"total": fed}, [5, 8]), ({}, [8, 11]), ({"total": [0, 0]}, [0, 3])):
        values = run([before, total], {"x": ones(3), **feed}, engine=engine)
        assert [value.tolist() for value in values] == [[number] * 2 for number in expected]
        assert static.global_scope().value("total").tolist() == values[1].tolist()
    assert fed.tolist() == [5, 5]
    dataset = Batches(ones(4), ones(4), None, 2)
    columns = static.Executor(engine=engine).train_from_dataset(x.program, dataset, ["x", total], [total])
    assert columns[0].tolist() == [[3, 3], [3, 3]]


# --- What is fetched ---


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_wrong_fetches_are_errors(engine: str):
    static.nn.fc(static.data("x", [None, 3]), 2)
    for fetch, message in (
        ("nothing", r"block 0 has no variable 'nothing'; it has x, .*add.out_0"),
        (3, "expected a Variable or its name, found a int"),
        ("add.out_0", r"variable fc_0\.w_0 has no value yet: run the startup program first"),
    ):
        with pytest.raises(ProgramError, match=message):
            run([fetch], {"x": ones(1, 3)}, engine=engine)
    with static.program_guard(static.Program()):
        static.data("x", [1])
        static.default_main_program().global_block().create_var("hollow", [1])
        with pytest.raises(ProgramError, match="variable hollow has no value: no operator computes it"):
            run(["hollow"], {"x": ones(1)}, engine=engine)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_fetched_values_belong_to_the_caller(engine: str):
    y = static.nn.fc(static.data("x", [None, 2]), 3)
    fetch, feed = ["x", "fc_0.w_0", y, app.reshape(y, [-1])], {"x": ones(1, 2)}
    run(program=static.default_startup_program())
    first = run(fetch, feed, engine=engine)
    copies = [v.copy() for v in first]
    for value in first:
        value += 1
    assert feed["x"].sum() == 2
    for value, again, expected in zip(first, run(fetch, feed, engine=engine), copies, strict=True):
        np.testing.assert_array_equal(value, expected + 1)
        np.testing.assert_array_equal(again, expected)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_fetched_data_are_what_was_fed_whatever_the_scope_has_by_that_name(engine: str):
    x = static.data("x", [None, 2])
    static.global_scope().values["x"] = ones(3, 2) * 9  # of another Program
    values = run([x, app.tanh(x)], {"x": ones(3, 2)}, engine=engine)
    np.testing.assert_allclose(values, [ones(3, 2), np.tanh(ones(3, 2))], rtol=1e-6)


# --- Whole data sets ---


@pytest.mark.parametrize("engine", COMPILED_IN_SOAK)
def test_train_from_dataset_returns_a_column_for_each_fetched_variable(engine: str):
    x, n = static.data("x", [None]), static.data("n", [1], "int64")
    fetch = [x * 2.0, app.sum(x).name]
    batches = ([[float(i), 1.0], [i]] for i in range(3))
    columns = static.Executor(engine=engine).train_from_dataset(x.program, batches, ["x", n], fetch)
    assert [column.tolist() for column in columns] == [[[0, 2], [2, 2], [4, 2]], [1, 2, 3]]
    assert {column.dtype.name for column in columns} == {"float32"}
    assert static.Executor(engine=engine).train_from_dataset(x.program, [[ones(2), [1]]], ["x", n]) == []


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_every_batch_of_a_dataset_is_checked(engine: str):
    y = static.data("x", [None]) * 2.0
    executor = static.Executor(engine=engine)
    with pytest.raises(DtypeError, match="x takes float32, but was fed float64"):
        executor.train_from_dataset(y.program, [[ones(2)], [np.ones(2)]], ["x"], [y])
    with pytest.raises(ProgramError, match="a batch has 2 arrays, but 1 variables to feed: x"):
        executor.train_from_dataset(y.program, [[ones(2)] * 2], ["x"], [y])
