"""What cannot be exported says so at once, all of it, and writes no file."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import app
from app import nn, static
from app.errors import ExportError, MissingFileError
from app.ops import REGISTRY
from app.static import InputSpec


def test_all_that_stands_in_the_way_is_named_together(tmp_path: Path):
    x = static.data("x", [None, 3, 3])
    y = REGISTRY["sgd"](x, x, 0.1) + REGISTRY["adagrad"](x, x, 0.1, x)[0]
    with pytest.raises(ExportError) as caught:
        app.onnx.export(static.default_main_program(), tmp_path / "m", feed=[x], fetch=[y])
    lines = str(caught.value).splitlines()
    assert lines[0] == "this network cannot be exported to ONNX:"
    assert sorted(line.strip() for line in lines[1:]) == [
        "operator adagrad: it has no counterpart in ONNX",
        "operator sgd: it has no counterpart in ONNX",
    ]
    assert not (tmp_path / "m.onnx").exists()


def test_what_is_inside_a_custom_operator_is_named_too(tmp_path: Path):
    @app.custom_op
    def a_step(x: Any) -> Any:
        return REGISTRY["sgd"](x, x, 0.1)

    x = static.data("x", [None, 3])
    with pytest.raises(ExportError, match="operator sgd: it has no counterpart in ONNX"):
        app.onnx.export(static.default_main_program(), tmp_path / "m", feed=[x], fetch=[a_step(x)])


@pytest.mark.parametrize(
    ("model", "told", "words"),
    [
        (nn.Linear(2, 2), {}, "Linear is exported with input_spec="),
        (nn.Linear(2, 2), {"input_spec": [3]}, "input_spec must be a list of InputSpecs or example Tensors, found 3"),
        (static.Program(), {}, "feed= and fetch="),
        (7, {}, "a int cannot be exported; give a Layer, a function, a Program or a path"),
        (lambda x: 3, {"input_spec": [InputSpec([2])]}, "computes nothing from its arguments"),
    ],
)
def test_a_call_that_says_too_little_is_told_what_is_missing(model: Any, told: Any, words: str, tmp_path: Path):
    with pytest.raises(ExportError, match=words):
        app.onnx.export(model, tmp_path / "m", **told)


def test_a_saved_model_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(MissingFileError, match=r"there is no file .*nothing\.json"):
        app.onnx.export(tmp_path / "nothing", tmp_path / "m")


def test_a_declared_operator_that_onnx_does_not_have_is_named(tmp_path: Path):
    @app.custom_op(onnx="Rellu")
    def relu(x: Any) -> Any:
        return np.maximum(x, 0)

    x = static.data("x", [None, 2])
    with pytest.raises(ExportError, match=r"operator relu .*: ONNX has no operator 'Rellu'"):
        app.onnx.export(static.default_main_program(), tmp_path / "m", feed=[x], fetch=[relu(x)])


def test_a_rule_that_asks_for_what_there_is_not_is_told_what_there_is(tmp_path: Path):
    @app.custom_op(onnx=lambda onnx, y: onnx.Relu(y))
    def relu(x: Any) -> Any:
        return np.maximum(x, 0)

    x = static.data("x", [None, 2])
    with pytest.raises(ExportError, match="its ONNX rule asks for 'y'; it can have onnx, attributes, x, out_shape"):
        app.onnx.export(static.default_main_program(), tmp_path / "m", feed=[x], fetch=[relu(x)])


def test_without_the_package_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "onnx":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ExportError, match=r"pip install onnx"):
        app.onnx.export(nn.Linear(2, 2), tmp_path / "m", [InputSpec([None, 2])])


def test_a_setting_of_an_opaque_operator_that_no_attribute_can_hold_is_named(tmp_path: Path):
    @app.custom_op
    def shifted(x: Any, by: Any = None) -> Any:
        return np.asarray(x).cumsum() + np.float32(0 if by is None else sum(map(sum, by)))

    x = static.data("x", [2])
    with pytest.raises(ExportError, match=r"its setting by=\(\(1, 2\), \(3,\)\) has a type that ONNX attributes"):
        app.onnx.export(static.default_main_program(), tmp_path / "m", feed=[x], fetch=[shifted(x, by=((1, 2), (3,)))])
