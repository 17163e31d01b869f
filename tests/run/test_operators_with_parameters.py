"""The shelf in training: every engine trains with it, and what has parameters has its own in each hidden layer."""

import numpy as np
import pytest
from safetensors.numpy import load_file

import app
from app import static
from app.custom.lookup import SHIPPED, on_the_shelf, values_taken
from app.run.config import load_config
from app.run.network import find_activation, model_for_use

pytestmark = pytest.mark.slow

ACTIVATIONS = [name for name in SHIPPED if len(values_taken(on_the_shelf(f"custom.{name}"))) < 2]
TELLING = ("legendre3", "prelu", "tap")
"""A `Function` of PyTorch's kind, a layer with a parameter, and a function on arrays with settings."""
SLOPES = ["activations.0.slope", "activations.1.slope"]
OPERATORS = """
import app

class Scaled(app.nn.Layer):
    def __init__(self, start=2.0):
        super().__init__()
        self.scale = self.create_parameter([1], default_initializer=app.nn.initializer.Constant(start))

    def forward(self, x):
        return app.relu(x) * self.scale

class Needy(Scaled):
    def __init__(self, start):
        super().__init__(start)

shared = Scaled()

class Normed(app.nn.Layer):
    def __init__(self):
        super().__init__()
        self.norm = app.nn.BatchNorm1D(5)

    def forward(self, x):
        return app.relu(self.norm(x))

class Dropping(app.nn.Layer):
    def __init__(self):
        super().__init__()
        self.dropout = app.nn.Dropout(0.5)

    def forward(self, x):
        return self.dropout(app.relu(x))
"""


@pytest.fixture(autouse=True)
def _operators(tmp_path):
    (tmp_path / "my_ops.py").write_text(OPERATORS)


def weights_of(run, operator):
    assert run.status == 0
    return load_file(run.folder / f"weights-{operator.replace(':', '-')}.safetensors")


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(f"custom.{n}", marks=() if n in TELLING else pytest.mark.soak, id=n) for n in ACTIVATIONS),
        pytest.param("my_ops.py:Normed", id="running statistics, which nobody trains"),
    ],
)
def test_engines_train_alike_with_every_operator_on_the_shelf(train, name):
    hidden = "model.hidden=[5]" if name == "my_ops.py:Normed" else "model.hidden=[5,4]"
    words = (f"model.activation={name}", "baseline=null", "data.pixel_range=[0,1]", hidden)
    runs = [train(*words, f"engine={engine}", folder=engine) for engine in ("reference", "eager")]
    assert [run.status for run in runs] == [0, 0]
    for event, key in (("iteration", "loss"), ("epoch", "test_loss")):
        ours, theirs = (run.column(name, event, key) for run in runs)
        assert ours == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize("engine", ["reference", "eager"])
def test_each_hidden_layer_has_trained_and_saved_parameters_of_its_own(train, engine):
    run = train("model.activation=custom.prelu", "model.hidden=[5,4]", "train.learning_rate=0.5", f"engine={engine}")
    weights = weights_of(run, "custom.prelu")
    assert [name for name in weights if "slope" in name] == SLOPES
    assert len({0.25, *(weights[name].item() for name in SLOPES)}) == 3
    config = load_config(run.folder / "config.yaml")
    model = model_for_use(config, find_activation("custom.prelu"), 12, weights)
    assert any(np.array_equal(value, weights[SLOPES[0]]) for value in model.values.values())


def test_networks_with_and_without_parameters_of_an_operator_start_from_the_same_weights(train):
    run = train("model.activation=custom.prelu", "train.learning_rate=1e-30")
    ours, theirs = weights_of(run, "custom.prelu"), weights_of(run, "relu")
    assert set(ours) - set(theirs) == {SLOPES[0]}
    assert all(np.allclose(ours[name], theirs[name], rtol=0, atol=1e-20) for name in theirs)


@pytest.mark.parametrize("engine", ["reference", "eager"])
def test_a_layer_that_drops_values_in_training_drops_none_in_a_test(train, engine):
    run = train("model.activation=my_ops.py:Dropping", f"engine={engine}", "train.learning_rate=1e-30")
    dropping, whole = (run.column(name, "epoch", "test_loss") for name in ("my_ops.py:Dropping", "relu"))
    assert dropping == pytest.approx(whole, rel=1e-6)


@pytest.mark.parametrize("engine", ["reference", "eager"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Needy", "my_ops.py:Needy raised TypeError: Needy.__init__() missing 1 required positional argument: 'start'"),
        ("shared", "my_ops.py:shared is one Scaled, whose parameters all hidden layers would share; name a class of"),
    ],
)
def test_an_operator_that_cannot_be_made_for_each_layer_is_an_error(train, name, message, engine):
    run = train(f"model.activation=my_ops.py:{name}", f"engine={engine}")
    assert run.status == 1
    assert message in run.err
    assert not run.folder.exists()


def test_a_fully_connected_layer_of_a_program_makes_the_parameter_of_its_activation():
    x = static.data("x", [None, 3])
    y = static.nn.fc(x, 2, activation="custom.prelu")
    app.optimizer.SGD(learning_rate=0.1).minimize(app.mean(y))
    program = static.default_main_program()
    assert sorted(len(p.shape) for p in program.all_parameters()) == [1, 1, 2]
    executor = static.Executor()
    executor.run(static.default_startup_program())
    array = -np.ones([4, 3], "float32")
    before, after = (executor.run(feed={"x": array}, fetch_list=[y])[0] for _ in range(2))
    assert after.mean() < before.mean()
