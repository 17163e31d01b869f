"""Work in a forked process: its messages, and how it ended."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import app
from app.checking.before_training import check_gradient
from app.checking.examples import inputs_for
from app.checking.operators import user_operator
from app.checking.processes import End, values_of
from app.checking.undisturbed import undisturbed
from app.errors import BoundsError


def received(work: Callable[[], Iterable[Any]], patience: float = 30.0) -> tuple[list[Any], End]:
    *values, end = values_of(work, patience)
    return values, end


def test_values_of_any_size_come_in_order():
    contents = [None, b"a", bytes(300_000), ["z"]]
    assert received(lambda: contents) == (contents, End())


def raises() -> None:
    raise ValueError("no such number")


@pytest.mark.parametrize(
    ("work", "problem", "crashed"),
    [
        (
            lambda: ctypes.string_at(0),
            "it ends the process, with SIGSEGV: native code uses memory that is not its own; call it",
            True,
        ),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "with SIGKILL: perhaps the memory was not enough: try", True),
        (lambda: os._exit(3), "it ends the process, with status 3: raise an error in place of os._exit", True),
        (lambda: time.sleep(60), "it did not end within 0.5 seconds: try smaller inputs", False),
        (raises, "it raises ValueError: no such number", False),
        (lambda: exit(2), "it raises SystemExit 2", False),
    ],
)
def test_how_work_ends_is_told_with_what_to_do(work: Any, problem: str, crashed: bool):
    def work_after_a_value() -> Iterator[bytes]:
        yield b"first"
        work()

    values, end = received(work_after_a_value, 0.5 if "0.5" in problem else 30)
    assert values == [b"first"]
    assert problem in end.problem
    assert end.crashed is crashed


def crashing(x: Any) -> Any:
    return x if x.shape == (1, 1) else ctypes.string_at(0)


@pytest.mark.slow
def test_an_operator_that_would_end_the_command_is_refused_before_it_does():
    operator = app.custom_op(crashing, infer=lambda x: x)
    with pytest.raises(BoundsError, match=r"run as Python, it ends the process, with SIGSEGV: .* call it by yourself"):
        inputs_for(user_operator(operator, "crashing"))
    operator.backward(lambda dy: dy)
    checked = check_gradient(operator, "crashing")
    assert checked is not None
    assert checked.wrong
    assert "it ends the process, with SIGSEGV" in checked.words


def process_of(*_: Any) -> int:
    return os.getpid()


def name_of(one: Any) -> str:
    return one.name


def test_all_questions_about_an_operator_go_to_one_process_until_it_ends():
    one = user_operator(app.relu, "relu")
    process = one.python_process
    first, again, here = (process.ask(process_of, bytes(300_000)) for _ in range(3))
    assert first == again == here != os.getpid()
    assert process.ask(name_of, one) == "relu"
    assert "SIGKILL" in process.ask(signal.raise_signal, signal.SIGKILL).problem
    second = process.ask(process_of)
    assert second != first
    assert undisturbed(lambda process=process: process.close() or b"done", 30) == b"done"  # forked from this
    assert process.ask(process_of) == second
    with ThreadPoolExecutor() as threads:  # a process ends with the thread that has started it
        assert threads.submit(process.ask, process_of).result() != second
    unpicklable = process.ask(process_of, lambda: None)
    assert unpicklable != os.getpid()
    pipes = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    del one, process
    assert not pipes or len(os.listdir("/proc/self/fd")) == pipes - 2


def test_nothing_that_work_prints_is_shown(capfd: pytest.CaptureFixture[str]):
    def prints() -> list[Any]:
        os.write(1, b"to standard output")
        os.write(2, b"to standard error")
        return []

    assert received(prints) == ([], End())
    assert capfd.readouterr() == ("", "")
