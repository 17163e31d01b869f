"""First values of parameters: in which range they lie, and that a seed makes them the same in both modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import nn, static
from app.errors import AppError, DtypeError, OperatorError, ProgramError, ShapeError
from app.graph.defaults import static_mode
from app.nn import initializer as init

SHAPE = [120, 80]


def first_values(initializer: Any, shape: list[int] = SHAPE, seed: int = 0, dtype: str = "float32") -> np.ndarray:
    app.seed(seed)
    return nn.create_parameter(shape, dtype, attr=initializer).numpy()


UNIFORM = [
    (init.Uniform(-0.5, 2.0), -0.5, 2.0),
    (init.XavierUniform(), -np.sqrt(6 / 200), np.sqrt(6 / 200)),
    (init.KaimingUniform(), -np.sqrt(6 / 120), np.sqrt(6 / 120)),
]
RANDOM = [*(initializer for initializer, *_ in UNIFORM), init.Normal(3.0, 0.5)]


@pytest.mark.parametrize(("initializer", "low", "high"), UNIFORM)
def test_uniform_numbers_fill_their_range(initializer: Any, low: float, high: float):
    values = first_values(initializer)
    width = high - low
    assert low <= values.min() < low + 0.01 * width
    assert high - 0.01 * width < values.max() <= np.float32(high)
    assert values.mean() == pytest.approx((low + high) / 2, abs=0.01 * width)
    assert values.std() == pytest.approx(width / np.sqrt(12), rel=0.02)


def test_normal_numbers_have_their_mean_and_spread():
    values = first_values(init.Normal(3.0, 0.5))
    assert values.mean() == pytest.approx(3.0, abs=0.025)
    assert values.std() == pytest.approx(0.5, rel=0.05)
    assert np.mean(np.abs(values - 3.0) < 0.5) == pytest.approx(0.683, abs=0.02)


def test_constants_and_arrays():
    assert (first_values(init.Constant(1.5)) == 1.5).all()
    array = np.arange(6.0).reshape(2, 3)
    assert first_values(init.Assign(array), [2, 3]).tolist() == array.tolist()
    assert first_values(init.Assign([1, 2]), [2], dtype="int64").dtype == "int64"
    assert nn.create_parameter([2], "int64").tolist() == [0, 0]


def test_ranges_depend_on_the_fans_of_vectors_and_kernels():
    for shape, square in {(4,): 6 / 8, (): 6 / 2, (8, 4, 3, 3): 6 / (12 * 9)}.items():
        assert init.XavierUniform()(shape)[1]["max"] == pytest.approx(np.sqrt(square))
    assert init.KaimingUniform()((8, 4, 3, 3))[1]["max"] == pytest.approx(np.sqrt(6 / (4 * 9)))


# Seeds


def network(initializer: Any) -> nn.Layer:
    return nn.Sequential(nn.Linear(6, 5, initializer), nn.ReLU(), nn.Linear(5, 4, initializer, initializer))


def values_in_program(initializer: Any, seed: int | None, runs: int = 1) -> list[list[np.ndarray]]:
    main, startup, scope = static.Program(), static.Program(), static.Scope()
    if seed is not None:
        startup.random_seed = seed
    with static_mode(), static.program_guard(main, startup):
        parameters = network(initializer).parameters()
    values = []
    for _ in range(runs):
        static.Executor().run(startup, scope=scope)
        values.append([scope.value(p.name).copy() for p in parameters])
    return values


@pytest.mark.parametrize("initializer", RANDOM)
def test_a_seed_gives_the_same_values_eagerly_and_in_programs_and_another_seed_others(initializer: Any):
    def eagerly(seed: int) -> list[np.ndarray]:
        app.seed(seed)
        return [p.numpy() for p in network(initializer).parameters()]

    first, *others = eagerly(11), *values_in_program(initializer, 11, runs=2)
    for values in others:
        for value, expected in zip(values, first, strict=True):
            np.testing.assert_array_equal(value, expected)
    assert not np.array_equal(eagerly(12)[0], first[0])
    assert not np.array_equal(first[2][:5, :4], first[0][:5, :4])  # the next parameter after one seed


def test_narrower_types_round_the_same_numbers():
    wide = first_values(init.Normal(), dtype="float64")
    for narrow in ("float16", "float32"):
        np.testing.assert_array_equal(first_values(init.Normal(), dtype=narrow), wide.astype(narrow))


def test_linear_and_fc_begin_with_xavier_uniform_weights_and_zero_biases():
    app.seed(2)
    layer = nn.Linear(6, 5)
    np.testing.assert_array_equal(layer.weight.numpy(), first_values(init.XavierUniform(), [6, 5], seed=2))
    assert not layer.bias.numpy().any()
    main, startup, scope = static.Program(), static.Program(), static.Scope()
    startup.random_seed = 2
    with static.program_guard(main, startup):
        static.nn.fc(static.data("x", [-1, 6]), 5)
    static.Executor().run(startup, scope=scope)
    np.testing.assert_array_equal(scope.value(main.all_parameters()[0].name), layer.weight.numpy())


def test_a_startup_program_without_a_seed_follows_the_global_one():
    app.seed(5)
    first, second = values_in_program(init.Normal(), None, runs=2)
    assert not np.array_equal(first[0], second[0])
    app.seed(5)
    (again,) = values_in_program(init.Normal(), None)
    np.testing.assert_array_equal(first[0], again[0])


# Called with a Tensor

EVERY = [*RANDOM, init.Constant(1.5), init.Assign(np.ones((4, 3)))]


@pytest.mark.parametrize("initializer", EVERY)
@pytest.mark.parametrize("make", [app.zeros, nn.create_parameter])
def test_an_initializer_fills_a_tensor(initializer: Any, make: Any):
    expected = first_values(initializer, [4, 3])
    assert expected.any()
    tensor = make([4, 3])
    shared, version = tensor.detach(), tensor.inplace_version
    app.seed(0)
    assert initializer(tensor) is None
    np.testing.assert_array_equal(shared.numpy(), expected)
    assert tensor.inplace_version == version + 1


def test_a_traced_function_fills_a_tensor_whenever_it_runs():
    tensor = app.zeros([4])

    @app.jit.to_static(backend="reference")
    def fill(x: Any) -> Any:
        init.Uniform()(tensor)
        return tensor + x

    results = [fill(app.zeros([4])).tolist() for _ in range(2)]
    assert results[0] != results[1] == tensor.tolist()


# Errors


@pytest.mark.parametrize("initializer", RANDOM)
def test_random_whole_numbers_are_an_error(initializer: Any):
    message = f"{type(initializer).__name__} draws floating numbers, which int64 cannot hold"
    for fill in (lambda: initializer(app.zeros([2, 3], "int64")), lambda: first_values(initializer, dtype="int64")):
        with pytest.raises(DtypeError, match=message):
            fill()


def test_wrong_arguments_are_errors():
    for array in (np.zeros((3, 2)), np.zeros(6), np.zeros((2, 3, 1)), 0.0):
        with pytest.raises(ShapeError, match=r"Assign has an array of shape .*, the parameter has shape \[2, 3\]"):
            first_values(init.Assign(array), [2, 3])
    with pytest.raises(OperatorError, match=r"Uniform: a Variable has no values.*create_parameter"):
        init.Uniform()(static.data("x", [2, 3]))


def test_the_third_argument_of_create_parameter_is_the_name_as_in_paddle():
    gain = app.create_parameter([2], "float32", "gain", nn.ParamAttr(trainable=False), False, init.Constant(3.0))
    assert (gain.name, gain.tolist(), gain.trainable) == ("gain", [3.0, 3.0], False)
    with pytest.raises(AppError, match=r"its third argument, the name, is text, found .*; write attr="):
        app.create_parameter([2], "float32", init.Constant(3.0))


def test_the_first_initializer_of_a_shared_parameter_counts():
    main, startup, scope = static.Program(), static.Program(), static.Scope()
    with static_mode(), static.program_guard(main, startup):
        for attr in (nn.ParamAttr("shared", init.Constant(3.0)), "shared", nn.ParamAttr("shared")):
            nn.create_parameter([2], attr=attr)
        with pytest.raises(ProgramError, match="variable shared exists already as"):
            nn.create_parameter([3], attr="shared")
    static.Executor().run(startup, scope=scope)
    assert scope.values["shared"].tolist() == [3.0, 3.0]
