"""Signals while native code that never returns keeps Python from handling them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import forked
import launches
import pytest

from app import signals

pytestmark = pytest.mark.slow

ROOT = Path(signals.__file__).parents[1]
LAST_WORDS = "interrupted\n"

STUCK = """
import ctypes, os

STUCK_AT = int(os.environ["STUCK_AT"])

def wait_for_ever():
    print("stuck", flush=True)
    mutex, native = ctypes.create_string_buffer(128), ctypes.PyDLL(None)  # which holds on to the interpreter
    native.pthread_mutex_lock(mutex)
    native.pthread_mutex_lock(mutex)  # goes on waiting after each signal
"""
OPERATOR = """
import numpy as np
import app

@app.custom_op
def stuck(x):
    if x.shape[0] >= STUCK_AT:
        wait_for_ever()
    return np.array(x)

@stuck.backward
def _(dout):
    return dout
"""
ENDLESS = """
import numpy as np
from numba import njit
import app
from app.signals import ends_at_once

@njit
def endless(x):
    out = x.copy()
    if x.shape[0] == 50:
        print("stuck")
        while out.size:
            out += 1
    return out

x = app.static.data("x", [None])
y = app.custom_op(endless)(x)
with ends_at_once(patience=1):
    app.static.Executor(engine="compiled").run(feed={"x": np.ones(50, "float32")}, fetch_list=[y])
"""
TINY = ("train.epochs=1", "train.batch_size=50", "model.hidden=[5]", "data.source=sample", "baseline=null")
TRAIN = (str(ROOT / "train.py"), "model.activation=ops.py:stuck", "output=run", "engine=reference", *TINY)
SETTINGS = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "STUCK_AT": "50"}

Process = forked.Command | subprocess.Popen[str]
Begin = Callable[..., Process]


@pytest.fixture(autouse=True)
def operator(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(STUCK + OPERATOR)


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Starts a command or a script, and waits until it is inside native code that does not return."""
    begun = []

    def begin(*words: str, stderr: int = subprocess.PIPE, **settings: str) -> Process:
        env = {**os.environ, **SETTINGS, **settings}
        process: Process
        if words[0] == "-c":  # Numba prints by C, where PYTHONUNBUFFERED counts at the start of an interpreter
            words = (sys.executable, *words)
            process = subprocess.Popen(words, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=stderr, text=True)
        else:
            process = forked.start(words, cwd=tmp_path, env=env, stderr=stderr)
        begun.append(process)
        wait_until_stuck(process)
        return process

    yield begin
    for process in begun:
        process.kill()


def wait_until_stuck(process: Process) -> None:
    assert process.stdout is not None
    read = ""
    while "stuck\n" not in read:
        line = process.stdout.readline()
        assert line, f"it ended with:\n{read}{process.communicate()[1]}"
        read += line
    time.sleep(0.1)


def send(process: Process, *numbers: int) -> None:
    for number in numbers:
        process.send_signal(number)
        time.sleep(0.1)  # two that wait to be delivered are one


def assert_end(statuses: dict[Process, int]) -> None:
    """All end with these statuses and the last words, and well before a native call could have ended."""
    for process, status in statuses.items():
        _, err = process.communicate(timeout=10)
        assert (process.returncode, err) == (status, LAST_WORDS)


def test_ctrl_c_ends_native_code_only_inside_ends_at_once(begin: Begin):
    without = begin("-c", STUCK + "wait_for_ever()")
    within = begin("-c", STUCK + "from app.signals import ends_at_once\nwith ends_at_once(): wait_for_ever()")
    send(without, signal.SIGINT, signal.SIGINT)
    send(within, signal.SIGINT)
    assert_end({within: 130})
    assert without.poll() is None


def test_training_ends_at_the_second_signal_in_native_code(begin: Begin, tmp_path: Path):
    ends = {
        (signal.SIGINT, signal.SIGINT): 130,
        (signal.SIGTERM, signal.SIGTERM): 143,
        (signal.SIGINT, signal.SIGTERM): 143,
        (signal.SIGHUP, signal.SIGHUP): 129,
    }
    processes = {begin(*TRAIN, f"output=run{number}"): numbers for number, numbers in enumerate(ends)}
    begun = time.monotonic()
    for at in (0, 1):
        for process, numbers in processes.items():
            process.send_signal(numbers[at])
        time.sleep(0.1)
    assert_end({process: ends[numbers] for process, numbers in processes.items()})
    assert time.monotonic() - begun < signals.GRACE + 4
    assert not list(tmp_path.rglob("*.tmp"))


def test_progress_on_a_terminal_is_cleared(begin: Begin, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = os.openpty()
    process = begin(*TRAIN, stderr=theirs)
    os.close(theirs)
    send(process, signal.SIGINT, signal.SIGINT, signal.SIGINT)
    assert process.wait(timeout=10) == 130
    assert os.read(ours, 100_000).endswith(b"\r\x1b[Jinterrupted\r\n")
    os.close(ours)


def test_an_endless_compiled_loop_ends_at_the_second_signal(begin: Begin):
    process = begin("-c", ENDLESS)
    send(process, signal.SIGINT)
    assert process.poll() is None
    send(process, signal.SIGINT)
    assert_end({process: 130})


def test_commands_end_at_the_first_ctrl_c(begin: Begin):
    commands = ("check", "ops.py:stuck"), ("inspect", "model.activation=ops.py:stuck", *TINY)
    processes = [begin("-m", "app", *words, STUCK_AT="0") for words in commands]
    for process in processes:
        send(process, signal.SIGINT)
    assert_end(dict.fromkeys(processes, 130))


def test_ranks_end_together_at_the_second_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    launch = launches.start(2, *TRAIN, "dist.shape=allreduce", folder=tmp_path)
    wait_until_stuck(launch)
    processes = [launches.process_of(rank, launch) for rank in (0, 1)]
    for _ in range(2):  # as the launchers of clusters do, where mpiexec itself kills at the second
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
        time.sleep(0.1)
    ended = launches.wait(launch, timeout=20)
    assert (ended.status, ended.messages) == (143, ["interrupted"])


def test_a_script_handles_signals_itself(begin: Begin, tmp_path: Path):
    (tmp_path / "script.py").write_text(
        "import time\nprint('stuck', flush=True)\ntry: time.sleep(60)\n"
        f"except KeyboardInterrupt: time.sleep({signals.GRACE + 0.5}); print('saved')\n"
    )
    process = begin("-m", "app", "run", "script.py")
    send(process, signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, out, err) == (0, "saved\n", "")


# --- Blocks ---


@pytest.fixture
def handled() -> Any:
    return signal.getsignal(signal.SIGINT)


def test_a_signal_that_python_handles_sets_no_alarm(handled: Any):
    with pytest.raises(KeyboardInterrupt), signals.ends_at_once():
        signal.raise_signal(signal.SIGINT)
    assert signal.alarm(0) == 0
    assert signal.getsignal(signal.SIGINT) is handled
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert signal.alarm(0) == 0


def test_an_inner_block_has_its_own_patience(handled: Any):
    assert not signals.is_command()
    heard = []
    with signals.ends_at_once():
        signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
        with signals.ends_at_once(patience=2):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            assert signals.is_command()
        assert signal.alarm(0) == 0
        signal.signal(signal.SIGINT, handled)
    assert heard == [signal.SIGINT] * 2


def test_hangups_that_arrive_together_leave_python_its_time():
    """The shell and the kernel send them, and so does a write that fails, before Python handles the first."""
    heard = []
    raised = getattr(ctypes.CDLL(None), "raise")
    before = signal.signal(signal.SIGHUP, lambda number, frame: heard.append(number))
    try:
        with signals.ends_at_once([signal.SIGHUP], patience=1):
            list(map(raised, [signal.SIGHUP] * 4))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (heard, signal.alarm(0)) == ([signal.SIGHUP], 0)


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with signals.ends_at_once():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
