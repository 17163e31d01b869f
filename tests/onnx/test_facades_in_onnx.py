"""`onnx.export` of the façades."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from app.compat import paddle, torch

X = np.random.default_rng(0).standard_normal((5, 4)).astype("float32")


def test_paddle_exports_a_layer(tmp_path: Path) -> None:
    net = paddle.nn.Sequential(paddle.nn.Linear(4, 3), paddle.nn.ReLU(), paddle.nn.Dropout(0.5))
    net.eval()
    paddle.onnx.export(
        net, str(tmp_path / "net"), [paddle.static.InputSpec([None, 4], "float32", "x")], opset_version=13
    )
    (found,) = ReferenceEvaluator(str(tmp_path / "net.onnx")).run(None, {"x": X})
    np.testing.assert_allclose(found, net(paddle.to_tensor(X)).numpy(), rtol=1e-6)


def test_torch_exports_a_module(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Dropout(0.5))
    file = tmp_path / "net.onnx"
    torch.onnx.export(
        net, torch.ones(2, 4), file, input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "batch"}}
    )
    assert net.training
    assert [output.name for output in onnx.load(file).graph.output] == ["y"]
    (found,) = ReferenceEvaluator(str(file)).run(None, {"x": X})
    np.testing.assert_allclose(found, net.eval()(torch.tensor(X)).detach().numpy(), rtol=1e-6)
