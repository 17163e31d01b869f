"""The device of values: the CPU. Any other is an error."""

from __future__ import annotations

from typing import Any

from app.errors import AppError

__all__ = ["CPUPlace", "DeviceError", "set_device"]


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


def set_device(device: Any) -> CPUPlace:
    """Choose the device. Anything but the CPU is an error."""
    if device != CPUPlace() and str(device).partition(":")[0] != "cpu":
        raise DeviceError(
            f"device {str(device)!r} is not there: values are computed on the CPU, which is CPUPlace() and 'cpu'"
        )
    return CPUPlace()
