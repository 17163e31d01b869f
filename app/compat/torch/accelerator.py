"""torch.accelerator: everything is computed by the CPU."""

from app.compat.missing import missing


def is_available() -> bool:
    """Whether there is anything faster than the CPU."""
    return False


def current_accelerator(check_available: bool = False) -> None:
    """What is faster than the CPU: nothing."""


def device_count() -> int:
    """How many devices are faster than the CPU."""
    return 0


__all__ = ["current_accelerator", "device_count", "is_available"]

__getattr__ = missing(__name__)
