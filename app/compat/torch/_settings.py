"""Settings: threads, the device, and determinism, which is always on."""

from __future__ import annotations

from typing import Any

from threadpoolctl import threadpool_info, threadpool_limits

from app.compat.torch._device import CPU, check_device, device


def set_num_threads(int: int) -> None:
    """Set the number of threads of matrix products."""
    threadpool_limits(int)


def get_num_threads() -> int:
    """The number of threads of matrix products."""
    return max((library["num_threads"] for library in threadpool_info()), default=1)


def set_default_device(device: Any) -> None:
    """Set where Tensors are made; only the CPU is accepted."""
    check_device(device)


def get_default_device() -> device:
    """Where Tensors are made: on the CPU."""
    return CPU


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Has no effect: operators always give the same numbers for the same input."""


def are_deterministic_algorithms_enabled() -> bool:
    """True: operators always give the same numbers for the same input."""
    return True


def set_float32_matmul_precision(precision: str) -> None:
    """Has no effect: products of matrices are computed in full precision."""
    if precision not in ("highest", "high", "medium"):
        raise ValueError(f"set_float32_matmul_precision: highest, high or medium is expected, found {precision!r}")


CUDNN: dict[str, Any] = {
    "enabled": False,
    "benchmark": False,
    "deterministic": True,
    "allow_tf32": False,
    "is_available": lambda: False,
    "version": lambda: None,
}
"""Settings of a library for GPUs, which programs may set without effect."""
