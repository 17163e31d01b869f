"""All threads run the Programs of these tests, however small they are."""

from __future__ import annotations

import pytest

from app.engine.compiled import threads


@pytest.fixture(autouse=True)
def _all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shared out among threads goes wrong, if it does, in small Programs as well as in large ones."""
    monkeypatch.setattr(threads, "FOR_EACH", 1)
