"""The machine and the package versions of a run."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

PACKAGES = ("numpy", "numba")


def describe() -> dict[str, str]:
    """Return the properties of the machine and the versions of the imported packages."""
    modules = {name: sys.modules.get(name) for name in PACKAGES}
    return {
        "processor": processor(),
        "cores": str(cores()),
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        **{name: str(module.__version__) for name, module in modules.items() if module is not None},
    }


def processor() -> str:
    """Return the model name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(errors="replace").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def cores() -> int:
    """Return the number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
