"""The benchmark of `to_static` runs."""

from __future__ import annotations

import pytest

from benchmarks import traced


@pytest.mark.slow
def test_all_forms_train_and_are_compared(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(traced, "ROUNDS", 1)
    monkeypatch.setattr(traced, "IMAGES", 512)
    traced.main()
    _, program, *forms = capsys.readouterr().out.splitlines()
    assert program.endswith(" 1.00")
    assert len(forms) == 2
