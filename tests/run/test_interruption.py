"""Ctrl-C in two steps."""

import os
import signal
import threading

import pytest

from app.command_line import Stopped
from app.run.interruption import Interruption


def press(number=signal.SIGINT):
    os.kill(os.getpid(), number)


def test_the_first_is_noted_until_there_is_a_good_moment(capfd):
    done = False
    with pytest.raises(KeyboardInterrupt), Interruption() as interruption:  # noqa: PT012
        press()
        done = True
        interruption.check()
    assert done
    assert capfd.readouterr().err == "\nStopping. Press Ctrl-C again to stop immediately.\n"


def test_the_second_strikes_at_once():
    with pytest.raises(KeyboardInterrupt), Interruption():  # noqa: PT012
        press()
        press()
        pytest.fail("it should have been interrupted")


def test_one_that_no_check_met_is_not_lost():
    with pytest.raises(KeyboardInterrupt), Interruption():
        press()


def test_errors_are_not_hidden_by_one():
    with pytest.raises(ValueError, match="mine"), Interruption():  # noqa: PT012
        press()
        raise ValueError("mine")


def test_afterwards_ctrl_c_is_what_it_was():
    before = signal.getsignal(signal.SIGINT)
    with Interruption() as interruption:
        assert signal.getsignal(signal.SIGINT) is not before
        interruption.check()  # raises nothing, as nobody pressed it
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda number, frame: None])
def test_whoever_handles_ctrl_c_otherwise_goes_on_doing_so(handler):
    before = signal.signal(signal.SIGINT, handler)
    try:
        with Interruption():
            assert signal.getsignal(signal.SIGINT) is handler
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_can_train_too():
    errors = []

    def work():
        try:
            with Interruption() as interruption:
                interruption.check()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert errors == []


def test_sigterm_is_noted_too_and_told_apart(capfd):
    with pytest.raises(Stopped) as stopped, Interruption() as interruption:  # noqa: PT012
        press(signal.SIGTERM)
        assert interruption.noted
        interruption.check()
    assert stopped.value.number == signal.SIGTERM
    assert capfd.readouterr().err == "Stopping. A second signal stops immediately.\n"


def test_sighup_may_come_twice_when_a_terminal_is_closed():
    with pytest.raises(Stopped) as stopped, Interruption() as interruption:  # noqa: PT012
        press(signal.SIGHUP)
        press(signal.SIGHUP)
        assert interruption.noted
        assert not interruption.struck
        interruption.check()
    assert stopped.value.number == signal.SIGHUP


def test_a_second_signal_after_sighup_strikes_at_once():
    with pytest.raises(Stopped), Interruption():  # noqa: PT012
        press(signal.SIGHUP)
        press(signal.SIGTERM)
        pytest.fail("it should have been interrupted")
