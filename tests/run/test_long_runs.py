"""A long run takes no more memory, threads or files than a short one. `make soak` has the long form."""

import gc
import os
import threading
import tracemalloc
from pathlib import Path

import pytest
from long_runs import PIECE, LongRun

from app.data import load

pytestmark = pytest.mark.slow

FDS = Path("/proc/self/fd")
RELU_WITH_MOMENTUM = (
    *("model.activation=relu", "baseline=null"),
    *("train.optimizer=momentum", "train.weight_decay=0.01"),
)
"""The network of tests of learners, whose code is compiled once."""


def test_iterations_leave_nothing_in_memory(engine):
    run = LongRun(engine, load("sample"))
    run.train(PIECE)
    gc.collect()
    objects = len(gc.get_objects())
    tracemalloc.start()
    try:
        run.train(PIECE)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        run.train(2 * PIECE)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 100 * 2 * PIECE  # bytes; NumPy keeps some hundreds of small blocks for later
    assert len(gc.get_objects()) - objects < PIECE


def test_a_run_leaves_no_thread_no_open_file_and_no_temporary_folder(engine, train, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    left = []
    for number in range(2):
        train(f"engine={engine}", *RELU_WITH_MOMENTUM, folder=f"run{number}")
        gc.collect()
        left.append((threading.active_count(), len(os.listdir(FDS)) if FDS.exists() else 0))
    assert left[0] == left[1]
    assert os.listdir(temporary) == []
