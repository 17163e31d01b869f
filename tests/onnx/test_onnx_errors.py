"""What cannot be exported is an error that names every reason, and no file is written."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import app
from app import nn, static
from app.errors import ExportError, MissingFileError
from app.ops import REGISTRY
from app.static import InputSpec

LINEAR = nn.Linear(2, 2)
SPEC = {"input_spec": [InputSpec([None, 2])]}


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        (LINEAR, {}, "Linear is exported with input_spec="),
        (LINEAR, {"input_spec": [3]}, "input_spec must be a list of InputSpecs or example Tensors, found 3"),
        (static.Program(), {}, "feed= and fetch="),
        (7, {}, "a int cannot be exported; give a Layer, a function, a Program or a path"),
        (lambda x: 3, SPEC, "computes nothing from its arguments"),
        (app.add, {"input_spec": [InputSpec([2], name="x")] * 2}, "two inputs of add are called 'x'; give each"),
    ],
)
def test_wrong_arguments_are_errors(model: Any, settings: Any, message: str, tmp_path: Path):
    with pytest.raises(ExportError, match=message):
        app.onnx.export(model, tmp_path / "m", **settings)


def test_a_missing_model_is_an_error(tmp_path: Path):
    with pytest.raises(MissingFileError, match=r"there is no file .*nothing\.json"):
        app.onnx.export(tmp_path / "nothing", tmp_path / "m")


@pytest.mark.parametrize("path", ["", "models/"])
def test_a_folder_in_place_of_a_file_is_an_error(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ExportError, match=rf"^'{path}' is not a file name; write '{path}network.onnx', for example$"):
        app.onnx.export(LINEAR, path, **SPEC)
    assert not list(tmp_path.iterdir())


def test_without_the_package_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "onnx":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        ExportError, match=r"^exporting.*: python -m pip install onnx, or in a checkout: .*'\.\[onnx\]'$"
    ):
        app.onnx.export(LINEAR, tmp_path / "m", **SPEC)


def training_steps(x: Any) -> Any:
    return REGISTRY["sgd"](x, x, 0.1) + REGISTRY["momentum"](x, x, 0.1, x)[0]


@app.custom_op
def step_inside(x: Any) -> Any:
    return REGISTRY["sgd"](x, x, 0.1)


@app.custom_op(onnx="Rellu")
def misspelt(x: Any) -> Any:
    return np.maximum(x, 0)


@app.custom_op(onnx=lambda onnx, y: onnx.Relu(y))
def by_wrong_rule(x: Any) -> Any:
    return np.maximum(x, 0)


@app.custom_op
def shifted(x: Any, by: Any = None) -> Any:
    return np.asarray(x).cumsum() + np.float32(0 if by is None else sum(map(sum, by)))


@app.custom_op(onnx="LeakyRelu")
def leaky(x: Any, alpha: float = 0.2) -> Any:
    return np.where(x > 0, x, alpha * x)


TABLE = np.array([1.0, 2.0], "float32")


@app.custom_op
def by_table(x: Any, table: Any = TABLE, most: float = 1e40, least: int = 0) -> Any:
    return np.sort(x)[::-1] * table


NO_SGD, NO_MOMENTUM = (f"operator {name}: it has no counterpart in ONNX" for name in ("sgd", "momentum"))


@pytest.mark.parametrize(
    ("operator", "messages"),
    [
        (training_steps, ["this network cannot be exported to ONNX:\n  operator ", NO_SGD, NO_MOMENTUM]),
        (step_inside, [NO_SGD]),
        (misspelt, ["operator misspelt (test_onnx_errors.py:", ": ONNX has no operator 'Rellu'"]),
        (by_wrong_rule, ["its ONNX rule asks for 'y'; it can have onnx, attributes, x, out_shape"]),
        (leaky, ["its onnx='LeakyRelu' leaves out its settings, alpha=0.2: give a function of them, such as onnx="]),
        (
            lambda x: shifted(x, by=((1, 2), (3,))),
            ["its setting by=((1, 2), (3,)) cannot be written: ONNX attributes hold text, whole numbers in 64 bits,"],
        ),
        (
            lambda x: by_table(x, table=np.ones(2, "float32")),
            ["its setting table=array([1., 1.], dtype=float32) cannot"],
        ),
        (lambda x: by_table(x, most=1e39), ["its setting most=1e+39 cannot be written"]),
        (lambda x: by_table(x, least=-(2**63) - 1), ["its setting least=-9223372036854775809 cannot be written"]),
    ],
)
def test_operators_that_cannot_be_exported_are_all_named(operator: Any, messages: list[str], tmp_path: Path):
    x = static.data("x", [2])
    with pytest.raises(ExportError) as caught:
        app.onnx.export(static.default_main_program(), tmp_path / "m", feed=[x], fetch=[operator(x)])
    assert [message for message in messages if message not in str(caught.value)] == []
    assert len(str(caught.value).splitlines()) == (3 if operator is training_steps else 2)
    assert not list(tmp_path.iterdir())


def test_settings_that_cannot_be_written_are_left_out_if_they_are_the_defaults(tmp_path: Path):
    file = app.onnx.export(lambda x: by_table(x, table=TABLE.copy()), tmp_path / "m", [InputSpec([2])])
    evaluator = ReferenceEvaluator(str(file), new_ops=app.onnx.reference_operators(by_table))
    assert evaluator.run(None, {"x": np.float32([3, 4])})[0].tolist() == [4.0, 6.0]
