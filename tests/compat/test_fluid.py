"""paddle.fluid: Paddle 1's names, parameters and shapes on Tensors and in Programs, and its training."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import app
from app.compat import fluid, paddle
from app.errors import OperatorError
from app.graph import Variable, defaults, names
from app.tensor import Tensor

layers = fluid.layers

A = np.array([[0.5, -2.0, 1.5], [3.0, 0.25, -1.0]], "float32")
P = np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]], "float32")
L = np.array([[2], [1]], "int64")

CALLS: dict[str, tuple[Callable[..., Any], np.ndarray, Any]] = {
    "mean": (lambda x: layers.mean(x), A, [A.mean()]),
    "reduce_sum": (lambda x: layers.reduce_sum(x), A, [A.sum()]),
    "reduce_sum dim": (lambda x: layers.reduce_sum(input=x, dim=1), A, A.sum(axis=1)),
    "reduce_mean": (lambda x: layers.reduce_mean(x, dim=[0], keep_dim=True), A, A.mean(axis=0, keepdims=True)),
    "reduce_max": (lambda x: layers.reduce_max(x, dim=-1), A, A.max(axis=-1)),
    "relu": (lambda x: layers.relu(x), A, np.maximum(A, 0)),
    "scale": (lambda x: layers.scale(x, scale=2.0, bias=1.0), A, 2 * A + 1),
    "elementwise_sub": (lambda x: layers.elementwise_sub(x, x * 2.0), A, -A),
    "softmax": (lambda x: layers.softmax(x), A, np.exp(A) / np.exp(A).sum(axis=1, keepdims=True)),
    "matmul": (lambda x: layers.matmul(x, x, transpose_y=True, alpha=0.5), A, A @ A.T / 2),
    "mul": (lambda x: layers.mul(layers.reshape(x, [2, 3, 1]), layers.reshape(x, [3, 2])), A, A @ A.reshape(3, 2)),
    "reshape": (lambda x: layers.reshape(x, shape=[-1, 2], act="relu"), A, np.maximum(A.reshape(3, 2), 0)),
    "transpose": (lambda x: layers.transpose(x, perm=[1, 0]), A, A.T),
    "concat": (lambda x: layers.concat(input=[x, x], axis=1), A, np.hstack([A, A])),
    "split": (lambda x: layers.split(x, num_or_sections=3, dim=1)[2], A, A[:, 2:]),
    "expand": (lambda x: layers.expand(x, [1, 2]), A, np.tile(A, [1, 2])),
    "unsqueeze": (lambda x: layers.unsqueeze(input=x, axes=[1]), A, A[:, None]),
    "squeeze": (lambda x: layers.squeeze(layers.unsqueeze(x, [0]), axes=[0]), A, A),
    "flatten": (lambda x: layers.flatten(layers.reshape(x, [2, 3, 1]), axis=2), A, A.reshape(6, 1)),
    "slice": (lambda x: layers.slice(x, axes=[1], starts=[1], ends=[3]), A, A[:, 1:3]),
    "cast": (lambda x: layers.cast(x, "int32"), A, A.astype("int32")),
    "argmax": (lambda x: layers.argmax(x, axis=1), A, A.argmax(axis=1)),
    "topk": (lambda x: layers.topk(x, k=1)[0], A, A.max(axis=1, keepdims=True)),
    "argsort": (lambda x: layers.argsort(x, axis=1)[0], A, np.sort(A, axis=1)),
    "sums": (lambda x: layers.sums([x, x, x]), A, 3 * A),
    "one_hot": (lambda x: layers.one_hot(x, depth=3), L, np.eye(3)[L[:, 0]]),
    "pool2d": (
        lambda x: layers.pool2d(layers.reshape(x, [1, 1, 2, 3]), [2, 1], "max", 1),
        A,
        A.max(0)[None, None, None],
    ),
    "pool2d mean": (
        lambda x: layers.pool2d(layers.reshape(x, [1, 1, 2, 3]), pool_type="avg", global_pooling=True),
        A,
        A.mean().reshape(1, 1, 1, 1),
    ),
    "square_error_cost": (lambda x: layers.square_error_cost(x, x * 3.0), A, (2 * A) ** 2),
}


@pytest.fixture(autouse=True)
def _own_programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(defaults, "_static", None)
    with names.guard(), fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        yield


def run(fetch: Any, **feed: np.ndarray) -> np.ndarray:
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=[fetch])[0]


def eager_and_in_program(call: Callable[..., Any], *given: np.ndarray) -> list[np.ndarray]:
    """What a function gives for Tensors, and fetched from a Program."""
    with fluid.dygraph.guard():
        eager = call(*map(fluid.dygraph.to_variable, given))
    assert isinstance(eager, Tensor)
    out = call(*(fluid.data(f"x{i}", array.shape, array.dtype) for i, array in enumerate(given)))
    assert isinstance(out, Variable)
    assert tuple(out.shape) == tuple(eager.shape)
    return [eager.numpy(), run(out, **{f"x{i}": array for i, array in enumerate(given)})]


def test_increment_changes_its_argument_as_in_paddle():
    count, whole, x = (paddle.to_tensor(v) for v in ([1.0], [1], [3.0]))
    same = count
    assert paddle.increment(count, 2.0) is count is same
    paddle.increment(whole)
    assert (count.tolist(), whole.tolist()) == ([3.0], [2])
    x.stop_gradient = False
    y = x * 2
    paddle.increment(y)
    (y * y).backward()
    assert x.grad.tolist() == [28.0]

    def doubled(x: Any) -> Any:
        steps = paddle.zeros([1])
        while steps < 5:
            x = x * 2
            paddle.increment(steps)
        return x, steps

    assert [v.tolist() for v in paddle.jit.to_static(doubled)(paddle.to_tensor([1.0]))] == [[32.0], [5.0]]
    with pytest.raises(AttributeError, match="increment"):
        paddle.to_tensor([1.0]).increment()


@pytest.mark.parametrize("name", CALLS)
def test_a_layer_gives_the_same_for_tensors_and_in_a_program(name: str):
    call, array, expected = CALLS[name]
    for found in eager_and_in_program(call, array):
        assert found.shape == np.shape(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda y: layers.assign(np.array([7.0], "float32"), output=y), 7.0),
        (lambda y: layers.fill_constant([1], "float32", 5.0, out=y), 5.0),
        (lambda y: layers.sums([y, y, y], out=y), 6.0),
    ],
)
def test_functions_write_into_their_output(call: Callable[[Any], Any], expected: float):
    def function(x: Any) -> Any:
        y = layers.scale(x, 1.0)
        assert call(y) is y
        return y

    assert [found.tolist() for found in eager_and_in_program(function, np.array([2.0], "float32"))] == [[expected]] * 2


@pytest.mark.parametrize(
    "draw",
    [
        lambda seed: layers.uniform_random([4], seed=seed),
        lambda seed: layers.gaussian_random([4], seed=seed),
        lambda seed: layers.dropout(layers.ones([64], "float32"), 0.5, seed=seed),
    ],
)
def test_functions_draw_from_the_seed_given(draw: Callable[[int], Any]):
    drawn = [eager_and_in_program(partial(draw, seed)) for seed in (3, 3, 4, 0, 0)]
    for first, again, other, unseeded, anew in zip(*drawn, strict=True):
        assert first.tolist() == again.tolist() != other.tolist()
        assert unseeded.tolist() != anew.tolist()


def test_losses_of_probabilities_and_of_scores():
    p, label = fluid.data("p", [None, 3]), fluid.data("label", [None, 1], "int64")
    expected = -np.log(np.take_along_axis(P, L, axis=1))
    np.testing.assert_allclose(run(layers.cross_entropy(input=p, label=label), p=P, label=L), expected, rtol=1e-5)
    loss, softmax = layers.softmax_with_cross_entropy(layers.log(p), label, return_softmax=True)
    np.testing.assert_allclose(run(loss, p=P, label=L), expected, rtol=1e-5)
    np.testing.assert_allclose(run(softmax, p=P, label=L), P, rtol=1e-5)
    assert run(layers.accuracy(input=p, label=label), p=P, label=L).tolist() == [1.0]
    with pytest.raises(OperatorError, match="correct= and total= are not stored here; fetch the accuracy and count"):
        layers.accuracy(input=p, label=label, total=label)


@pytest.mark.parametrize("shape", [[3], [-1, 3], [None, 3]])
def test_layers_data_adds_a_batch_axis_to_known_shapes(shape: list):
    assert layers.data(name="x", shape=shape, dtype="float32").shape == (-1, 3)
    assert layers.data(name="y", shape=[4, 3], append_batch_size=False).shape == (4, 3)


def test_created_values_are_variables_outside_of_dygraph():
    made = [layers.fill_constant([2], "float32", 3.0), layers.ones([1], "int64"), layers.uniform_random([2, 2])]
    assert all(isinstance(value, Variable) for value in made)
    with fluid.dygraph.guard():
        assert layers.zeros([2], "float32").tolist() == [0.0, 0.0]
        assert isinstance(layers.assign(np.ones(2, "float32")), Tensor)
        drawn = layers.uniform_random([100]).numpy()
        assert -1 <= drawn.min() < 0 < drawn.max() <= 1


@pytest.mark.parametrize(
    ("make", "low", "high"),
    [
        (lambda: fluid.initializer.Constant(0.25), 0.25, 0.25),
        (lambda: fluid.initializer.Uniform(2.0, 3.0, seed=1), 2.0, 3.0),
        (lambda: fluid.initializer.Normal(loc=7.0, scale=0.001), 6.9, 7.1),
        (lambda: fluid.initializer.Xavier(uniform=True), -1.0, 1.0),
        (lambda: fluid.initializer.MSRA(uniform=False), -9.0, 9.0),
    ],
)
def test_an_initializer_makes_the_first_values(make: Callable[[], Any], low: float, high: float):
    layers.fc(input=fluid.data("x", [None, 4]), size=3, param_attr=fluid.ParamAttr(name="w", initializer=make()))
    fluid.Executor().run(fluid.default_startup_program())
    values = fluid.global_scope().value("w")
    assert low <= values.min() <= values.max() <= high


@pytest.mark.parametrize("name", ["Uniform", "Normal", "Xavier", "MSRA", "TruncatedNormal"])
def test_initialisers_draw_from_the_seed_given(name: str):
    def numbers(seed: int) -> Any:
        attribute = fluid.ParamAttr(initializer=getattr(fluid.initializer, name)(seed=seed))
        return app.create_parameter([3, 2], "float32", attr=attribute).tolist()

    assert numbers(3) == numbers(3)
    assert numbers(3) != numbers(4)
    assert numbers(0) != numbers(0)


@pytest.mark.parametrize("name", [n for n in fluid.optimizer.__all__ if n.endswith("Optimizer")])
def test_an_optimizer_makes_a_loss_smaller(name: str):
    settings = {"momentum": 0.9} if name == "MomentumOptimizer" else {}
    make = getattr(fluid.optimizer, name)
    optimizer = make(learning_rate=0.05, regularization=fluid.regularizer.L2Decay(1e-4), **settings)
    x = fluid.data("x", [None, 3])
    loss = layers.mean(layers.square(layers.fc(x, 2)))
    optimizer.minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    losses = [exe.run(feed={"x": A}, fetch_list=[loss])[0].item() for _ in range(5)]
    assert losses[-1] < losses[0]


def test_a_layer_is_trained_in_the_dynamic_mode_and_saved(tmp_path: Path):
    with fluid.dygraph.guard():
        layer = fluid.dygraph.Linear(3, 2, act="tanh")
        optimizer = fluid.optimizer.Adam(learning_rate=0.01, parameter_list=layer.parameters())
        x = fluid.dygraph.to_variable(A)
        loss = layers.reduce_mean(layers.square(layer(x)))
        loss.backward()
        optimizer.minimize(loss)
        layer.clear_gradients()
        for state in (layer.state_dict(), optimizer.state_dict()):
            fluid.dygraph.save_dygraph(state, str(tmp_path / "net"))
        parameters, remembered = fluid.dygraph.load_dygraph(str(tmp_path / "net"))
        other = fluid.dygraph.Linear(3, 2, act="tanh")
        other.set_dict(parameters)
        np.testing.assert_array_equal(other(x).numpy(), layer(x).numpy())
    assert remembered.keys() == optimizer.state_dict().keys()


def test_values_and_networks_are_saved_in_folders(tmp_path: Path):
    out = layers.fc(fluid.data("x", [None, 3]), 2, act="softmax")
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    (expected,) = exe.run(feed={"x": A}, fetch_list=[out])
    folder = str(tmp_path)
    fluid.io.save_params(exe, folder)
    fluid.io.save_persistables(exe, folder, filename="all")
    assert fluid.io.save_inference_model(folder, ["x"], [out], exe) == [out.name]
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_params(exe, folder)
        np.testing.assert_array_equal(exe.run(feed={"x": A}, fetch_list=[out])[0], expected)
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(exe, folder, filename="all")
        np.testing.assert_array_equal(exe.run(feed={"x": A}, fetch_list=[out])[0], expected)
    with fluid.scope_guard(fluid.Scope()):
        program, feed, fetch = fluid.io.load_inference_model(folder, exe)
        np.testing.assert_array_equal(exe.run(program, feed={feed[0]: A}, fetch_list=fetch)[0], expected)


def test_a_fetched_value_of_one_element_is_a_number():
    x = fluid.data("x", [None, 2])
    fetched = run(layers.mean(x), x=A[:, :2])
    assert fetched.shape == (1,)
    assert float(fetched) == pytest.approx(float(A[:, :2].mean()))
    assert f"{float(fetched):.2f}" == "%.2f" % fetched  # noqa: UP031 - as old programs print
    assert int(run(layers.reduce_sum(x), x=A[:, :2])) == int(A[:, :2].sum())
    with pytest.raises(ValueError, match="size 1"):
        float(run(x, x=A[:, :2]))


def test_networks_of_images_have_the_shapes_of_paddle_1():
    image = layers.data("image", [1, 12, 12])
    pooled = fluid.nets.simple_img_conv_pool(image, 4, 5, pool_size=2, pool_stride=2, act="relu")
    normal = layers.batch_norm(layers.conv2d(pooled, 3, 3, padding=1, bias_attr=False), act="tanh")
    assert (tuple(pooled.shape), tuple(normal.shape)) == ((-1, 4, 4, 4), (-1, 3, 4, 4))
    loss = layers.mean(layers.fc(normal, 2))
    fluid.optimizer.SGD(0.1).minimize(loss)
    first = run(loss, image=np.ones((5, 1, 12, 12), "float32"))
    assert first.shape == (1,)


def test_layers_of_images_have_the_settings_of_paddle_1():
    of_images = fluid.dygraph.nn
    with fluid.dygraph.guard():
        x = fluid.dygraph.to_variable(np.ones((2, 3, 8, 8), "float32"))
        y = of_images.BatchNorm(4, act="relu")(of_images.Conv2D(3, 4, 3, padding=1, act="sigmoid")(x))
        assert of_images.Pool2D(2, "max", 2)(y).shape == [2, 4, 4, 4]
        assert of_images.Pool2D(pool_type="avg", global_pooling=True)(y).shape == [2, 4, 1, 1]
        with pytest.raises(OperatorError, match="pool_type must be 'max' or 'avg', found 'sum'"):
            of_images.Pool2D(2, "sum")
        with pytest.raises(OperatorError, match="pool2d: data_format must be 'NCHW', found 'NHWC'"):
            of_images.Pool2D(global_pooling=True, data_format="NHWC")(x)


# Training

DECAYS: list[tuple[Callable[[], Any], list[float]]] = [
    (lambda: layers.exponential_decay(0.8, 2, 0.25), [0.8, 0.4, 0.2, 0.1]),
    (lambda: layers.exponential_decay(0.8, 2, 0.25, staircase=True), [0.8, 0.8, 0.2, 0.2]),
    (lambda: layers.natural_exp_decay(0.8, 2, 0.5), [0.8 * math.exp(-0.25 * n) for n in range(4)]),
    (lambda: layers.inverse_time_decay(0.8, 1, 1.0), [0.8, 0.4, 0.8 / 3, 0.2]),
    (lambda: layers.polynomial_decay(0.8, 4, 0.0), [0.8, 0.6, 0.4, 0.2]),
    (lambda: layers.piecewise_decay([1, 3], [0.3, 0.2, 0.1]), [0.3, 0.2, 0.2, 0.1]),
    (lambda: layers.cosine_decay(0.8, 2, 4), [0.8, 0.8, 0.4 + 0.4 * math.sqrt(0.5), 0.4 + 0.4 * math.sqrt(0.5)]),
    (lambda: layers.linear_lr_warmup(0.8, 2, 0.0, 0.4), [0.0, 0.2, 0.8, 0.8]),
]


@pytest.mark.parametrize(("decay", "rates"), DECAYS)
def test_the_rate_decays_with_every_run(decay: Callable[[], Any], rates: list[float]):
    x = fluid.data("x", [1], "float32")
    y = layers.fc(x, 1, bias_attr=False, param_attr=fluid.ParamAttr("w"))
    program = fluid.default_main_program()
    test_program = program.clone(for_test=True)
    fluid.optimizer.SGD(learning_rate=decay()).minimize(layers.mean(y))
    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(fluid.default_startup_program())
    weights, feed = [], {"x": np.ones(1, "float32")}
    for _ in range(5):
        weights.append(float(np.asarray(fluid.global_scope().values["w"]).item()))
        executor.run(test_program, feed=feed, fetch_list=[y])  # a run without a step leaves the rate
        executor.run(program, feed=feed)
    np.testing.assert_allclose(-np.diff(weights), rates, atol=1e-6)


def test_each_scope_counts_its_own_runs_of_a_decay_which_are_saved_and_loaded(tmp_path: Path):
    executor, program, feed = fluid.Executor(), fluid.default_main_program(), {"x": np.ones(1, "float32")}
    x, decay = fluid.data("x", [1], "float32"), layers.exponential_decay(1.0, 1, 0.5)
    for _ in range(2):  # of two optimizers, each is a step of its own parameters
        fluid.optimizer.SGD(decay).minimize(layers.mean(layers.fc(x, 1)))
    names = list(program.schedulers)

    def rates(count: int) -> list[list[float]]:
        found = [executor.run(program, feed, names) for _ in range(count)]
        return [[float(rate) for rate in some] for some in found]

    for _ in range(2):
        executor.run(fluid.default_startup_program())
        assert rates(3) == [[1.0, 1.0], [0.5, 0.5], [0.25, 0.25]]
    fluid.io.save_persistables(executor, str(tmp_path))
    assert rates(2) == [[0.125] * 2, [0.0625] * 2]
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(executor, str(tmp_path))
        assert rates(2) == [[0.125] * 2, [0.0625] * 2]
    assert rates(1) == [[0.03125] * 2]
    (file,) = tmp_path.iterdir()
    app.save({name: v for name, v in app.load(file).items() if "@STEP" not in name}, file)  # as earlier releases do
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(executor, str(tmp_path))
        assert rates(1) == [[0.015625] * 2]


def test_the_rate_decays_with_eager_steps():
    with fluid.dygraph.guard():
        w = fluid.dygraph.to_variable(np.ones(1, "float32"))
        w.stop_gradient = False
        optimizer = fluid.optimizer.SGD(layers.exponential_decay(0.5, 1, 0.5), parameter_list=[w])
        for _ in range(2):
            loss = layers.mean(w)
            loss.backward()
            optimizer.minimize(loss)
            optimizer.clear_gradients()
    np.testing.assert_allclose(w.numpy(), [0.25])


def test_metrics_average_over_batches():
    accuracy, average = fluid.metrics.Accuracy(), fluid.average.WeightedAverage()
    for value, size in ((0.5, 10), ([1.0], 30)):
        accuracy.update(value=value, weight=size)
        average.add(value, size)
    assert accuracy.eval() == average.eval() == 0.875


def test_embedding_removes_a_last_axis_of_one():
    ids = fluid.data("ids", [None, 1], "int64")
    assert tuple(layers.embedding(ids, size=[5, 3]).shape) == (-1, 3)
    assert tuple(fluid.embedding(ids, size=[5, 3]).shape) == (-1, 1, 3)


def test_a_padded_row_is_masked_once():
    ids = fluid.data("ids", [None, 2], "int64")
    app.static.nn.embedding(ids, [4, 3], padding_idx=0)
    assert [op.type for op in fluid.default_main_program().global_block().ops].count("not_equal") == 1
