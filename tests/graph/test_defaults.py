"""Where statements build, and what mode holds: chosen, chosen for a block, or never chosen."""

from __future__ import annotations

import pytest

import app
from app.graph import Variable, defaults, dynamic_mode, in_dynamic_mode, static_mode, static_unless_chosen
from app.tensor import Tensor


@pytest.fixture(autouse=True)
def _nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defaults, "_static", None)


def test_values_are_made_eagerly_unless_static_mode_is_chosen():
    assert in_dynamic_mode()
    assert isinstance(app.ones([1]), Tensor)
    app.enable_static()
    assert not in_dynamic_mode()
    assert isinstance(app.ones([1]), Variable)
    app.disable_static()
    assert in_dynamic_mode()


def test_a_mode_can_be_chosen_for_a_block():
    with static_mode():
        assert not in_dynamic_mode()
        with dynamic_mode():
            assert in_dynamic_mode()
        assert not in_dynamic_mode()
    assert in_dynamic_mode()


def test_a_program_that_never_chose_can_be_static_for_a_block():
    with static_unless_chosen():
        assert not in_dynamic_mode()
    with dynamic_mode(), static_unless_chosen():
        assert in_dynamic_mode()
    app.disable_static()
    with static_unless_chosen():
        assert in_dynamic_mode()
