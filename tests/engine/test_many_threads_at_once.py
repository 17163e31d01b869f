"""Everything that threads may share gives each of them its own answers: nothing that one writes reaches another."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.engine.compiled import blas, native_code, runtime, threads
from app.engine.compiled.engine import compile_program
from app.ops.spec import spec_of

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
FEEDS = [RNG.normal(size=(rows, 8)).astype("float32") for rows in (1, 3, 8, 21, 64)]
THREADS, TIMES = 4, 40


def at_once(work: Callable[[int], None]) -> None:
    """Do some work on several threads that begin together; what one of them raises is raised."""
    raised: list[BaseException] = []
    gate = threading.Barrier(THREADS)

    def run(number: int) -> None:
        try:
            gate.wait(30)
            work(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def each_gets_its_own(
    answer: Callable[[np.ndarray], Any], expected: Callable[[np.ndarray], Any], feeds: Sequence[np.ndarray] = FEEDS
) -> None:
    """Threads that ask with inputs of several sizes get what one alone would."""
    right = [expected(feed) for feed in feeds]

    def work(number: int) -> None:
        for turn in range(TIMES):
            chosen = (turn * 3 + number) % len(feeds)
            np.testing.assert_allclose(answer(feeds[chosen]), right[chosen], rtol=1e-4, atol=1e-5)

    at_once(work)


def chain(x: Any) -> Any:
    """A function whose steps do not all fit into one loop."""
    h = app.tanh(x * 1.5)
    return h - app.mean(h, axis=1, keepdim=True)


def in_numpy(x: np.ndarray) -> np.ndarray:
    h = np.tanh(x * 1.5)
    return h - h.mean(axis=1, keepdims=True)


def built(middle: Callable[[Any], Any] = lambda x: x) -> tuple[static.Program, Any]:
    program = static.Program()
    with static.program_guard(program, static.Program()):
        return program, chain(middle(static.data("x", [None, 8])))


@pytest.fixture(params=["whole", "in parts"])
def program(request: pytest.FixtureRequest) -> tuple[static.Program, Any]:
    """One that runs in one native call, or with a Python call in it."""
    return built() if request.param == "whole" else built(lambda x: static.py_func(lambda a: a + 0, x, spec_of(x)))


def test_threads_share_a_program_and_an_executor(program: tuple[static.Program, Any]):
    main, y = program
    executor = static.Executor(engine="compiled")
    each_gets_its_own(lambda x: executor.run(main, {"x": x}, [y])[0], in_numpy)
    each_gets_its_own(lambda x: static.Executor(engine="compiled").run(main, {"x": x}, [y])[0], in_numpy)


def test_threads_share_a_traced_function():
    traced = app.jit.to_static(chain)
    with app.no_grad():
        each_gets_its_own(lambda x: np.asarray(traced(app.to_tensor(x))), in_numpy, FEEDS[1:3])  # each is compiled


def test_threads_share_an_operator_that_its_first_call_compiles():
    @app.custom.custom_op(elementwise=True)
    def bent(x: Any) -> Any:
        return x * 1.5 if x > 0 else x * 0.5

    each_gets_its_own(lambda x: np.asarray(bent(app.to_tensor(x))), lambda x: np.where(x > 0, x * 1.5, x * 0.5))


def test_threads_share_a_loop_and_its_gradient():
    program = static.Program()
    with static.program_guard(program, static.Program()):
        x = static.data("x", [None, 8])
        x.stop_gradient = False
        count = app.sum(app.zeros_like(x, dtype="int64"))
        _, y = static.nn.while_loop(lambda i, a: i < 5, lambda i, a: [i + 1, app.tanh(a)], [count, x])
        (gradient,) = static.gradients(app.sum(y), x)
    executor = static.Executor(engine="compiled")

    def expected(x: np.ndarray) -> np.ndarray:
        slope = np.ones_like(x)
        for _ in range(5):
            x = np.tanh(x)
            slope = slope * (1 - x * x)
        return slope

    each_gets_its_own(lambda x: executor.run(program, {"x": x}, [gradient])[0], expected)


def test_updates_of_one_model_run_one_after_another():
    """Between reading a value of a scope and changing it, a Program is not interrupted by another run."""
    program, startup = static.Program(), static.Program()
    with static.program_guard(program, startup):
        total = static.create_global_var([4], 0.0, "float32")
        read = static.py_func(lambda a: time.sleep(1e-5) or a + 0, total, spec_of(total))  # lets other threads run
        app.assign(read + static.data("x", [4]), output=total)
    scope, executor = static.Scope(), static.Executor(engine="compiled")
    executor.run(startup, scope=scope)
    feed = {"x": np.ones(4, "float32")}
    at_once(lambda number: [executor.run(program, feed, scope=scope) for _ in range(TIMES)] and None)
    assert scope.value(total.name).tolist() == [THREADS * TIMES] * 4


def test_threads_compile_the_same_source_and_leave_blas_its_threads():
    main, y = built()
    before, sources = blas.threads(), set()
    executor = static.Executor(engine="compiled")

    def work(number: int) -> None:
        sources.add(compile_program(main, [y.name]).source.text)
        for _ in range(TIMES):
            executor.run(main, {"x": FEEDS[number]}, [y])

    at_once(work)
    assert len(sources) == 1
    assert blas.threads() == before
    assert {count for _, count in blas._counts()} == {before}


def test_blas_has_one_thread_until_its_last_user_has_released_it():
    before = blas._counts()
    for user in ("first", "second"):
        blas.limit(user)
        assert {count for _, count in blas._counts()} == {1}
        assert blas.threads() == max(count for _, count in before)
    blas.release("first")
    assert {count for _, count in blas._counts()} == {1}
    for _ in range(2):
        blas.release("second")
        assert blas._counts() == before


def test_each_worker_has_one_job_at_a_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(threads, "_idle", [])
    together, met = threading.Barrier(2 * THREADS), []

    def job(number: int) -> None:
        with suppress(threading.BrokenBarrierError):
            together.wait(10)  # for the jobs of all threads, which run at once only on workers of their own
            met.append(number)

    def work(number: int) -> None:
        for _ in range(TIMES):
            threads.on_threads(lambda number: number and job(number), 3, runtime.sharing(3))

    at_once(work)
    assert sorted(met) == [1] * (THREADS * TIMES) + [2] * (THREADS * TIMES)


def test_the_same_workers_do_one_job_after_another_and_jobs_inside_jobs():
    seen: list[tuple[int, int]] = []

    def job(number: int) -> None:
        seen.append((number, threading.get_ident()))

    def outer(number: int) -> None:
        threads.on_threads(job, 2, runtime.sharing(2))

    for _ in range(2):
        threads.on_threads(job, 4, runtime.sharing(4))
    assert len({thread for number, thread in seen if number}) == 3
    threads.on_threads(outer, 2, runtime.sharing(2))
    assert sorted(number for number, _ in seen) == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3]


# --- One call inside another, on one thread ---


def test_an_operator_may_run_the_program_that_it_is_part_of():
    executor, depth = static.Executor(engine="compiled"), [0]

    def again(a: np.ndarray) -> np.ndarray:
        if depth[0] == 0:
            depth[0] += 1
            executor.run(program, {"x": np.full((3, 8), 9, "float32")}, [y])
            depth[0] -= 1
        return a + 0

    program = static.Program()
    with static.program_guard(program, static.Program()):
        before = app.tanh(static.data("x", [None, 8]))
        y = chain(static.py_func(again, before, spec_of(before)) * before)
    for x in FEEDS[:3]:
        expected = in_numpy(np.tanh(x) ** 2)
        np.testing.assert_allclose(executor.run(program, {"x": x}, [y])[0], expected, rtol=1e-4, atol=1e-5)


def test_a_signal_handler_may_run_the_program_that_is_being_compiled(monkeypatch):
    main, y = built(lambda x: x * 1.03125)
    executor, make = static.Executor(engine="compiled"), native_code.NativeCode._make

    def interrupted(code: native_code.NativeCode) -> None:
        monkeypatch.setattr(native_code.NativeCode, "_make", make)
        signal.raise_signal(signal.SIGALRM)
        make(code)

    seen: list[np.ndarray] = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(executor.run(main, {"x": FEEDS[1]}, [y])[0]))
    monkeypatch.setattr(native_code.NativeCode, "_make", interrupted)
    try:
        seen.append(executor.run(main, {"x": FEEDS[2]}, [y])[0])
    finally:
        signal.signal(signal.SIGALRM, before)
    for value, x in zip(seen, FEEDS[1:3], strict=True):
        np.testing.assert_allclose(value, in_numpy(x * np.float32(1.03125)), rtol=1e-4, atol=1e-5)


def test_a_signal_handler_may_run_the_program_that_is_running():
    main, y = built(lambda x: static.py_func(lambda a: a + 0, x, spec_of(x)))
    executor = static.Executor(engine="compiled")
    executor.run(main, {"x": FEEDS[0]}, [y])
    seen: list[np.ndarray] = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(executor.run(main, {"x": FEEDS[1]}, [y])[0]))
    try:
        for run in range(300):
            # One signal for each run: a slow machine would nest the handlers of a repeated one without end.
            signal.setitimer(signal.ITIMER_REAL, 1e-5 * (1 + run % 100))
            value = executor.run(main, {"x": FEEDS[2]}, [y])[0]
            np.testing.assert_allclose(value, in_numpy(FEEDS[2]), rtol=1e-4, atol=1e-5)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen
    for value in seen:
        np.testing.assert_allclose(value, in_numpy(FEEDS[1]), rtol=1e-4, atol=1e-5)
