"""Forward hooks of outer and inner layers run in traced, saved and exported layers as they do eagerly."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import app
from app.jit import load, save, to_static
from app.static import InputSpec

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.25, -1.0]], "float32")


class Net(app.nn.Layer):
    def __init__(self):
        super().__init__()
        self.inner = app.nn.Linear(3, 2)

    def forward(self, x):
        if x.sum() > 0:
            return self.inner(x)
        return self.inner(x) * 2

    def twice(self, x):
        return self(self.inner(x) @ app.ones([2, 3]))


def add_before(layer, inputs):
    return (inputs[0] + 1,)


def times(factor):
    def hook(layer, inputs, output):
        if output.sum() > 0:
            return output * factor
        return output * factor + inputs[0].sum()

    return hook


def hooked():
    net = Net()
    net.register_forward_pre_hook(add_before)
    net.register_forward_post_hook(times(8))
    net.inner.register_forward_pre_hook(add_before)
    net.inner.register_forward_post_hook(times(0.5))
    return net


@pytest.mark.parametrize("scale", [1.0, -3.0])
def test_hooks_are_traced_with_the_layers(scale, tmp_path):
    net, x = hooked(), app.to_tensor(X * scale)
    expected, expected_twice = net(x).numpy(), net.twice(x).numpy()
    np.testing.assert_allclose(to_static(net.twice, backend="reference")(x).numpy(), expected_twice, rtol=1e-5)
    save(net, str(tmp_path / "plain"), [InputSpec([None, 3], "float32")])
    traced = to_static(copy.deepcopy(net), backend="reference")
    np.testing.assert_allclose(traced(x).numpy(), expected, rtol=1e-5)
    save(traced, str(tmp_path / "traced"))
    for name in ("plain", "traced"):
        loaded = load(str(tmp_path / name))
        loaded.forward._backend = "reference"
        np.testing.assert_allclose(loaded(x).numpy(), expected, rtol=1e-5)


def test_an_exported_network_has_the_hooks():
    from app.onnx.export import network_of

    net = app.nn.Linear(3, 2)
    net.register_forward_post_hook(lambda layer, inputs, output: output * 8)
    model, _ = network_of(net, [InputSpec([None, 3], "float32")])
    assert "multiply" in [op.type for op in model.program.global_block().ops]
