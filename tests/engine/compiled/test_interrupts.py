"""Ctrl-C at any place in the engine: the run ends, KeyboardInterrupt is raised, and no value is half updated."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
import threadpoolctl

import app
from app import static
from app.data import Batches
from app.engine.compiled import blas, native_code, threads
from app.engine.compiled.threads import Worth
from app.ops.spec import spec_of

pytestmark = pytest.mark.slow

FILES = {module.__file__ for module in (threads, blas, threadpoolctl)}
CALL = next(code for code in native_code.Entry.bound.__code__.co_consts if getattr(code, "co_name", "") == "call")
ROWS, BATCHES = 64, 2
RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(ROWS * BATCHES, 6)).astype("float32")
LABELS = RNG.normal(size=(ROWS * BATCHES, 1)).astype("float32")


class Interrupt:
    """Raises KeyboardInterrupt at one of the places where Ctrl-C can come while work is shared out to threads: where a
    function begins, and after a call of native code."""

    def __init__(self, place: int):
        self.left = place

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        is_after_compiled_code = frame.f_code is CALL and event == "return"
        if is_after_compiled_code or (frame.f_code.co_filename in FILES and event in ("call", "c_return")):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


def run_interrupted(run: Callable[[], Any], place: int) -> bool:
    """Run on a thread of its own that is interrupted at a place; False if it ended before."""
    raised: list[BaseException] = []
    interrupt = Interrupt(place)

    def work() -> None:
        sys.setprofile(interrupt)
        try:
            run()
        except BaseException as error:
            raised.append(error)
        finally:
            sys.setprofile(None)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), f"interrupted at place {place}, it hangs"
    assert [type(error) for error in raised] == [KeyboardInterrupt] * (interrupt.left <= 0), (place, raised)
    return interrupt.left <= 0


def in_python(x: Any) -> Any:
    return static.py_func(lambda a: a + 0, x, spec_of(x))


@pytest.mark.parametrize(
    "middle",
    [lambda x: x, in_python, lambda x: app.nn.functional.dropout(x, 0.5)],
    ids=["one call", "parts", "a call of Python from compiled code"],
)
def test_an_interrupted_run_ends_and_leaves_no_value_half_updated(middle: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Worth, "threads", lambda worth, n, most: 2)
    x, label = static.data("x", [None, 6]), static.data("label", [None, 1])
    loss = app.mean(app.square(static.nn.fc(middle(static.nn.fc(x, 7)), 3) - label))
    app.optimizer.Momentum(0.1).minimize(loss)
    main, executor, scope = static.default_main_program(), static.Executor(engine="compiled"), static.Scope()
    executor.run(static.default_startup_program(), scope=scope)
    first = {name: value.copy() for name, value in scope.values.items()}
    threads_of_blas = blas._counts()

    def run(batches: int = BATCHES) -> None:
        for name, value in first.items():
            scope.values[name][...] = value
        app.seed(0)
        data = Batches(IMAGES, LABELS, None, ROWS)[:batches]
        executor.train_from_dataset(main, data, ["x", "label"], [loss], scope)

    whole: list[dict[str, bytes]] = []
    for batches in range(BATCHES + 1):
        run(batches)
        whole.append({name: value.tobytes() for name, value in scope.values.items()})
    place = 1
    while run_interrupted(run, place):
        place += 1
        for name, value in scope.values.items():
            assert value.tobytes() in [values[name] for values in whole], (place, name)
    assert place > 20
    run()
    assert {name: value.tobytes() for name, value in scope.values.items()} == whole[-1]
    assert blas._counts() == threads_of_blas
