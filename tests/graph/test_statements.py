"""Watching a network being built: each statement is shown with what it put into the two Programs."""

from __future__ import annotations

import linecache
from typing import Any

import pytest

import app
from app import static
from app.graph.build import _watchers


def test_printed_statements_are_followed_by_what_they_added():
    with static.watch() as watched:
        x = static.data("x", [3])
        app.mean(
            x,
        )
    line = watched.statements[0].line
    assert str(watched) == (
        f'test_statements.py:{line}  x = static.data("x", [3])\n'
        "    main     var x : float32[3] data stop_gradient\n"
        "\n"
        f"test_statements.py:{line + 1}  app.mean(\n"
        "                           x,\n"
        "                       )\n"
        "    main     var mean.out_0 : float32[] stop_gradient\n"
        "    main     mean.out_0 = mean(x)"
    )


def test_a_source_that_cannot_be_found_or_read_leaves_the_line_number(monkeypatch: pytest.MonkeyPatch):
    text = "with static.watch() as watched:\n    app.tanh(static.data('x', [3]))\n"
    for source in (None, "not ] python\n" * 3):
        inside: dict[str, Any] = {"static": static, "app": app}
        if source:
            lines = source.splitlines(keepends=True)
            monkeypatch.setitem(linecache.cache, "<a notebook>", (len(source), None, lines, "<a notebook>"))
        exec(compile(text, "<a notebook>", "exec"), inside)
        assert {s.line for s in inside["watched"].statements} == {2}


def test_operators_of_a_branch_are_listed_with_their_block():
    x = static.data("x", [None, 2])
    with static.watch() as watched:
        static.nn.cond(
            app.sum(x) > 0.0,
            lambda: app.tanh(x),
            lambda: app.exp(x),
        )
    lines = [line for s in watched.statements for line in s.main.lines("main")]
    assert "block 1  tanh.out_0 = tanh(x)" in lines
    assert "block 2  exp.out_0 = exp(x)" in lines
    assert not any("var x" in line for line in lines)


def test_watching_ends_with_the_block_even_after_an_error():
    def build() -> None:
        with watched:
            static.data("x", [3])
            raise ZeroDivisionError

    watched = static.watch()
    with pytest.raises(ZeroDivisionError):
        build()
    static.data("y", [3])
    assert len(watched.statements) == 1
    assert _watchers.get() == ()
