"""The picture of a Program: everything is in it, nothing overlaps, and every text has room."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest
import svg_reading
from svg_reading import Drawing

import app
from app import static
from app.errors import AppError
from app.graph.program import Block, Program
from app.inspection.picture import draw
from app.inspection.picture.boxes import columns_of


def seed_network() -> Any:
    image, label = static.data("image", [None, 784]), static.data("label", [None, 1], "int64")
    scores = static.nn.fc(static.nn.fc(image, 100, activation="custom.relu"), 10)
    loss = app.nn.functional.cross_entropy(scores, label)
    app.optimizer.SGD(0.01).minimize(loss)
    return loss


def deep_network() -> Any:
    x = static.data("x", [None, 8])
    for _ in range(30):
        x = app.tanh(static.nn.fc(x, 8))
    loss = app.mean(x)
    app.optimizer.Momentum(0.01).minimize(loss)
    return loss


def network_with_branches() -> Any:
    h = static.nn.fc(static.data("x", [None, 4]), 4)
    y = static.nn.cond(app.sum(h) > 0.0, lambda: app.tanh(h) * 2.0, lambda: app.exp(h))
    i, n = app.zeros([], "int64") + 0, static.data("n", [], "int64")

    def again(i: Any, y: Any) -> list[Any]:
        return [i + 1, static.nn.cond(app.mean(y) > 0.0, lambda: y * 0.5, lambda: y + 1.0)]

    with app.graph.static_mode():
        i = app.full([], 0, "int64")
    _, y = static.nn.while_loop(lambda i, y: i < n, again, [i, y])
    loss = app.mean(y)
    app.optimizer.SGD(0.1).minimize(loss)
    return loss


def nothing() -> None:
    pass


def odd_names() -> Any:
    x = static.data("a<b>&'\"", [None, 3])
    y = static.data("y" * 90, [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
    with app.graph.static_mode():
        app.assign([float(i) for i in range(500)])
    return app.mean(x) + app.sum(y)


def picture_of(build: Any) -> tuple[Program, Drawing]:
    build()
    program = static.default_main_program()
    return program, svg_reading.read(draw(program, "a title"))


def contents(block: Block) -> tuple[list[str], list[str]]:
    """The operators of a block and of the blocks inside, and their variables."""
    operators, variables = [str(op) for op in block.ops], list(block.vars)
    for op in block.ops:
        for body in op.bodies.values():
            more = contents(body.block)
            operators, variables = operators + more[0], variables + more[1]
    return operators, variables


@pytest.mark.parametrize("build", [seed_network, deep_network, network_with_branches, nothing, odd_names])
def test_every_operator_and_variable_is_drawn_texts_fit_and_arrows_lead_to_readers(build: Any):
    program, drawing = picture_of(build)
    operators, variables = contents(program.global_block())
    assert sorted(box.title for box in drawing.boxes if box.kind in ("operator", "custom")) == sorted(operators)
    everything = "\n".join(box.text for box in drawing.boxes)
    for name in variables:
        assert re.sub(r"\s", "", name) in everything
    assert [(one.title, one.overflowing()) for one in [*drawing.shown, drawing.page] if one.overflowing()] == []
    arrows = [arrow for column in columns_of(program.global_block()) for arrow in column.arrows]
    for source, target in arrows:
        names = source.title.partition(" = ")[0].split(", ") if source.is_operator else [source.title]
        assert any(name in target.title.partition(" = ")[2] or name in target.title for name in names)
    assert len(arrows) >= len(program.global_block().ops) / 3


def test_custom_operators_are_marked_and_named_in_the_legend():
    _, drawing = picture_of(seed_network)
    custom = [box for box in drawing.boxes if box.kind == "custom"]
    assert sorted(box.texts[0][3] for box in custom) == ["py_func.relu_forward", "py_func.relu_forward_grad"]
    assert all("relu.py:" in box.text for box in custom)
    assert "custom operator" in [text for *_, text in drawing.page.texts]
    assert "custom operator" not in draw(Program(), "empty")


def test_operators_inside_another_are_drawn_in_a_frame_in_its_box():
    _, drawing = picture_of(network_with_branches)
    boxes = [box for column in columns_of(static.default_main_program().global_block()) for box in column.boxes]
    frames = {
        lines[0]: columns for box in boxes if box.title.startswith("while_loop.out_0") for lines, columns in box.frames
    }
    assert sorted(frames) == ["body: block 4", "cond: block 3"]
    (inner,) = (box for column in frames["body: block 4"] for box in column.boxes if box.rows[0].text == "cond")
    assert [sum(len(column.boxes) for column in columns) for _, columns in inner.frames] == [3, 3]
    assert {"body: block 4", "cond: block 3"} < {box.texts[0][3] for box in drawing.shown if box.kind == "frame"}


def test_a_long_program_is_drawn_in_columns_and_distant_variables_are_named():
    _, drawing = picture_of(deep_network)
    headings = [box.texts[0][3] for box in drawing.shown if box.kind == "column"]
    assert [h for h in sorted(headings) if h.startswith("forward")] == ["forward 1/3", "forward 2/3", "forward 3/3"]
    assert drawing.page.height < 5000
    assert max(box.width for box in drawing.boxes) < 260
    gradient = next(box for box in drawing.boxes if box.title.startswith("tanh.out_28@GRAD = "))
    assert "←fc_29.w_0" in gradient.text


def test_every_colour_has_a_dark_form_and_drawing_is_deterministic():
    seed_network()
    text = draw(static.default_main_program(), "")
    assert text == draw(static.default_main_program().clone(), ""), "it is drawn the same again"
    drawn, style = text[text.index("</style>") :], text[: text.index("</style>")]
    assert "@media (prefers-color-scheme: dark)" in style
    for use, color in set(re.findall(r'(fill|stroke)="(#\w+|black|white)"', drawn)):
        assert f'[{use}="{color}"]' in style, (use, color)


def test_without_the_package_for_pictures_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    seed_network()
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    with pytest.raises(AppError, match=r"^a picture needs .*: pip install pygraphviz"):
        draw(static.default_main_program(), "")
