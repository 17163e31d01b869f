"""Values are computed on the CPU; wishes for anything else are refused in words."""

from __future__ import annotations

import pytest

from app import device
from app.errors import AppError


def test_the_cpu_can_be_chosen():
    assert device.set_device("cpu") == device.CPUPlace()
    assert (device.get_device(), repr(device.CPUPlace())) == ("cpu", "Place(cpu)")
    assert not device.is_compiled_with_cuda()


@pytest.mark.parametrize("wish", [lambda: device.CUDAPlace(1), lambda: device.set_device("gpu:1")])
def test_a_gpu_is_refused(wish: object):
    with pytest.raises(RuntimeError, match="is not there: values are computed on the CPU") as caught:
        wish()  # type: ignore[operator]
    assert isinstance(caught.value, AppError)
