"""A long run takes no more memory, threads or files than a short one. `make soak` has the long form."""

import gc
import os
import threading
import tracemalloc
from pathlib import Path

import pytest
from long_runs import FIRST, LongRun

from app.data import load

pytestmark = pytest.mark.slow

FDS = Path("/proc/self/fd")


def test_iterations_leave_nothing_in_memory(engine):
    run = LongRun(engine, load("sample"))
    run.train(FIRST)
    gc.collect()
    objects = len(gc.get_objects())
    tracemalloc.start()
    try:
        run.train(FIRST)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        run.train(2 * FIRST)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 100 * 2 * FIRST  # bytes; NumPy keeps some hundreds of small blocks for later
    assert len(gc.get_objects()) - objects < FIRST


def test_a_run_leaves_no_thread_no_open_file_and_no_temporary_folder(engine, train, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    left = []
    for number in range(2):
        train(f"engine={engine}", "model.activation=relu", "baseline=null", folder=f"run{number}")
        gc.collect()
        left.append((threading.active_count(), len(os.listdir(FDS)) if FDS.exists() else 0))
    assert left[0] == left[1]
    assert os.listdir(temporary) == []
