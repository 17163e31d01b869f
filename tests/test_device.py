"""Values are computed on the CPU; any other device is an error."""

from __future__ import annotations

import pytest

import app
from app import device
from app.errors import AppError


def test_the_cpu_can_be_chosen():
    assert device.set_device("cpu") == device.CPUPlace()
    assert (device.get_device(), repr(device.CPUPlace())) == ("cpu", "Place(cpu)")
    assert not device.is_compiled_with_cuda()
    assert device.cpu_places(2) == [device.CPUPlace()] * 2
    assert device.cpu_places() == [device.CPUPlace()]


def test_a_gpu_is_an_error():
    x = app.ones([2])
    assert x.cpu() is x
    message = r"^(CUDAPlace\(1\)|device 'gpu:1'|cuda\(\)) is not there: values are computed on the CPU"
    for choose in (lambda: device.CUDAPlace(1), lambda: device.set_device("gpu:1"), x.cuda):
        with pytest.raises(RuntimeError, match=message) as caught:
            choose()
        assert isinstance(caught.value, AppError)
