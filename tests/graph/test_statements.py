"""Watching a network being built: each statement is shown with what it put into the two Programs."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

import pytest

import app
from app import static
from app.graph.build import _watchers


def added(statement: Any) -> tuple[list[str], list[str]]:
    """What a statement added, without the programs' names."""
    return tuple([line[9:] for line in part.lines("")] for part in (statement.startup, statement.main))


def test_each_line_of_the_documented_network_adds_only_what_it_needs():
    with static.watch() as watched:
        data = static.data("X", shape=[None, 1], dtype="float32")
        hidden = static.nn.fc(data, size=10)
        loss = app.mean(hidden)
        app.optimizer.SGD(learning_rate=0.01).minimize(loss)
    first, layer, mean, minimize = watched.statements
    assert first.text == 'data = static.data("X", shape=[None, 1], dtype="float32")'
    assert added(first) == ([], ["var X : float32[-1, 1] data stop_gradient"])
    startup, main = added(layer)
    assert startup[:2] == ["var fc_0.w_0 : float32[1, 10] persistable", "var fc_0.b_0 : float32[10] persistable"]
    assert startup[2].startswith("fc_0.w_0 = uniform_random(shape=(1, 10), min=-0.738")
    assert startup[3] == "fc_0.b_0 = fill_constant(shape=(10,), value=0.0)"
    assert main == [
        "param fc_0.w_0 : float32[1, 10] persistable",
        "var matmul.out_0 : float32[-1, 10]",
        "param fc_0.b_0 : float32[10] persistable",
        "var add.out_0 : float32[-1, 10]",
        "matmul.out_0 = matmul(X, fc_0.w_0)",
        "add.out_0 = add(matmul.out_0, fc_0.b_0)",
    ]
    assert added(mean) == ([], ["var mean.out_0 : float32[]", "mean.out_0 = mean(add.out_0)"])
    assert minimize.text == "app.optimizer.SGD(learning_rate=0.01).minimize(loss)"
    assert added(minimize) == (
        ["var learning_rate_0 : float32[] persistable", "learning_rate_0 = fill_constant(shape=(), value=0.01)"],
        [
            "var mean.out_0@GRAD : float32[] stop_gradient",
            "var add.out_0@GRAD : float32[-1, 10]",
            "var fc_0.b_0@GRAD : float32[10]",
            "var fc_0.w_0@GRAD : float32[1, 10]",
            "var learning_rate_0 : float32[] persistable stop_gradient",
            "mean.out_0@GRAD = full_like(mean.out_0, fill_value=1)",
            "add.out_0@GRAD = spread(mean.out_0@GRAD, add.out_0, share=True)",
            "fc_0.b_0@GRAD = sum_to(add.out_0@GRAD, shape=(10,))",
            "fc_0.w_0@GRAD = matmul(X, add.out_0@GRAD, transpose_x=True)",
            "fc_0.w_0 = sgd(fc_0.w_0, fc_0.w_0@GRAD, learning_rate_0)",
            "fc_0.b_0 = sgd(fc_0.b_0, fc_0.b_0@GRAD, learning_rate_0)",
        ],
    )
    assert watched.startup is static.default_startup_program()


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


def twice(x: Any) -> Any:
    x = app.tanh(x)
    return app.exp(x)


def test_statements_of_functions_and_of_each_round_of_a_loop_are_listed():
    with static.watch() as watched:
        x = static.data("x", [3])
        for _ in range(2):
            x = twice(x)
    assert [s.text for s in watched.statements[1:]] == ["x = app.tanh(x)", "return app.exp(x)"] * 2


def test_other_files_can_be_watched(tmp_path: Path):
    file = tmp_path / "net.py"
    file.write_text("import app\ndef net(x):\n    return app.tanh(x)\n")
    inside: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), inside)
    with static.watch(str(file)) as watched:
        inside["net"](static.data("x", [3]))
    assert [(Path(s.file).name, s.line, s.text) for s in watched.statements] == [
        ("elsewhere", 0, ""),
        ("net.py", 3, "return app.tanh(x)"),
    ]


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
