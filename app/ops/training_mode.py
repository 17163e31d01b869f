"""Operators that behave differently in training and inference; `Program.clone(for_test=True)` sets `training=False`."""

from __future__ import annotations

import numpy as np

from app.ops.definition import operator
from app.ops.lowering import Elementwise
from app.ops.spec import Spec
from app.ops.values import Array, Element, Results


@operator(
    lambda trained, running, *, training=True: trained,
    lowering=Elementwise(lambda trained, running, training: trained if training else running),
    has_training_mode=True,
    gradient=lambda dout, training: (dout, None) if training else (None, dout),
    onnx=lambda trained, running, training: trained if training else running,
)
def in_training(trained: Array, running: Array, *, training: bool = True) -> Results:
    """`trained` in training, `running` in inference."""
    return np.array(trained if training else running, trained.dtype)


def _infer_running_mean(running: Spec, value: Spec, *, momentum: float = 0.9, training: bool = True) -> Spec:
    return running


def _update_running(running: Element, value: Element, momentum: float, training: bool) -> Element:
    return running * momentum + value * (1.0 - momentum) if training else running


@operator(_infer_running_mean, lowering=Elementwise(_update_running), has_training_mode=True)
def running_mean(running: Array, value: Array, *, momentum: float = 0.9, training: bool = True) -> Results:
    """Exponential moving average of `value` in training; `running`, unchanged, in inference."""
    return np.array(_update_running(running, value, momentum, training), running.dtype)
