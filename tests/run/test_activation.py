"""Operators of every kind in training: users' files, the shelf, parameters and settings; and those that are refused."""

import numpy as np
import pytest
from as_python import uncompiled

import app
from app import static
from app.custom.lookup import SHIPPED, on_the_shelf, values_taken
from app.errors import ConfigError
from app.run.activation import find_activation
from app.run.config import load_config
from app.run.network import model_for_use
from app.run.weights import read_weights

__all__ = ["uncompiled"]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("uncompiled")]

OPERATORS = """
import numpy as np
from numba import njit
import app

def forward(x):
    return x / (1 + np.exp(-x))

def backward(x, dout):
    s = 1 / (1 + np.exp(-x))
    return dout * (s + x * s * (1 - s))

plain_function = app.custom_op(forward)
plain_function.backward(backward)

@njit
def one_by_one(x):
    y = np.empty_like(x)
    for i in range(x.size):
        y.flat[i] = x.flat[i] / (1 + np.exp(-x.flat[i]))
    return y

numba_function = app.custom_op(one_by_one)
numba_function.backward(backward)
of_one_number = app.custom_op(forward, elementwise=True)
of_one_number.backward(backward)

@app.custom_op
def leaky(x, slope=0.1):
    return np.where(x > 0, x, slope * x)

leaky.backward(lambda x, dout, slope: dout * np.where(x > 0, 1, slope))

class Layer(app.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * app.sigmoid(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        s = app.sigmoid(x)
        return dy * (s + x * s * (1 - s))

def of_values(x):
    return x * app.sigmoid(x)

def hooked(x):
    out = app.static.InputSpec.from_tensor(x)
    return app.static.py_func(forward, x, out=out, backward_func=lambda x, y, dy: backward(x, dy))

a_layer = app.nn.Silu()
not_one = 3

def nothing(x):
    pass

def raises(x):
    raise RuntimeError("boom")

def takes_two(x, y):
    return x + y

@njit
def undecorated(x):
    return np.maximum(x, 0)

@app.custom_op
def one_way(x):
    return np.sort(x)

class Needy(app.nn.Layer):
    def __init__(self, start):
        super().__init__()
        self.scale = self.create_parameter([1])

shared = Needy(2.0)

class Normed(app.nn.Layer):
    def __init__(self):
        super().__init__()
        self.norm = app.nn.BatchNorm1D(5)

    def forward(self, x):
        return app.relu(self.norm(x))

class Dropping(app.nn.Layer):
    def forward(self, x):
        return app.nn.functional.dropout(app.relu(x), 0.5, training=self.training)
"""
ENGINES = ("reference", "eager")


@pytest.fixture(autouse=True)
def _operators(tmp_path):
    (tmp_path / "my_ops.py").write_text(OPERATORS)


def weights(run, operator):
    assert run.status == 0, run.err
    return read_weights(run.folder)[operator].arrays


KINDS = ["plain_function", "numba_function", "of_one_number", "Layer", "of_values", "hooked", "a_layer"]


@pytest.mark.parametrize(
    ("name", "engine"), [*((name, "reference") for name in KINDS), ("plain_function", "eager"), ("Layer", "eager")]
)
def test_every_kind_of_operator_trains_like_the_built_in_one(train, name, engine):
    custom = f"my_ops.py:{name}"
    run = train(f"model.activation={custom}", "baseline=silu", f"engine={engine}")
    losses = run.column(custom, "iteration", "loss")
    assert losses == pytest.approx(run.column("silu", "iteration", "loss"), rel=1e-5)
    assert weights(run, custom).keys() == weights(run, "silu").keys()


TELLING = ("legendre3", "prelu", "tap")
"""A `Function` of PyTorch's kind, a layer with a parameter, and a function on arrays with settings."""


@pytest.mark.parametrize(
    "name",
    [
        *(
            pytest.param(f"custom.{name}", marks=() if name in TELLING else pytest.mark.soak)
            for name in SHIPPED
            if len(values_taken(on_the_shelf(f"custom.{name}"))) < 2
        ),
        "my_ops.py:Normed",  # which has running statistics
    ],
)
def test_engines_train_alike_with_every_operator_on_the_shelf(train, name):
    hidden = "model.hidden=[5]" if name == "my_ops.py:Normed" else "model.hidden=[5,4]"
    words = (f"model.activation={name}", "baseline=null", "data.pixel_range=[0,1]", hidden)
    runs = [train(*words, f"engine={engine}", folder=engine) for engine in ENGINES]
    assert [run.status for run in runs] == [0, 0]
    for event, key in (("iteration", "loss"), ("epoch", "test_loss")):
        ours, theirs = (run.column(name, event, key) for run in runs)
        assert ours == pytest.approx(theirs, rel=1e-4)


# --- Operators with parameters, modes and settings ---


@pytest.mark.parametrize("engine", ENGINES)
def test_each_hidden_layer_trains_and_saves_parameters_of_its_own(train, engine):
    words = ("model.activation=custom.prelu", "model.hidden=[5,4]", f"engine={engine}")
    run = train(*words, "train.learning_rate=0.5")
    trained, slopes = weights(run, "custom.prelu"), ["activations.0.slope", "activations.1.slope"]
    assert sorted(name for name in trained if "slope" in name) == slopes
    assert len({0.25, *(trained[name].item() for name in slopes)}) == 3
    model = model_for_use(load_config(run.folder / "config.yaml"), find_activation("custom.prelu"), 12, trained)
    assert any(np.array_equal(value, trained[slopes[0]]) for value in model.values.values())
    first = train(*words, "train.learning_rate=1e-30", folder="first")
    ours, theirs = weights(first, "custom.prelu"), weights(first, "relu")
    assert set(ours) - set(theirs) == set(slopes)
    assert all(np.allclose(ours[name], theirs[name], rtol=0, atol=1e-20) for name in theirs)


def test_a_fully_connected_layer_of_a_program_makes_the_parameter_of_its_activation():
    y = static.nn.fc(static.data("x", [None, 3]), 2, activation="custom.prelu")
    app.optimizer.SGD(learning_rate=0.1).minimize(app.mean(y))
    assert sorted(len(p.shape) for p in static.default_main_program().all_parameters()) == [1, 1, 2]
    executor = static.Executor()
    executor.run(static.default_startup_program())
    array = -np.ones([4, 3], "float32")
    before, after = (executor.run(feed={"x": array}, fetch_list=[y])[0] for _ in range(2))
    assert after.mean() < before.mean()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_layer_that_drops_values_in_training_drops_none_in_a_test(train, engine):
    run = train("model.activation=my_ops.py:Dropping", f"engine={engine}", "train.learning_rate=1e-30")
    dropping, whole = (run.column(name, "epoch", "test_loss") for name in ("my_ops.py:Dropping", "relu"))
    assert dropping == pytest.approx(whole, rel=1e-6)


def test_an_operator_may_be_named_with_its_settings(train):
    custom, built_in = "my_ops.py:leaky(slope=0.5)", "leaky_relu(negative_slope=0.5)"
    run = train(f"model.activation={custom}", f"baseline={built_in}", "train.learning_rate=0.1")
    plain = train("model.activation=my_ops.py:leaky", "baseline=null", folder="plain")
    actual, expected, others = weights(run, custom), weights(run, built_in), weights(plain, "my_ops.py:leaky")
    assert all(np.allclose(actual[name], expected[name], atol=1e-6) for name in expected)
    assert not np.array_equal(actual["layers.0.weight"], others["layers.0.weight"])


# --- Errors ---

HINT = "; a function on NumPy arrays becomes an operator with @opsmith.custom_op"
ERRORS = {
    "my_ops.py:nothing": f"my_ops.py:nothing made a NoneType of a VALUE, expected a VALUE{HINT}\n",
    "my_ops.py:raises": "my_ops.py:raises raised RuntimeError: boom",
    "my_ops.py:takes_two": "takes_two raised TypeError: takes_two() missing 1 required positional argument: 'y'",
    "my_ops.py:undecorated": "my_ops.py:undecorated raised TypingError: ",
    "my_ops.py:one_way": "one_way (my_ops.py:69) has no backward, and none can be derived",
    "my_ops.py:not_one": "my_ops.py:not_one is int, expected an operator or a function of one value",
    "my_ops.py:absent": "my_ops.py has no 'absent'",
    "my_ops.py:Needy": "Needy raised TypeError: Needy.__init__() missing 1 required positional argument: 'start'",
    "my_ops.py:shared": "my_ops.py:shared is one Needy, whose parameters all hidden layers would share; name a",
    "custom.leaky_relu(steepness=1)": "steepness",
}


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        *((name, "reference") for name in ERRORS),
        *((f"my_ops.py:{name}", "eager") for name in ("nothing", "one_way", "Needy", "shared")),
    ],
)
def test_an_unusable_operator_is_an_error_of_one_line_that_leaves_nothing(train, name, engine):
    run = train(f"model.activation={name}", f"engine={engine}")
    assert run.status in (1, 2)
    assert run.err.startswith("error: ")
    assert ERRORS[name].replace("VALUE", "Tensor" if engine == "eager" else "Variable") in run.err
    assert run.err.count("\n") == 1
    assert not run.folder.exists()
    if name == "my_ops.py:undecorated":
        assert run.err.endswith(f"{HINT}\n")


@pytest.mark.parametrize("name", ["relu(", "relu(1)", "relu(a=open('x'))", "relu(a=1)(b=2)", "relu(a=1", "relu)("])
def test_unreadable_settings_of_an_operator_are_refused(name):
    with pytest.raises(ConfigError):
        find_activation(name)
