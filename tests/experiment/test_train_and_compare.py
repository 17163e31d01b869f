"""`app.train` and `app.compare`: operators as objects, settings as keyword arguments."""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import app
from app.custom.lookup import on_the_shelf
from app.errors import AppError, ConfigError, GradcheckError, OperatorError

pytestmark = pytest.mark.slow

QUICK = {
    "source": "sample",
    "engine": "reference",
    "hidden": [4],
    "costs": False,
    "report": False,
    "epochs": 1,
    "batch_size": 250,
    "quiet": True,
}


@app.custom_op
def relu(x):
    return np.maximum(x, 0)


@relu.backward
def relu_grad(x, dy):
    return dy * (x > 0)


class Rectified(app.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return app.maximum(x, 0.0 * x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        return dy * (x > 0.0).astype(dy.dtype)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_an_operator_of_a_cell_trains_beside_the_built_in_one():
    cell = {"app": app, "np": np, "__name__": "__main__"}
    exec("def swish(x):\n    return x * app.sigmoid(x)\n", cell)
    result = app.train(cell["swish"], "silu", **QUICK)
    assert list(result.epochs) == ["swish", "silu"]
    one, other = (epochs[0][-1].test_accuracy for epochs in result.epochs.values())
    assert one == pytest.approx(other, abs=0.002)
    assert result.config.train.epochs == 1


def test_every_kind_of_operator_is_compared():
    result = app.compare([app.relu, relu, Rectified, "custom.relu"], seeds=1, **QUICK)
    names = list(result.epochs)
    assert names[0] == "relu"
    assert names[3] == "custom.relu"
    assert [name.rpartition(":")[2] for name in names[1:3]] == ["relu", "Rectified"]
    assert [difference.identical for difference in result.differences] == [True, True, True]


def test_a_layer_takes_its_own_operator_as_an_object():
    layers = [{"type": "dense", "units": 4, "activation": own} for own in (app.tanh, on_the_shelf("custom.relu"))]
    settings = {**QUICK, "layers": [*layers, {"type": "dense", "units": 4}]}
    run = app.train(relu, None, **settings)
    assert [getattr(layer, "activation", "") for layer in run.config.model.all_layers] == ["tanh", "custom.relu", True]
    assert run.metrics["test_accuracy"] > 0.1


def _layers(*own):
    return [*({"type": "dense", "units": 4, "activation": operator} for operator in own), {"type": "dense", "units": 4}]


def _doubled(x):
    return x * 2.0


@pytest.mark.parametrize("own", [relu, Rectified, _doubled], ids=["custom_op", "PyLayer", "function"])
def test_a_layer_takes_an_operator_of_ones_own(own):
    run = app.train("tanh", None, **QUICK, layers=_layers(own, "tanh"))
    again = app.train(own, "tanh", **QUICK, layers=_layers(own, app.tanh))
    assert getattr(run.config.model.all_layers[0], "activation", "") == again.operators[0]
    images = app.data.load("sample").test_images[:20]
    np.testing.assert_array_equal(again["tanh"].predict(images), run.predict(images))
    compared = app.compare(["tanh", "relu"], 1, **QUICK, layers=_layers(own, "tanh"))
    assert len(compared["tanh"].accuracies) == 1


def test_operators_of_a_session_in_layers_are_kept_as_source_and_asked_for_again():
    def swish(x):
        return x * app.sigmoid(x)

    def changed(x):
        return app.sigmoid(x)

    run = app.train("tanh", None, **QUICK, layers=_layers(swish))
    assert run.folder is not None
    assert "x * app.sigmoid(x)" in (run.folder / "operator-swish.py").read_text()
    kept, images = pickle.loads(pickle.dumps(run)), app.data.load("sample").test_images[:20]
    with pytest.raises(OperatorError, match=r"^swish cannot be imported.*result\['tanh'\].use\(swish=swish\)"):
        kept.predict(images)
    kept["tanh"].use(swish=swish)
    np.testing.assert_array_equal(kept.predict(images), run.predict(images))
    with pytest.raises(ConfigError, match=r"^swish cannot be imported, because .* app.resume\(.*, \[swish\]\)"):
        app.resume(run.folder, quiet=True)
    assert app.resume(run.folder, [swish], quiet=True).metrics["test_accuracy"] == run.metrics["test_accuracy"]
    changed.__name__ = "swish"
    with pytest.raises(OperatorError, match=r"the source of swish, .* has changed since"):
        app.resume(run.folder, [changed], quiet=True)


def test_two_operators_of_one_name_are_refused():
    with pytest.raises(ConfigError, match="two different operators are called a_lambda; give each a name of its own"):
        app.train(lambda x: x * 1.0, None, **QUICK, layers=_layers(lambda x: x * 2.0))


def test_a_wrong_gradient_of_a_layers_operator_ends_a_run_before_it_begins():
    wrong = app.custom_op(lambda x: 3.0 * x, name="wrong", elementwise=True)
    wrong.backward(lambda x, dy: dy)
    with pytest.raises(GradcheckError, match=r"^wrong: gradient is wrong"):
        app.train("tanh", None, **QUICK, layers=_layers(wrong))


def test_a_call_runs_the_files_that_it_names_and_not_those_of_a_configuration(tmp_path):
    (tmp_path / "ops.py").write_text("open(__file__ + '.was_run', 'a').close()\ndef double(x):\n    return x * 2.0\n")
    for named in ("{activation: 'ops.py:double'}", "{layers: [{type: dense, units: 4, activation: 'ops.py:double'}]}"):
        (tmp_path / "theirs.yaml").write_text(f"model: {named}")
        for call in (
            lambda: app.train(baseline=None, config="theirs.yaml", **QUICK),
            lambda: app.inspect(config="theirs.yaml"),
        ):
            with pytest.raises(AppError, match=r"theirs.yaml names ops.py:double: Python code, .* in the call$"):
                call()
    assert not (tmp_path / "ops.py.was_run").exists()
    run = app.train("tanh", None, **QUICK, layers=_layers("ops.py:double"))
    assert getattr(run.config.model.all_layers[0], "activation", "") == "ops.py:double"


def test_settings_are_checked_as_those_of_a_file():
    with pytest.raises(ConfigError, match=r"app.train: train.epochs: found -1, expected a whole number of at least 1"):
        app.train("relu", None, **{**QUICK, "epochs": -1})
    with pytest.raises(ConfigError, match=r"app\.train: epoch: unknown key; did you mean 'train\.epochs'\?"):
        app.train("relu", None, **QUICK, epoch=1)
    with pytest.raises(ConfigError, match="an operator, a function of one value or a name is expected, found 5"):
        app.train(5)


def test_workers_of_an_executor_find_operators_by_their_files(tmp_path, monkeypatch):
    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(ConfigError, match=r"^a_lambda cannot be found by the workers of an executor"):
            app.compare(["relu", lambda x: x], executor=executor, **QUICK)
        (tmp_path / "my_own_ops.py").write_text("import app\ndef double(x):\n    return x * 2.0\n")
        monkeypatch.syspath_prepend(tmp_path)
        import my_own_ops

        result = app.compare(["relu", my_own_ops.double], 1, executor=executor, **QUICK)
        layers = _layers(my_own_ops.double)
        beside = app.compare(["relu", "tanh"], 1, executor=executor, **QUICK, layers=layers)
        with pytest.raises(ConfigError, match=r"^a_lambda cannot be found by the workers of an executor"):
            app.compare(["relu", "tanh"], 1, executor=executor, **QUICK, layers=_layers(lambda x: x))
    assert list(result.epochs) == ["relu", "my_own_ops.py:double"]
    assert beside.epochs["tanh"][0][0].test_accuracy > 0.05
    del sys.modules["my_own_ops"]
