"""Operators whose result has another width than their input, in training on every engine, prediction and export."""

import re
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from as_python import uncompiled
from PIL import Image
from runs_of_train import QUICK_END

import app
from app.__main__ import main
from app.data import load
from app.experiment.results import Result
from app.experiment.train_command import main as train_py
from app.run.activation import find_activation
from app.run.config import ModelConfig
from app.run.layers import Conv, Dense
from app.run.network import Network

__all__ = ["uncompiled"]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("uncompiled")]

OPERATORS = """
import numpy as np
import app

# maxout of pairs: a function on arrays
@app.custom_op(row_by_row=True)
def maxout(x):
    return x.reshape(len(x), -1, 2).max(axis=2)

@maxout.backward
def maxout_grad(x, y, dy):
    pairs = x.reshape(len(x), -1, 2)
    first = pairs[:, :, 0] >= pairs[:, :, 1]
    return np.stack([dy * first, dy * ~first], axis=2).reshape(x.shape)

def glu(x):
    a, b = app.split(x, 2, axis=1)
    return a * app.sigmoid(b)

class Pooled(app.nn.Layer):
    # log-sum-exp of each four, with a learned temperature
    def __init__(self):
        super().__init__()
        self.scale = self.create_parameter([1])

    def forward(self, x):
        e = app.exp(x * (1.0 + self.scale))
        return app.log(app.sum(app.reshape(e, [-1, x.shape[1] // 4, 4]), axis=2))

class Squared(app.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return app.sum(x * x, axis=1, keepdim=True)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        return 2.0 * x * dy

def pooled_image(x):
    return app.mean(x, axis=[2, 3])

def over_the_batch(x):
    return app.sum(x, axis=0, keepdim=True)

def no_value(x):
    return app.sum(x, axis=1)

@app.custom_op(infer=lambda x: x)
def by_the_batch(x):
    return x if len(x) > 4 else x[:, :2]

by_the_batch.backward(lambda x, dy: dy)
"""
WIDTHS = {"maxout": 4, "glu": 4, "Pooled": 2, "Squared": 1}
ENGINES = ("reference", "eager")


@pytest.fixture(autouse=True)
def _operators(tmp_path):
    (tmp_path / "my_ops.py").write_text(OPERATORS)


@pytest.mark.parametrize("name", WIDTHS)
def test_the_next_layer_has_the_width_of_the_result_on_every_engine(train, name):
    engines = (*ENGINES, "compiled") if name == "Squared" else ENGINES
    words = (f"model.activation=my_ops.py:{name}", "baseline=null", "model.hidden=[8,8]")
    first = ("check=true", "costs=true")
    runs = [train(*words, f"engine={e}", *(first if e == "reference" else ()), folder=e) for e in engines]
    assert [(run.status, run.err) for run in runs] == [(0, "")] * len(engines)
    note = f"Note: operators in the network of my_ops.py:{name} make {WIDTHS[name]} of 8 values."
    assert all(note in run.out for run in runs)
    losses = [run.column(f"my_ops.py:{name}", "iteration", "loss") for run in runs]
    for other in losses[1:]:
        assert other == pytest.approx(losses[0], rel=1e-4)


def test_compare_predict_and_export_work_with_another_width(tmp_path, images, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    quick = ["--config", "quick", "model.hidden=[16]", "engine=reference", *QUICK_END]
    short = ["train.epochs=1", "train.batch_size=8", f"data.source={images}"]
    assert main(["compare", *quick, *short, "--with", "relu,my_ops.py:glu", "--seeds", "1"]) == 0
    assert train_py([*quick, "model.activation=my_ops.py:glu", "baseline=my_ops.py:maxout", "output=run"]) == 0
    data = load("sample")
    run = Result(Path("run"), custom_ops=["my_ops.py"])
    for operator in run:
        assert (run[operator].predict(data.test_images) == data.test_labels).mean() > 0.7
    Image.fromarray(data.test_images[0].reshape(28, 28)).save("digit.png")
    capsys.readouterr()
    assert main(["predict", "run", "digit.png", "--custom-op", "my_ops.py"]) == 0
    assert capsys.readouterr().out.startswith(f"digit.png  {data.test_labels[0]}")
    assert main(["export", "run", "--to", "onnx", "--custom-op", "my_ops.py"]) == 0
    scores = onnxruntime.InferenceSession("run/model.onnx").run(None, {"image": data.test_images})[0]
    assert (scores.argmax(1) == data.test_labels).mean() > 0.7


def test_image_layers_and_a_change_of_the_number_of_axes_are_inferred(tmp_path):
    operators = f"{tmp_path}/my_ops.py:"
    config = ModelConfig(layers=(Conv(channels=6, kernel=3, activation=f"{operators}pooled_image"), Dense(units=4)))
    network = Network(config, find_activation(f"{operators}maxout"), (9, 8), (0.0, 1.0))
    assert network.shapes == [((6, 7, 6), (6,)), ((4,), (2,))]
    assert [tuple(layer.weight.shape) for layer in network.layers][1:] == [(6, 4), (2, 10)]
    assert network(app.to_tensor(np.zeros((3, 72), np.uint8))).shape == [3, 10]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("over_the_batch", r"over_the_batch made shape \[1, 8\] of shape \[(-1|8), 8\]; .* keeps the number of rows"),
        ("no_value", r"no_value made shape \[(-1|8)\] of shape \[(-1|8), 8\]; .* makes at least one value of each"),
        ("by_the_batch", r"returned shape \[4, 2\] for a batch of 4|made shape \[8, 8\] of shape .* \[8, 2\] when the"),
    ],
)
@pytest.mark.parametrize("engine", ["reference", "eager"])
def test_an_operator_that_does_not_keep_the_rows_is_refused(train, name, message, engine):
    run = train(f"model.activation=my_ops.py:{name}", "baseline=null", "model.hidden=[8]", f"engine={engine}")
    assert run.status == 1
    assert re.search(message, run.err)


def test_the_weights_of_other_layers_do_not_change(tmp_path):
    """The width is found without drawing from the streams of the initial weights."""
    config = ModelConfig(hidden=(8, 8))

    def weights(operator):
        app.seed(3)
        network = Network(config, find_activation(operator), 12, (0.0, 1.0))
        return [parameter.numpy() for parameter in network.layers.parameters()]

    for one, other in zip(weights("relu"), weights("custom.prelu"), strict=True):
        np.testing.assert_array_equal(one, other)
