"""Ctrl-C in two steps."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.command_line import Stopped
from app.run.interruption import Interruption


def send(*signals):
    for number in signals:
        os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    ("signals", "printed"),
    [
        ([signal.SIGINT], "\nStopping. Press Ctrl-C again to stop immediately.\n"),
        ([signal.SIGTERM], "Stopping. A second signal stops immediately.\n"),
        ([signal.SIGHUP, signal.SIGHUP], "Stopping. A second signal stops immediately.\n"),  # a terminal is closed
    ],
)
def test_a_first_signal_is_raised_by_the_next_check(capfd, signals, printed):
    with pytest.raises(KeyboardInterrupt) as stopped, Interruption() as interruption:  # noqa: PT012
        send(*signals)
        state = interruption.noted, interruption.struck
        interruption.check()
    assert state == (True, False)
    assert stopped.type is Stopped
    assert stopped.value.number == signals[0]
    assert capfd.readouterr().err == printed


@pytest.mark.parametrize("signals", [[signal.SIGINT, signal.SIGINT], [signal.SIGHUP, signal.SIGTERM]])
def test_a_second_signal_is_raised_at_once(signals):
    with pytest.raises(KeyboardInterrupt), Interruption():  # noqa: PT012
        send(*signals)
        pytest.fail("it should have been interrupted")


def test_a_signal_without_a_check_is_raised_at_the_end_unless_an_error_is():
    with pytest.raises(KeyboardInterrupt), Interruption():
        send(signal.SIGINT)
    with pytest.raises(ValueError, match="mine"), Interruption():  # noqa: PT012
        send(signal.SIGINT)
        raise ValueError("mine")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda number, frame: None], ids=["ignored", "handled"])
def test_a_handler_of_the_program_is_kept(handler):
    before = signal.signal(signal.SIGINT, handler)
    try:
        with Interruption():
            assert signal.getsignal(signal.SIGINT) is handler
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_can_train_too():
    def work():
        with Interruption() as interruption:
            interruption.check()  # raises nothing without a signal
        return "done"

    with ThreadPoolExecutor(1) as executor:
        assert executor.submit(work).result() == "done"
