"""A run that was trained for the demo's tests, and the demo's server, open for all of them."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import forked
import pytest

from app.experiment.results import Result
from app.run.options import CONFIGS
from app.use.demo.classifier import Classifier
from app.use.demo.server import Server


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a short run by best.yaml, less wide, on the committed sample: trained once for all workers."""
    short = ["data.source=sample", "train.epochs=4", "model.hidden=[128]", "engine=reference", "check=false"]
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "demo"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "run" / "summary.txt").exists():
            words = ["--config", CONFIGS / "best.yaml", *short, "costs=false", "report=false", "output=run"]
            done = forked.run([forked.ROOT / "train.py", *words], cwd=shared)
            assert done.returncode == 0, done.stderr
    return shared / "run"


@pytest.fixture(scope="session")
def classifier(run_folder: Path) -> Classifier:
    return Classifier(Result(run_folder))


@pytest.fixture(scope="session")
def server(classifier: Classifier) -> Iterator[Server]:
    """The demo, on a port of its own."""
    with Server(classifier, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
