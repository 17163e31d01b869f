"""Names for the parts of a Program."""

from __future__ import annotations

from app import static


def test_names_made_in_a_scope_begin_with_it():
    x = static.data("x", [None, 2])
    with static.name_scope("outer"):
        static.nn.fc(x, 2)
        with static.name_scope("inner"):
            static.nn.fc(x, 2)
    static.nn.fc(x, 2, name="plain")
    names = [p.name for p in static.default_main_program().all_parameters()]
    assert names[:2] == ["outer/fc_0.w_0", "outer/fc_0.b_0"]
    assert names[2:4] == ["outer/inner/fc_0.w_0", "outer/inner/fc_0.b_0"]
    assert names[4:] == ["plain.w_0", "plain.b_0"]
