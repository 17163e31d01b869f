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


TELLING = ("legendre3", "prelu", "tap")
"""A `Function` of PyTorch's kind, a layer with a parameter, and a function on arrays with settings."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in TELLING else [pytest.mark.soak]) for name in ACTIVATIONS]
)
def test_engines_train_alike_with_every_operator_on_the_shelf(train, name):
    words = (f"model.activation=custom.{name}", "baseline=null", "model.hidden=[5,4]", "data.pixel_range=[0,1]")
    runs = [train(*words, f"engine={engine}", folder=engine) for engine in ("reference", "eager")]
    assert [run.status for run in runs] == [0, 0]
    losses = [run.column(f"custom.{name}", "iteration", "loss") for run in runs]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


@pytest.mark.parametrize("engine", ["reference", "eager"])
def test_each_hidden_layer_has_parameters_of_its_own_which_are_trained_and_saved(train, engine):
    words = ("model.activation=custom.prelu", "baseline=null", "model.hidden=[5,4]", "train.learning_rate=0.5")
    run = train(*words, f"engine={engine}")
    assert run.status == 0
    weights = load_file(run.folder / "weights-custom.prelu.safetensors")
    assert [name for name in weights if "slope" in name] == SLOPES
    first, second = (weights[name].item() for name in SLOPES)
    assert len({0.25, first, second}) == 3


def test_networks_with_and_without_parameters_of_an_operator_start_from_the_same_weights(train):
    run = train("model.activation=custom.prelu", "train.learning_rate=1e-30")
    ours, theirs = (load_file(run.folder / f"weights-{n}.safetensors") for n in ("custom.prelu", "relu"))
    assert set(ours) - set(theirs) == {SLOPES[0]}
    assert all(np.allclose(ours[name], theirs[name], rtol=0, atol=1e-20) for name in theirs)


def test_the_network_for_use_has_the_parameters(train):
    run = train("model.activation=custom.prelu", "train.learning_rate=0.5")
    weights = load_file(run.folder / "weights-custom.prelu.safetensors")
    config = load_config(run.folder / "config.yaml")
    model = model_for_use(config, find_activation("custom.prelu"), 12, weights)
    assert any(np.array_equal(value, weights[SLOPES[0]]) for value in model.values.values())


def test_a_class_of_the_user_s_does_the_same(train, tmp_path):
    (tmp_path / "my_ops.py").write_text(OPERATORS)
    run = train("model.activation=my_ops.py:Scaled", "model.hidden=[5,4]")
    assert run.status == 0
    weights = load_file(run.folder / "weights-my_ops.py-Scaled.safetensors")
    assert {"activations.0.scale", "activations.1.scale"} < set(weights)


def test_a_layer_may_keep_running_statistics_which_nobody_trains(train, tmp_path):
    (tmp_path / "my_ops.py").write_text(OPERATORS)
    words = ("model.activation=my_ops.py:Normed", "model.hidden=[5]", "baseline=null")
    runs = [train(*words, f"engine={engine}", folder=engine) for engine in ("reference", "eager")]
    assert [run.status for run in runs] == [0, 0]
    for kind, what in (("iteration", "loss"), ("epoch", "test_loss")):
        ours, theirs = (run.column("my_ops.py:Normed", kind, what) for run in runs)
        assert ours == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize("engine", ["reference", "eager"])
def test_a_layer_that_drops_values_in_training_drops_none_in_a_test(train, tmp_path, engine):
    (tmp_path / "my_ops.py").write_text(OPERATORS)
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
def test_what_cannot_be_made_for_each_layer_is_told(train, tmp_path, name, message, engine):
    (tmp_path / "my_ops.py").write_text(OPERATORS)
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
