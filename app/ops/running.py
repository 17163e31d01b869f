"""What differs between training and use: a `training` that `Program.clone(for_test=True)` turns off."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.ops.definition import operator
from app.ops.form import Elementwise
from app.ops.spec import Spec
from app.ops.values import Array, Gradients, OnnxNodes, OnnxResult, OnnxValue, Results, Value


@operator(
    lambda trained, known, *, training=True: trained,
    form=Elementwise(lambda trained, known, training: trained if training else known),
    has_training_mode=True,
)
def in_training(trained: Array, known: Array, *, training: bool = True) -> Results:
    """The first value in training, the second in use."""
    return np.copy(trained if training else known)


@in_training.gradient
def _(dout: Value, training: bool) -> Gradients:
    return (dout, None) if training else (None, dout)


@in_training.in_onnx
def _(trained: OnnxValue, known: OnnxValue, training: bool) -> OnnxResult:
    return trained if training else known


def _infer_running(running: Spec, value: Spec, *, momentum: float = 0.9, training: bool = True) -> Spec:
    return running


def _one(running: Any, value: Any, momentum: float, training: bool) -> Any:
    return running * momentum + value * (1.0 - momentum) if training else running


@operator(_infer_running, form=Elementwise(_one), has_training_mode=True)
def running_mean(running: Array, value: Array, *, momentum: float = 0.9, training: bool = True) -> Results:
    """In training, a mean of values seen in which older ones count less and less; in use, as it stands."""
    return running * momentum + value * (1.0 - momentum) if training else np.copy(running)


@running_mean.in_onnx
def _(onnx: OnnxNodes, running: OnnxValue, value: OnnxValue, momentum: float, training: bool) -> OnnxResult:
    return running * momentum + value * (1.0 - momentum) if training else running
