"""What tests of every room may ask for, and what they all take for granted."""

from __future__ import annotations

import signal

from browser import chromium, visitor

__all__ = ["chromium", "visitor"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # as of a suite that a shell runs in the background: the programs that it starts would ignore Ctrl-C, too
    signal.signal(signal.SIGINT, signal.default_int_handler)
