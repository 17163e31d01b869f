"""`app.train` and `app.compare`: operators as objects, settings as keyword arguments."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import app
from app.custom.lookup import on_the_shelf
from app.errors import ConfigError

QUICK: dict[str, Any] = {
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
def relu(x: Any) -> Any:
    return np.maximum(x, 0)


@relu.backward
def relu_grad(x: Any, dy: Any) -> Any:
    return dy * (x > 0)


class Rectified(app.autograd.PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return app.maximum(x, 0.0 * x)

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return dy * (x > 0.0).astype(dy.dtype)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_an_operator_of_a_cell_trains_beside_the_built_in_one():
    cell: dict[str, Any] = {"app": app, "np": np, "__name__": "__main__"}
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
    settings["layers"][0]["activation"] = Rectified
    with pytest.raises(ConfigError, match=r"Rectified cannot be the activation of one layer, which is a built-in"):
        app.train(relu, None, **settings)


def test_settings_are_checked_as_those_of_a_file():
    with pytest.raises(ConfigError, match=r"app.train: train.epochs: found -1, expected a whole number of at least 1"):
        app.train("relu", None, **{**QUICK, "epochs": -1})
    with pytest.raises(ConfigError, match=r"app\.train: epoch: unknown key; did you mean 'train\.epochs'\?"):
        app.train("relu", None, **QUICK, epoch=1)
    with pytest.raises(ConfigError, match="an operator, a function of one value or a name is expected, found 5"):
        app.train(5)  # type: ignore[arg-type]


def test_workers_of_an_executor_find_operators_by_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(ConfigError, match=r"^a_lambda cannot be found by the workers of an executor"):
            app.compare(["relu", lambda x: x], executor=executor, **QUICK)
        (tmp_path / "my_own_ops.py").write_text("import app\ndef double(x):\n    return x * 2.0\n")
        monkeypatch.syspath_prepend(tmp_path)
        import my_own_ops

        result = app.compare(["relu", my_own_ops.double], 1, executor=executor, **QUICK)
    assert list(result.epochs) == ["relu", "my_own_ops.py:double"]
    del sys.modules["my_own_ops"]
