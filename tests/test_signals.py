"""Signals and dying parents, while an operator never returns. Every stage of every command is in tests/soak/."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from stuck_operators import ROOT, stuck

from app import signals
from app.checking.processes import End
from app.checking.undisturbed import undisturbed

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_one_signal_ends_training_in_native_code(tmp_path: Path, number: int):
    with stuck("training step", "native_lock", tmp_path) as command:
        command.send(number)
        assert command.end() == -number


def test_the_second_ctrl_c_ends_training_in_native_code(tmp_path: Path):
    with stuck("training step", "native_lock", tmp_path) as command:
        command.send(signal.SIGINT)
        time.sleep(0.3)
        assert command.process.poll() is None
        command.send(signal.SIGINT)
        assert command.end() == -signal.SIGKILL


def test_one_ctrl_c_ends_training_in_a_plain_loop(tmp_path: Path):
    with stuck("training step", "plain_loop", tmp_path) as command:
        command.send(signal.SIGINT)
        assert command.end(seconds=10) == 130  # Python ends by itself
        assert (tmp_path / "err").read_text().splitlines()[-2] == "interrupted. Resume with:"


def test_the_process_that_checks_a_gradient_dies_with_its_parent(tmp_path: Path):
    with stuck("gradient check", "native_lock", tmp_path) as command:
        command.send(signal.SIGKILL)
        assert command.end() == -signal.SIGKILL


def test_workers_in_native_code_die_with_their_parent(tmp_path: Path):
    with stuck("compare with workers", "native_lock", tmp_path) as command:
        command.send(signal.SIGKILL)
        assert command.end() == -signal.SIGKILL


def test_a_script_handles_signals_itself(tmp_path: Path):
    (tmp_path / "script.py").write_text(
        "import time\nprint('begun', flush=True)\n"
        "for _ in range(2):\n    try: time.sleep(60)\n    except KeyboardInterrupt: print('saved', flush=True)\n"
    )
    words, settings = [sys.executable, "-m", "app", "run", "script.py"], {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(words, cwd=tmp_path, env=settings, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in ("begun\n", "saved\n"):
            assert process.stdout.readline() == line
            time.sleep(0.25)
            process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "saved\n"
    assert process.returncode == 0


SLEEP = """
import signal, time
from app import signals
signals.end_at_second_interrupt()
signal.signal(signal.SIGINT, lambda *_: None)
print("begun", flush=True)
"""


def test_signals_that_arrive_together_are_one_ctrl_c():
    """A launcher may pass on the signal that the terminal has sent, too."""
    program = f"{SLEEP}time.sleep(0.3)"
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.01)
    assert process.returncode == 0


def test_a_handler_of_the_program_is_kept():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        signals.end_at_second_interrupt()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.set_wakeup_fd(-1) == -1
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("function", ["die_with_parent", "guard"])
def test_a_child_dies_with_its_parent_by_the_kernel_or_by_a_guard(function: str):
    """`guard` is for systems whose kernel does not do it."""
    program = f"""
import ctypes, os, sys, time
from app import signals
signals._LOOK = 0.1
parent = os.getpid()
if not os.fork():
    signals.{function}(parent)
    print(os.getpid(), flush=True)
    os.close(1)
    mutex, native = ctypes.create_string_buffer(128), ctypes.PyDLL(None)  # which holds on to the interpreter
    native.pthread_mutex_lock(mutex)
    native.pthread_mutex_lock(mutex)
os.close(1)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        time.sleep(0.1)
        os.kill(child, 0)
        process.kill()
    until = time.monotonic() + 3
    while is_alive(child):
        assert time.monotonic() < until
        time.sleep(0.01)


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_time_limit_of_a_check_holds_though_the_function_forks():
    def forks_and_sleeps() -> bytes:
        os.fork()
        time.sleep(60)
        return b"late"

    def leaves_a_process() -> bytes:
        if not os.fork():
            time.sleep(60)
        return b"done"

    start = time.monotonic()
    assert isinstance(undisturbed(forks_and_sleeps, 0.2), End)
    assert undisturbed(leaves_a_process, 30) == b"done"
    assert time.monotonic() - start < 5
