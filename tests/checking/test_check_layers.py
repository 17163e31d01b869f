"""A Layer is checked as an operator of its inputs and of its parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app import nn, relu
from app.checking.checks import examine
from app.checking.examples import inputs_for
from app.checking.finding import find, found
from app.custom import PyLayer
from app.errors import ConfigError

pytestmark = pytest.mark.slow


class Wrong(PyLayer):
    """A product whose gradient of `scale` is twice what it should be."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any) -> Any:
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        x, scale = ctx.saved_tensor()
        return dy * scale, (dy * x).sum(axis=[0]) * 2


class Scaled(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(6, 6)
        self.scale = self.create_parameter([6])

    def forward(self, x: Any, shift: float = 0.0) -> Any:
        return Wrong.apply(relu(self.inner(x)), self.scale) + shift


@pytest.mark.parametrize("layer", [Scaled, Scaled()])
def test_parameters_are_inputs_whose_gradients_are_checked(layer: Any):
    subject = inputs_for(found(layer, "mine"))
    inputs = "x float64[4, 6], scale float64[6], inner_weight float64[6, 6], inner_bias float64[6]"
    assert ", ".join(map(str, subject.inputs)) == inputs
    verdicts = list(examine(subject, ["gradient"]))
    assert [v.words.partition(" is wrong")[0] for v in verdicts if v.failed] == ["that of scale"]


def test_a_layer_keeps_its_parameters():
    layer = Scaled()
    before = dict(layer.named_parameters())
    list(examine(inputs_for(found(layer, "mine")), ["shapes", "engines"]))
    after = dict(layer.named_parameters())
    assert list(after) == list(before)
    assert all(after[path] is before[path] is getattr(layer, path, before[path]) for path in before)


def test_a_class_that_needs_arguments_is_refused(tmp_path: Path):
    file = tmp_path / "my_ops.py"
    file.write_text("import app\n\nclass Needy(app.nn.Layer):\n    def __init__(self, size):\n        pass\n")
    with pytest.raises(ConfigError, match=r"^Needy cannot be made without arguments \(TypeError: "):
        find(f"{file}:Needy")
