"""A CompiledProgram is run with the compiled engine, and gives what the Program gives."""

from __future__ import annotations

import numpy as np
import pytest

import app
from app import static
from app.engine import executor as executors


def test_a_compiled_program_runs_on_the_compiled_engine(monkeypatch: pytest.MonkeyPatch):
    y = app.tanh(static.data("x", [None, 3])) + 1.0
    main = static.default_main_program()
    made: list[str] = []
    for name, make in list(executors.ENGINES.items()):
        monkeypatch.setitem(executors.ENGINES, name, lambda name=name, make=make: made.append(name) or make())
    executor = static.Executor()
    feed = {"x": np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)}
    (plain,) = executor.run(main, feed=feed, fetch_list=[y])
    compiled = static.CompiledProgram(main, static.BuildStrategy())
    for program in (compiled, compiled.with_data_parallel(loss_name=y.name)):
        np.testing.assert_allclose(executor.run(program, feed=feed, fetch_list=[y.name])[0], plain, rtol=1e-6)
    assert made == ["reference", "compiled"]
    static.ExecutionStrategy().num_threads = 4
