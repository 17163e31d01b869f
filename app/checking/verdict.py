"""The result of a check."""

from __future__ import annotations

from dataclasses import dataclass

OK, NOTE, FAILED = "ok", "note", "FAILED"


@dataclass(frozen=True)
class Verdict:
    """One line of the output. A note is something to know that is not a mistake."""

    state: str
    words: str
    check: str = ""

    @property
    def failed(self) -> bool:
        return self.state == FAILED


def ok(message: str) -> Verdict:
    return Verdict(OK, message)


def note(message: str) -> Verdict:
    return Verdict(NOTE, message)


def failed(message: str) -> Verdict:
    return Verdict(FAILED, message)
