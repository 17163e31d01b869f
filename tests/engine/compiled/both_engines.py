"""Programs run by the compiled and the reference engine, of which the results are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from plain_source import PlainEngine

import app
from app import static
from app.engine.compiled import runtime
from app.engine.compiled.engine import CompiledEngine, compile_program
from app.engine.compiled.program import CompiledProgram
from app.engine.compiled.threads import Worth
from app.engine.reference import ReferenceEngine


def compiled(*fetch: Any) -> CompiledProgram:
    """The native form of the default main Program."""
    names = [getattr(each, "name", each) for each in fetch]
    native = compile_program(static.default_main_program(), names)
    assert isinstance(native, CompiledProgram), native
    return native


def agree(
    fetch: list[Any], *feeds: dict[str, Any], rtol: float = 1e-6, atol: float = 1e-12, compiles: bool = True
) -> list[np.ndarray]:
    """What the compiled engine fetches at the last of the runs, which is what the reference engine does at each.

    If it is the generated source that is tested, it runs as plain Python, which takes less time than to compile it.
    """
    results = []
    for engine in (ReferenceEngine(), CompiledEngine() if compiles else PlainEngine(shards=2)):
        scope, executor = static.Scope(), static.Executor()
        app.seed(1)
        executor.run(static.default_startup_program(), scope=scope)
        executor._engine = engine
        results.append([executor.run(feed=feed, fetch_list=fetch, scope=scope) for feed in feeds])
    for expected, actual in zip(*results, strict=True):
        for a, b in zip(actual, expected, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
    return results[1][-1]


def agree_with_any_threads(train: Callable[[str], dict[str, np.ndarray]], atol: float) -> None:
    """The compiled engine trains as the reference engine does, and to the same bits with any number of threads, unless
    BLAS chooses by the size of a share how it computes small products."""
    expected, bits = train("reference"), set()
    for threads in (1, 2, 3):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Worth, "threads", lambda worth, n, most, threads=threads: threads)
            values = train("compiled")
        for name, value in expected.items():
            np.testing.assert_allclose(values[name], value, rtol=0, atol=atol, err_msg=name)
        bits.add(tuple(values[name].tobytes() for name in sorted(values)))
    assert len(bits) == 1 or not runtime.IN_PANELS
