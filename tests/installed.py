"""What the wheel puts into site-packages, built once for all tests and workers of a suite."""

from __future__ import annotations

import fcntl
import os
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package `opsmith`, in a path with spaces and letters outside ASCII."""
    from hatchling.builders.wheel import WheelBuilder  # imported late: few tests need it, and some have none

    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "a site with spaces äß"
    shared.mkdir(exist_ok=True)
    site = shared / "site-packages"
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the other workers wait
        if not site.exists():
            (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(shared), versions=["standard"])
            with zipfile.ZipFile(wheel) as packed:
                packed.extractall(shared / "unpacked")
            (shared / "unpacked" / "data").mkdir()  # somebody else's
            (shared / "unpacked").rename(site)
    return site
