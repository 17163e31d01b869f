"""The machine and the versions that a run's figures were measured with."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

PACKAGES = ("numpy", "numba")


def describe() -> dict[str, str]:
    """What is worth knowing of it, by name. Of packages only those that are in use are asked."""
    modules = {name: sys.modules.get(name) for name in PACKAGES}
    return {
        "processor": processor(),
        "cores": str(cores()),
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        **{name: str(module.__version__) for name, module in modules.items() if module is not None},
    }


def processor() -> str:
    """The name that its maker gave it."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(errors="replace").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
