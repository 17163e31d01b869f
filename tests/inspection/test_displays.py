"""What notebooks show: pictures and tables, in which the user's text stays text."""

from __future__ import annotations

import html
import re
from typing import Any

import numpy as np
import pytest

import app
from app.checking.findings import Findings
from app.checking.verdict import FAILED, Verdict
from app.display import Displayed
from app.inspection import displays

HOSTILE = '<img src=x onerror="alert(1)">'


def shown(value: Displayed) -> str:
    """The HTML of an object without its style."""
    page = value._repr_html_()
    assert page is not None
    style, _, rest = page.partition("</style>")
    assert style.startswith("<style>")
    return rest


@app.custom_op(elementwise=True)
def softened(x: Any) -> Any:
    return x / (1.0 + np.exp(-x))


def test_an_operator_shows_its_source_its_gradient_and_its_curves():
    page = shown(softened)
    assert "def softened(x" in page
    assert "def softened_grad(x" in page
    assert "<svg" not in page, "notebooks remove it from outputs that they do not trust"
    assert re.findall(r'<img src="data:image/svg.*? alt="(.*?)"', page) == [
        "softened: values against x, a curve each for f(x), f'(x), finite differences"
    ]


def test_the_plot_of_an_operator_shows_that_its_gradient_is_not_that_of_finite_differences():
    @app.custom_op(elementwise=True)
    def cube(x: Any) -> Any:
        return x**3

    @cube.backward
    def cube_grad(x: Any, dy: Any) -> Any:
        return x**2 * dy

    chart = displays._plot(cube)
    assert chart is not None
    slope, differences = ([point[1] for point in line.points] for line in chart.lines[1:])
    np.testing.assert_allclose(differences, np.multiply(3, slope), atol=1e-6)
    assert [line.faint for line in chart.lines] == [False, False, True]


def test_an_operator_of_arrays_shows_its_source_alone():
    @app.custom_op
    def halves(x: Any, y: Any) -> Any:
        return (x + y) / 2

    page = shown(halves)
    assert "def halves(x" in page
    assert "<figure" not in page
    assert app.relu._repr_html_() is None


def test_a_program_shows_the_picture_of_inspect_or_its_text(monkeypatch: pytest.MonkeyPatch):
    program = app.static.Program()
    assert "Program" not in shown(program).replace('alt="', "")
    with app.static.program_guard(program, app.static.Program()):
        app.tanh(app.static.data("x", [None, 3]))
    assert re.match(r'<div class="opsmith"><img src="data:image/svg\+xml;base64,\w', shown(program))
    monkeypatch.setattr(displays, "MOST_OPERATORS", 0)
    assert html.escape(str(program), quote=False) in shown(program)


def test_a_tensor_shows_the_ends_of_its_rows_and_columns():
    page = shown(app.to_tensor(np.arange(2000.0).reshape(2, 20, 50)))
    assert "<b>Tensor 2 × 20 × 50</b> float64; the first of 2 matrices" in page
    cells = re.findall(r"<td>(.*?)</td>", page)
    assert cells[:9] == ["0", "1", "2", "3", "…", "46", "47", "48", "49"][:9]
    assert "mean 999.5, from 0 to 1999" in page
    assert ">mean 1, from 1 to 1; 1 of 2 NaN or infinite<" in shown(app.to_tensor([1.0, np.nan]))
    assert ">1 of 1 NaN or infinite<" in shown(app.to_tensor([np.inf]))
    for large in (np.full(4, 1e308), np.full(4, 1e38, np.float32)):
        assert f"mean {large[0]:.4g}, from" in shown(app.to_tensor(large))
    assert app.to_tensor(1.0)._repr_html_() is None


def test_findings_list_failures_and_escape_text():
    page = shown(Findings(HOSTILE, [Verdict(FAILED, HOSTILE, "runs")]))
    assert HOSTILE not in page
    assert page.count("&lt;img src=x") == 2
    assert "1 of 1 FAILED" in page
    assert "all checks passed" in shown(app.check(softened, only=["gradient"]))


def test_no_rule_of_the_style_reaches_outside():
    style = displays._style()
    outer, depth = "", 0
    for part in re.split(r"([{}])", style):
        depth += {"{": 1, "}": -1}.get(part, 0)
        outer += part if depth == 0 and part not in "{}" else ""
    rules = [rule.strip() for rule in outer.split("  ") if rule.strip()]
    assert depth == 0
    assert all(".opsmith" in rule or rule.startswith("@media") for rule in rules), rules
