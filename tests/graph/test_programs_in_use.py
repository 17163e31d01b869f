"""What people do with Programs, right and wrong, and what they are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.errors import OperatorError, ProgramError

F32 = "float32"


def test_creating_a_variable_that_is_there_gives_the_one_that_is_there():
    block = static.default_main_program().current_block()
    x = static.data("x", [None, 3])
    assert block.create_var("x", [-1, 3]) is x
    static.nn.fc(x, 2)
    (weight, _) = static.default_main_program().all_parameters()
    assert block.create_var(weight.name, weight.shape) is weight
    assert len(static.default_main_program().all_parameters()) == 2
    with pytest.raises(ProgramError, match="variable x exists already, and is not a parameter"):
        block.create_parameter("x", [-1, 3])


def test_layers_that_name_the_same_weight_share_it():
    x = static.data("x", [None, 3])
    static.nn.fc(static.nn.fc(x, 3, weight_attr="w", bias_attr=False), 3, weight_attr="w", bias_attr=False)
    assert [p.name for p in static.default_main_program().all_parameters()] == ["w"]


def test_a_target_gradient_that_is_handed_through_is_copied_for_the_input():
    x, a = static.data("x", [1]), static.data("a", [1])
    x.stop_gradient = False
    weights = a * 2.0
    (g,) = static.gradients(x + 1.0, x, target_gradients=weights)
    assert g.name == "x@GRAD"


def test_a_tap_on_a_gradient_goes_where_the_gradient_goes():
    seen: list[int] = []
    loss = app.mean(static.nn.fc(static.data("x", [None, 2]), 1))
    _, pairs = app.optimizer.SGD(0.1).minimize(loss)
    static.py_func(lambda g: seen.append(1), pairs[0][1], None)
    static.py_func(lambda w: seen.append(2), pairs[0][0], None)
    executor = static.Executor()
    executor.run(static.default_startup_program())
    test = static.default_main_program().clone(for_test=True)
    executor.run(test, {"x": np.ones((1, 2), F32)}, [loss])
    assert seen == [2]


@pytest.mark.parametrize("use", [np.array, np.asarray, float, int, lambda x: [0][x]])
def test_a_variable_has_no_number(use: Any):
    x = static.data("x", [2])
    with pytest.raises(ProgramError, match="variable x has no value while the Program is built"):
        use(x)
    assert not x.block.ops


def test_a_variable_cannot_be_fed():
    x = static.data("x", [2])
    with pytest.raises(ProgramError, match="variable x has no value"):
        static.Executor().run(feed={"x": x})


@pytest.mark.parametrize("engine", ["reference", pytest.param("compiled", marks=pytest.mark.soak)])
def test_a_single_variable_may_be_fetched_without_a_list(engine: str):
    y = static.data("x", [2]) * 2.0
    for fetch in (y, y.name):
        (value,) = static.Executor(engine=engine).run(feed={"x": np.ones(2, F32)}, fetch_list=fetch)
        np.testing.assert_array_equal(value, [2, 2])
    assert [op.type for op in y.block.ops] == ["fill_constant", "multiply"]


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_what_is_fetched_is_the_callers_own(engine: str):
    x = static.data("x", [None, 2])
    y = static.nn.fc(x, 3)
    executor = static.Executor(engine=engine)
    executor.run(static.default_startup_program())
    feed = {"x": np.ones((1, 2), F32)}
    fetch = ["x", "fc_0.w_0", y, app.reshape(y, [-1])]
    first = executor.run(feed=feed, fetch_list=fetch)
    kept = [v.copy() for v in first]
    for value in first:
        value += 1
    assert feed["x"].sum() == 2
    again = executor.run(feed=feed, fetch_list=fetch)
    for value, other, expected in zip(first, again, kept, strict=True):
        np.testing.assert_array_equal(value, expected + 1)
        np.testing.assert_array_equal(other, expected)


def test_feeding_what_the_program_computes_is_an_error():
    x = static.data("x", [1])
    y = x * 2.0
    with pytest.raises(ProgramError, match=f"{y.name} was fed, but the Program computes it"):
        static.Executor().run(feed={"x": np.ones(1, F32), y.name: np.ones(1, F32)}, fetch_list=[y])


@pytest.mark.parametrize("engine", ["reference", pytest.param("compiled", marks=pytest.mark.soak)])
def test_a_dataset_may_be_a_generator_of_lists(engine: str):
    y = static.data("x", [None]) * 2.0
    batches = ([[float(i), 1.0]] for i in range(3))
    (column,) = static.Executor(engine=engine).train_from_dataset(y.program, batches, ["x"], [y])
    np.testing.assert_array_equal(column, [[0, 2], [2, 2], [4, 2]])
    assert column.dtype == F32


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_every_batch_is_checked(engine: str):
    y = static.data("x", [None]) * 2.0
    executor = static.Executor(engine=engine)
    with pytest.raises(app.errors.DtypeError, match="x takes float32, but was fed float64"):
        executor.train_from_dataset(y.program, [[np.ones(2, F32)], [np.ones(2)]], ["x"], [y])
    with pytest.raises(ProgramError, match="a batch has 2 arrays, but 1 variables to feed: x"):
        executor.train_from_dataset(y.program, [[np.ones(2, F32)] * 2], ["x"], [y])


def test_numbers_may_be_inputs_of_a_custom_operator():
    x = static.data("x", [2])
    out = static.py_func(lambda a, b, n: a * b + n, [x, 2.0, 3], static.InputSpec([2]))
    product = app.custom_op(lambda a, b: a * b, name="product")(x, 0.5)
    assert product.dtype == F32
    feed = {"x": np.ones(2, F32)}
    with pytest.raises(app.errors.DtypeError, match="float64"):  # int64 + float32, as NumPy has it
        static.Executor().run(feed=feed, fetch_list=[out])
    np.testing.assert_array_equal(app.custom_op(lambda a, b: a * b, name="p")(app.ones([2]), 0.5).numpy(), [0.5, 0.5])


def test_a_gradient_that_asks_for_what_there_is_not_says_where():
    half = app.custom_op(lambda x: x / 2, name="half")
    with pytest.raises(
        OperatorError, match=r"operator half \(test_programs_in_use\.py:\d+\): its gradient has a parameter 'grad'"
    ):
        half.backward(lambda x, grad: grad)


@pytest.mark.slow
def test_settings_may_be_infinite_or_not_a_number():
    x = static.data("x", [2])
    line = app.custom_op(elementwise=True, name="line")(lambda x, slope=2.0: x * slope)
    outs = [app.clip(x, -np.inf, 0.5)]
    for slope in (np.inf, -np.inf, np.nan):
        outs += [line(x, float(slope)), app.full_like(x, fill_value=float(slope))]
    feed = {"x": np.array([1, -2], F32)}
    reference, compiled = (static.Executor(engine=e).run(feed=feed, fetch_list=outs) for e in ("reference", "compiled"))
    np.testing.assert_array_equal(compiled, reference)


@pytest.mark.slow
def test_relu_is_the_same_in_every_bit_on_both_engines():
    from app.custom.shelf.relu import relu

    x = static.data("x", [None, 7])
    feed = {"x": np.array([[-0.0, 0.0, np.nan, np.inf, -np.inf, -1, 2]], F32)}
    outs = [app.relu(x), relu(x)]
    found = [v for e in ("reference", "compiled") for v in static.Executor(engine=e).run(feed=feed, fetch_list=outs)]
    assert len({v.tobytes() for v in found}) == 1


@pytest.mark.slow
def test_a_chain_that_only_gradient_rules_looked_at_leaves_no_operator_without_outputs():
    x = static.data("x", [2])
    x.stop_gradient = False
    a, b = x * 2.0, x * x
    (g,) = static.gradients(a + b, x, no_grad_set=[a])
    (value,) = static.Executor(engine="compiled").run(feed={"x": np.ones(2, F32)}, fetch_list=[g])
    np.testing.assert_array_equal(value, [2, 2])
