"""What a user sees: train.py on a terminal, through an emulator of one, while it runs and when it has ended."""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from unittest.mock import Mock

import pyte
import pytest
from forked import PIPE
from tqdm import tqdm

from app.run import console
from app.run.callbacks import Position

pytestmark = pytest.mark.slow

WORDS = (
    *("train.epochs=3", "train.batch_size=8", "train.log_every=3", "model.hidden=[5]", "engine=reference"),
    *("costs=false", "report=false", "check=false", "output=run"),
)


class Terminal:
    """train.py on a terminal of its own, and the screen of that."""

    def __init__(self, start, words, columns=100, term="xterm-256color", rows=40, **options):
        self.master, its_end = pty.openpty()
        fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.drawn = b""
        options = {"stdin": its_end, "stdout": its_end, "stderr": its_end, "terminal": True} | options
        environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
        self.process = start(*words, env=environment | {"TERM": term}, **options)
        os.close(its_end)

    def read(self, until="", seconds=60):
        """Take in what is drawn, until a text is on the screen or the process ends."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not (until and until in "\n".join(self.screen.display)):
            if not select.select([self.master], [], [], 0.2)[0]:
                continue
            try:
                piece = os.read(self.master, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            self.drawn += piece
            self._stream.feed(piece)
        assert until in "\n".join(self.screen.display)

    @property
    def lines(self):
        """What stands on the screen."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip().split("\n")

    def end(self, status=0):
        """What stands on the screen when the process has ended with this status."""
        self.read()
        assert self.process.wait(timeout=60) == status
        return self.lines


@pytest.fixture
def terminal(start, images):
    opened = []

    def run(*words, **options):
        opened.append(Terminal(start, (f"data.source={images}", *WORDS, *words), **options))
        return opened[-1]

    yield run
    for one in opened:
        os.close(one.master)


def masked(lines):
    """Lines with every digit as 0."""
    return [re.sub(r"\d", "0", line) for line in lines]


def test_loss_and_accuracy_are_printed_above_a_bar_and_nothing_wraps_at_80_columns(terminal):
    run = terminal("data.validation=10", columns=80, rows=60)
    lines = run.end()
    start = next(i for i, line in enumerate(lines) if "epoch 1/3" in line)
    iteration = "{}  epoch 0/0  iteration 0/0  loss 0.0000  accuracy 0.0000"
    epoch = "{}  epoch 0/0  validation accuracy 0.0000  loss 0.0000  0.000 s"
    turns = ["custom.relu", "relu       ", "relu       ", "custom.relu", "custom.relu", "relu       "]
    expected = [form.format(name) for name in turns for form in (iteration, iteration, iteration, epoch)]
    assert masked(lines[start : start + 24]) == expected
    assert lines[start + 24] == ""
    assert lines[-2:] == ["", "The run is in run/"]
    assert b"batch/s" in run.drawn
    assert not any("batch/s" in line for line in lines)
    assert b"Preparing the network of relu ..." in run.drawn
    assert not any("..." in line for line in lines)


def test_a_long_name_of_an_operator_is_cut_and_not_wrapped(terminal, tmp_path):
    (tmp_path / "my_operators_of_today.py").write_text("import app\n\ndef double(x):\n    return x * 2.0\n")
    run = terminal("model.activation=my_operators_of_today.py:double", "baseline=null", columns=80, rows=60)
    lines = [line for line in run.end() if "epoch 1/3" in line]
    assert masked(lines)[0] == "…today.py:double  epoch 0/0  iteration 0/0  loss 0.0000  accuracy 0.0000"
    assert len(lines) == 4


def test_a_narrow_terminal_breaks_lines_between_words(terminal):
    run = terminal(columns=40, rows=200)
    text = " ".join(" ".join(run.end()).split())
    assert "The run is in run/" in text
    assert "batch/s" not in text


def test_ctrl_c_leaves_a_clean_screen(terminal):
    run = terminal("train.epochs=10000", columns=80)
    run.read(until="batch/s")
    os.write(run.master, b"\x03")
    lines = run.end(status=130)
    assert lines[-2:] == ["interrupted. Resume with:", "opsmith train --resume run"]
    assert not any("batch/s" in line for line in lines)


def test_the_line_of_a_bar_that_was_interrupted_while_it_was_drawn_is_erased(monkeypatch, capsys):
    monkeypatch.setattr(console, "_can_draw", lambda: True)
    shown = console.Console()
    shown._bar = Mock()
    shown.end()
    assert capsys.readouterr().err == "\r\x1b[K"


def test_a_bar_that_was_interrupted_while_it_was_drawn_for_the_first_time_is_erased(monkeypatch, capfd):
    def interrupted(self, *args, **options):
        print("0/30 [00:00<?, ?batch/s]", end="", file=sys.stderr)
        raise KeyboardInterrupt

    monkeypatch.setattr(console, "_can_draw", lambda: True)
    monkeypatch.setattr(console.os, "get_terminal_size", lambda fd: os.terminal_size((80, 24)))
    monkeypatch.setattr(tqdm, "refresh", interrupted)
    shown = console.Console()
    with pytest.raises(KeyboardInterrupt):
        shown.begin_epoch(Position(Mock(operator="relu"), epoch=0, iterations=30))
    monkeypatch.undo()
    monkeypatch.setattr(console, "_can_draw", lambda: True)
    shown.end()
    assert capfd.readouterr().err.endswith("\r\x1b[K")


def test_a_log_has_no_control_characters_while_the_terminal_shows_the_bar(terminal, tmp_path):
    with (tmp_path / "log.txt").open("w") as log:
        run = terminal(stdout=log)
        assert run.end() == [""]  # the bar is erased
    assert b"batch/s" in run.drawn
    text = (tmp_path / "log.txt").read_text()
    assert all(letter == "\n" or letter.isprintable() for letter in text)
    assert text.count("iteration") == 18
    assert text.endswith("\n\nThe run is in run/\n")


@pytest.mark.parametrize(
    ("words", "options", "first"),
    [
        ((), {"term": "dumb"}, "Data: 60"),
        ((), {"stdout": PIPE}, ""),
        ((), {"stderr": PIPE}, "Data: 60"),
        (("--quiet",), {}, "operator"),
        (("--json",), {"columns": 400}, '{"event"'),
    ],
    ids=["dumb terminal", "stdout is a pipe", "stderr is a pipe", "quiet", "json"],
)
def test_nothing_is_drawn_on_a_dumb_terminal_beside_a_pipe_or_if_unwanted(terminal, words, options, first):
    run = terminal(*words, **options)
    assert run.end()[0].startswith(first)
    assert b"\x1b" not in run.drawn
    assert b"batch/s" not in run.drawn
