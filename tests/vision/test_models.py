"""Networks for pictures."""

from __future__ import annotations

import app
from app.vision.models import LeNet


def test_lenet_has_the_shapes_of_paddle():
    net = LeNet()
    shapes = {name: p.shape for name, p in net.named_parameters()}
    assert shapes["features.0.weight"] == [6, 1, 3, 3]
    assert shapes["features.3.weight"] == [16, 6, 5, 5]
    assert [shapes[f"fc.{i}.weight"] for i in range(3)] == [[400, 120], [120, 84], [84, 10]]
    assert net(app.zeros([2, 1, 28, 28])).shape == [2, 10]
    assert LeNet(num_classes=0)(app.zeros([2, 1, 28, 28])).shape == [2, 16, 5, 5]
