"""Devices, for programs that choose one. Only the CPU exists here."""

from __future__ import annotations

from typing import Any

from app.errors import AppError

__all__ = [
    "CPUPlace",
    "CUDAPlace",
    "DeviceError",
    "cpu_places",
    "device_count",
    "get_device",
    "is_compiled_with_cuda",
    "set_device",
]


def __dir__() -> list[str]:
    return __all__


class DeviceError(AppError, RuntimeError):
    """A device that does not exist here."""


class CPUPlace:
    """The CPU."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CPUPlace)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return "Place(cpu)"


class CUDAPlace:
    """A GPU: constructing one is an error."""

    def __init__(self, device_id: int = 0):
        raise no_gpu(f"CUDAPlace({device_id})")


def set_device(device: Any) -> CPUPlace:
    """Choose the device. Anything but the CPU is an error."""
    if device != CPUPlace() and str(device).partition(":")[0] != "cpu":
        raise no_gpu(f"device {str(device)!r}")
    return CPUPlace()


def get_device() -> str:
    """The name of the device, which is `cpu`."""
    return "cpu"


def is_compiled_with_cuda() -> bool:
    """Whether GPUs can be used: always False."""
    return False


def device_count() -> int:
    """The number of GPUs: 0."""
    return 0


def cpu_places(device_count: int | None = None) -> list[CPUPlace]:
    """The places that a Program can run on."""
    return [CPUPlace()] * (device_count or 1)


def no_gpu(wish: Any) -> DeviceError:
    """The error for a program that asks for a GPU."""
    return DeviceError(f"{wish} is not there: values are computed on the CPU, which is CPUPlace() and 'cpu'")
