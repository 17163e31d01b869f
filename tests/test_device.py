"""Values are computed on the CPU; any other device is an error."""

from __future__ import annotations

import pytest

import app
from app import device
from app.errors import AppError


def test_the_cpu_can_be_chosen():
    assert device.set_device("cpu") == device.CPUPlace()
    assert repr(device.CPUPlace()) == "Place(cpu)"


def test_a_gpu_is_an_error():
    x = app.ones([2])
    assert x.cpu() is x
    with pytest.raises(RuntimeError, match=r"^device 'gpu:1' is not there: values are computed on the CPU") as caught:
        device.set_device("gpu:1")
    assert isinstance(caught.value, AppError)
