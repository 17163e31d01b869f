"""The machine and the versions that figures were measured with."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
from importlib import metadata

from app import machine
from benchmarks.process import environment

PACKAGES = ("numpy", "numba", "scipy", "torch", "jax", "paddlepaddle")


def describe() -> dict[str, object]:
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": machine.processor(),
        "cores": machine.cores(),
        "system": platform.system(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),  # of the minute before
        "blas": _blas(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
    }


def _blas() -> str:
    """NumPy's, with the kernels and threads that it chooses when left alone."""
    command = [sys.executable, "-m", "threadpoolctl", "-i", "numpy"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    return ", ".join(
        f"{i['internal_api']} {i['version']} ({i.get('architecture', '?')} kernels, {i['num_threads']} threads)"
        for i in json.loads(done.stdout)
        if i["user_api"] == "blas"
    )


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
