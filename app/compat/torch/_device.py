"""`torch.device` and the modules that ask for accelerators: everything here is computed by the CPU."""

from __future__ import annotations

from typing import Any

from app.device import set_device


class device:
    """Where a Tensor is: always the CPU."""

    def __init__(self, type: Any = "cpu", index: int | None = None):
        set_device(type)
        name, _, number = str(type).partition(":")
        self.type = name
        self.index = int(number) if number else index

    def __repr__(self) -> str:
        return f"device(type={self.type!r})" if self.index is None else f"device(type='cpu', index={self.index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, device) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __enter__(self) -> device:
        return self

    def __exit__(self, *error: Any) -> None:
        return None


CPU = device("cpu")


def check_device(given: Any) -> None:
    """Raise an error for a device other than the CPU."""
    if given is not None:
        set_device(given)


# Accelerators


def is_available() -> bool:
    """False: there is no accelerator."""
    return False


def device_count() -> int:
    """0: there is no accelerator."""
    return 0


def current_accelerator(check_available: bool = False) -> None:
    """None: there is no accelerator."""


def manual_seed(seed: int) -> None:
    """Has no effect: there is no accelerator."""
