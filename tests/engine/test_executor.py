"""The Executor: what may be fed and fetched, what stays between runs, learning rates, whole data sets."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.errors import DtypeError, OperatorError, ProgramError, ShapeError


def run(fetch: Any = (), feed: Any = None, program: Any = None, **kwargs: Any) -> list[Any]:
    return static.Executor().run(program, feed, fetch, **kwargs)


def ones(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.ones(shape, dtype)


# --- Running ---


def test_the_default_main_program_is_run_where_none_is_given():
    static.data("x", [1])
    with static.program_guard(static.Program()):
        y = static.data("y", [1]) + 1.0
        assert run([y], {"y": ones(1)})[0] == 2


def test_a_run_without_feed_or_fetch():
    assert run() == []
    assert run(feed={}) == []


def test_values_of_one_run_are_forgotten_unless_they_are_persistable():
    x = static.data("x", [1])
    y = x + 1.0
    run([y], {"x": ones(1)})
    assert static.global_scope().find_var(y.name) is None
    with pytest.raises(ProgramError, match="nothing was fed for x"):
        run([y])


def test_each_engine_is_chosen_by_name():
    with pytest.raises(ProgramError, match=r"there is no engine 'warp'; expected one of .*reference"):
        static.Executor(engine="warp")
    static.Executor("cpu").close()


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_an_error_of_an_operator_names_the_line_that_made_it(engine: str):
    x, i = static.data("x", [None, 3]), static.data("i", [None], "int64")
    line = inspect.currentframe().f_lineno + 1
    y = app.gather(x * 2.0, i) + 1.0
    with pytest.raises(OperatorError, match=r"operator gather of .* index 5 is out of bounds") as caught:
        static.Executor(engine=engine).run(feed={"x": ones(2, 3), "i": np.array([5])}, fetch_list=[y])
    assert caught.value.__notes__ == [f"operator gather was made at test_executor.py:{line}"]


def test_the_startup_program_gives_first_values_once_and_the_main_program_changes_them():
    x = static.data("x", [None, 3])
    loss = app.mean(app.square(static.nn.fc(x, 1)))
    app.optimizer.SGD(0.1).minimize(loss)
    run(program=static.default_startup_program())
    losses = [run([loss], {"x": ones(2, 3)})[0] for _ in range(10)]
    assert all(later < earlier for earlier, later in itertools.pairwise(losses))
    before = static.global_scope().value("fc_0.w_0").copy()
    run(program=static.default_startup_program())
    assert not np.array_equal(static.global_scope().value("fc_0.w_0"), before)


def test_a_program_with_a_random_seed_starts_from_the_same_values():
    static.default_startup_program().random_seed = 7
    static.nn.fc(static.data("x", [None, 3]), 4)
    startup, values = static.default_startup_program(), []
    for _ in range(2):
        run(program=startup)
        values.append(static.global_scope().value("fc_0.w_0").copy())
    np.testing.assert_array_equal(*values)
    assert len(np.unique(values[0])) == 12


# --- What is fed ---


def test_data_that_are_read_must_be_fed():
    x, y = static.data("x", [2]), static.data("y", [2])
    z = x + y
    with pytest.raises(ProgramError, match="nothing was fed for y; fed were x"):
        run([z], {"x": ones(2)})
    with pytest.raises(ProgramError, match="nothing was fed for x, y; fed were none"):
        run([z])


def test_data_that_nothing_reads_need_not_be_fed():
    x = static.data("x", [2])
    static.data("label", [2], "int64")
    assert run([x + 1.0], {"x": ones(2)})[0].sum() == 4


def test_lists_numbers_and_tensors_are_read_in_the_declared_type():
    x, n = static.data("x", [2]), static.data("n", [], "int32")
    for fed in ([0.5, 1], app.to_tensor([0.5, 1])):
        values = run([x, n], {"x": fed, "n": 3})
        assert [(v.dtype.name, v.tolist()) for v in values] == [("float32", [0.5, 1]), ("int32", 3)]


@pytest.mark.parametrize(
    ("fed", "error", "told"),
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
    ],
)
def test_what_does_not_fit_the_data_is_refused(fed: Any, error: type[Exception], told: str):
    static.data("n", [], "int32")
    static.data("x", [None, 3])
    with pytest.raises(error, match=told):
        run([], fed)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_an_unknown_size_may_be_any(rows: int):
    x = static.data("x", [None, 3])
    assert run([x * 1.0], {"x": ones(rows, 3)})[0].shape == (rows, 3)


# --- What is fetched ---


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_what_cannot_be_fetched_is_told(engine: str):
    static.nn.fc(static.data("x", [None, 3]), 2)
    for fetch, told in (
        ("nothing", r"block 0 has no variable 'nothing'; it has x, .*add.out_0"),
        (3, "expected a Variable or its name, found a int"),
        ("add.out_0", r"variable fc_0\.w_0 has no value yet: run the startup program first"),
    ):
        with pytest.raises(ProgramError, match=told):
            static.Executor(engine=engine).run(feed={"x": ones(1, 3)}, fetch_list=[fetch])
    with static.program_guard(static.Program()):
        static.data("x", [1])
        static.default_main_program().global_block().create_var("hollow", [1])
        with pytest.raises(ProgramError, match="variable hollow has no value: no operator computes it"):
            static.Executor(engine=engine).run(feed={"x": ones(1)}, fetch_list=["hollow"])


def test_a_variable_of_another_program_is_looked_up_by_its_name():
    loss = app.mean(static.nn.fc(static.data("x", [None, 3]), 2))
    test = static.default_main_program().clone(for_test=True)
    run(program=static.default_startup_program())
    assert run([loss], {"x": ones(1, 3)}, test)[0].shape == ()


# --- Errors while running ---


def test_an_operator_that_fails_is_named_with_what_it_was_given():
    x, y = static.data("x", [None, 3]), static.data("y", [None, 3])
    z = x + y
    with pytest.raises(ShapeError, match=r"operator add of \(float32\[2, 3\], float32\[4, 3\]\).*cannot be broadcast"):
        run([z], {"x": ones(2, 3), "y": ones(4, 3)})


def test_labels_out_of_range_are_named():
    x, label = static.data("x", [None, 3]), static.data("label", [None, 1], "int64")
    loss = app.nn.functional.cross_entropy(x, label)
    with pytest.raises(OperatorError, match=r"labels must be in 0\.\.2, found 3\.\.3"):
        run([loss], {"x": ones(1, 3), "label": np.array([[3]])})


# --- Learning rates ---


def rates(optimizer: Any, steps: int, change: Any) -> list[float]:
    loss = app.mean(static.nn.fc(static.data("x", [None, 3]), 1))
    optimizer.minimize(loss)
    run(program=static.default_startup_program())
    found = []
    for _ in range(steps):
        found.append(float(run(["learning_rate_0"], {"x": ones(1, 3)})[0]))
        change()
    return found


def test_a_learning_rate_that_is_set_holds_from_the_next_run():
    optimizer = app.optimizer.SGD(0.5)
    assert rates(optimizer, 2, lambda: optimizer.set_lr(0.25)) == [0.5, 0.25]


def test_a_clone_is_scheduled_too():
    schedule = app.optimizer.lr.StepDecay(0.5, step_size=1, gamma=0.5)
    app.optimizer.SGD(schedule).minimize(app.mean(static.nn.fc(static.data("x", [None, 3]), 1)))
    run(program=static.default_startup_program())
    schedule.step()
    assert run(["learning_rate_0"], {"x": ones(1, 3)}, static.default_main_program().clone())[0] == 0.25


# --- Whole data sets ---


def test_training_from_a_dataset_gives_a_column_for_each_variable_asked_for():
    x, label = static.data("x", [None, 4]), static.data("label", [None, 1], "int64")
    scores = static.nn.fc(x, 3)
    loss, accuracy = app.nn.functional.cross_entropy(scores, label), static.accuracy(scores, label)
    app.optimizer.SGD(0.5).minimize(loss)
    executor = static.Executor()
    executor.run(static.default_startup_program())
    rng = np.random.default_rng(0)
    batches = [
        (np.eye(4, dtype="float32")[kinds], kinds[:, None]) for kinds in (rng.integers(0, 3, 8) for _ in range(30))
    ]
    losses, accuracies = executor.train_from_dataset(
        static.default_main_program(), batches, [x, "label"], [loss, accuracy.name]
    )
    assert losses.shape == accuracies.shape == (30,)
    assert losses[-1] < losses[0]
    assert accuracies[-1] == 1.0


def test_a_dataset_may_be_gone_through_without_fetching():
    x = static.data("x", [None])
    seen: list[int] = []
    static.py_func(lambda v: seen.append(len(v)), x, None)
    assert static.Executor().train_from_dataset(static.default_main_program(), [[ones(2)], [ones(1)]], [x]) == []
    assert seen == [2, 1]
