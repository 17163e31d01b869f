"""Values are computed on the CPU; wishes for anything else are refused in words."""

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


@pytest.mark.parametrize("wish", [lambda: device.CUDAPlace(1), lambda: device.set_device("gpu:1")])
def test_a_gpu_is_refused(wish: object):
    with pytest.raises(RuntimeError, match="is not there: values are computed on the CPU") as caught:
        wish()  # type: ignore[operator]
    assert isinstance(caught.value, AppError)


def test_a_tensor_is_on_the_cpu_and_nowhere_else():
    x = app.ones([2])
    assert x.cpu() is x
    with pytest.raises(RuntimeError, match=r"cuda\(\) is not there: values are computed on the CPU"):
        x.cuda()
