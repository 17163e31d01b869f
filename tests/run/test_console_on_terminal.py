"""What a user sees: train.py on a terminal, through an emulator of one, while it runs and when it has ended."""

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

import pyte
import pytest
from forked import PIPE
from runs_of_train import without_waits

pytestmark = pytest.mark.slow

WORDS = (
    *("train.epochs=3", "train.batch_size=8", "train.log_every=3", "model.hidden=[5]", "engine=reference"),
    *("costs=false", "report=false", "output=run"),
)


class Terminal:
    """train.py on a terminal of its own, and the screen of that."""

    def __init__(self, start, words, columns=100, term="xterm-256color", rows=40, **options):
        self.master, its_end = pty.openpty()
        fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.drawn = b""
        self.seen = []
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
            for part in re.split(rb"(?=\r\x1b\[J)", piece):  # one drawing of the live lines after the other
                self._stream.feed(part)
                self.seen.append(self.lines)
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


def test_live_lines_stand_below_the_epochs_and_leave_only_the_summary(terminal):
    run = terminal()
    lines = without_waits("\n".join(run.end())).split("\n")
    start = next(i for i, line in enumerate(lines) if "epoch 1/3" in line)
    epoch = "{}  epoch 0/0  test accuracy 0.0000  test loss 0.0000  0.000 s"
    assert masked(lines[start : start + 6]) == [epoch.format("custom.relu"), epoch.format("relu       ")] * 3
    assert [line.split()[:1] for line in lines[start + 6 : -2]] == [[], ["operator"], ["custom.relu"], ["relu"]]
    assert lines[-2:] == ["", "The run is in run/"]
    assert not any("images/s" in line or "iteration" in line for line in lines)
    # While it went on, there was a live line for each operator below what was printed.
    live = re.compile(
        r"^(custom\.relu|relu       )  epoch \d/3 +\d+%  loss \S+  accuracy \S+  \S+ images/s  \S+( left)?$"
    )
    most = max(([line for line in lines if live.match(line)] for lines in run.seen), key=len)
    assert [line.split()[0] for line in most] == ["custom.relu", "relu"]
    for lines in run.seen:
        places = [i for i, line in enumerate(lines) if "images/s" in line or "waiting" in line]
        assert places == list(range(len(lines) - len(places), len(lines)))  # at the bottom
        assert len(places) <= 2


@pytest.mark.parametrize("columns", [40, 8])
def test_a_narrow_terminal_wraps_no_live_line_and_breaks_others_between_words(terminal, columns):
    run = terminal(columns=columns, rows=200)
    lines = without_waits("\n".join(run.end())).split("\n")
    text = " ".join(" ".join(lines).split())
    assert "The run is in run/" in text
    assert not re.search(r"images/s|left|waits|\d%", text)
    for seen in run.seen:
        assert len([line for line in seen if re.search(r"^custom\.r\S*  (\d/3  loss|waits)", line)]) <= 1
    if columns == 40:
        shown = re.compile(r"^custom\.relu  \d/3  loss \d\.\d{4}  \S+( left)?$", re.M)
        assert any(shown.search("\n".join(seen)) for seen in run.seen)
        table = ["  test accuracy  0.0000", "  seconds per epoch (median)  0.000", "  ratio  0.00"]
        *first, ratio = masked(lines[-10:-6])
        assert first == ["custom.relu", *table[:2]]
        assert re.match(r"  ratio  0+\.00 \(", ratio)
        assert masked(lines[-6:]) == ["relu", *table, "", "The run is in run/"]


def test_ctrl_c_leaves_a_clean_screen(terminal):
    run = terminal("train.epochs=10000")
    run.read(until="images/s")
    os.write(run.master, b"\x03")
    lines = run.end(status=130)
    assert "Stopping. Press Ctrl-C again to stop immediately." in lines
    assert lines[-1] == "interrupted"
    assert not any("images/s" in line or "^C" in line for line in lines)


def test_a_log_has_no_control_characters_while_the_terminal_shows_the_live_lines(terminal, tmp_path):
    with (tmp_path / "log.txt").open("w") as log:
        run = terminal(stdout=log)
        assert run.end() == [""]  # all that was there is erased
    assert b"images/s" in run.drawn
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
