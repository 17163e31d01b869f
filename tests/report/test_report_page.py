"""The report without a browser: what is read from a run's folder, what is said of it, and what becomes of damage."""

from __future__ import annotations

import base64
import csv
import html
import io
import itertools
import re
import shlex
import time
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from made_runs import HOSTILE, IMAGES, compared, dataset, made_run, page_of
from PIL import Image

from app.__main__ import main
from app.errors import AppError, FileError
from app.report import pictures
from app.report.axes import Axis, around
from app.report.charts import FEW, POINTS, Chart, Line, draw, image
from app.report.markup import as_html, tag
from app.report.sections import units
from app.report.sections.units import FIRST_LAYER
from app.run import descriptions, predictions
from app.run.activation import find_activation
from app.run.config import Config, load_config
from app.run.descriptions import Curve, Description, Histogram
from app.run.folder import PREDICTIONS
from app.run.learners import make_learner
from app.run.options import DEFAULT
from app.run.record import read_run
from app.run.weights import write_weights
from app.run.wording import seconds
from app.saving import load, save


def opened(address: str) -> Any:
    return Image.open(io.BytesIO(base64.b64decode(address.removeprefix("data:image/png;base64,"))))


def tables_of(page: str) -> dict[str, list[list[str]]]:
    """The tables that a page offers as CSV, by the names of the files."""
    links = re.findall(r'href="data:text/csv;charset=utf-8;base64,([^"]*)" download="([^"]*)"', page)
    return {name: [*csv.reader(io.StringIO(base64.b64decode(text).decode()))] for text, name in links}


# --- What it writes ---


def test_the_command_writes_the_page_from_the_folder_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = made_run(tmp_path / "run")
    assert main(["report", str(folder)]) == 0
    assert capsys.readouterr().out == f"The report is {folder}/report.html\n"
    first = (folder / "report.html").read_bytes()
    assert len(first) < 200_000
    assert main(["report", str(folder)]) == 0
    assert (folder / "report.html").read_bytes() == first


def test_each_table_can_be_saved_as_csv(tmp_path: Path):
    folder = made_run(tmp_path / "run")
    page = page_of(folder)
    tables, result = tables_of(page), predictions.read_predictions(folder)
    assert len(tables) == page.count("<table")
    assert tables["costs.csv"] == [["operator", "forward", "backward"], *([o, "10 µs", t] for o, t in COSTS)]
    assert tables["accuracy.csv"][0] == ["epoch", "custom.relu, test", "relu, test"]
    assert result is not None
    matrix = tables["confusion-relu.csv"]
    for digit, row in enumerate(matrix[1:]):
        of_digit = result.labels == digit
        assert row[-1] == f"{100 * result.right('relu')[of_digit].mean():.1f}"
        assert sum(int(n) for n in row[1:-1] if n != "·") == of_digit.sum()
    assert "comparison.csv" in tables_of(page_of(compared(tmp_path / "compared")))


COSTS = (("custom.relu", "20 µs"), ("relu", "40 µs"))


def test_a_name_is_no_formula_in_a_spreadsheet(tmp_path: Path):
    page = page_of(made_run(tmp_path / "run", ("=1+1.py:f", "relu")))
    assert [row[0] for row in tables_of(page)["costs.csv"]] == ["operator", "'=1+1.py:f", "relu"]


def test_the_page_has_a_command_that_trains_the_same_again(tmp_path: Path):
    folder = made_run(tmp_path / "run", ("my ops.py:f", "relu"))
    page = html.unescape(page_of(folder))
    command = re.search(r"To train this again</h3><pre[^>]*>(.*)</pre>", page)
    assert command is not None
    program, train, *settings = shlex.split(command[1])
    assert (program, train) == ("opsmith", "train")
    assert load_config(DEFAULT, settings) == read_run(folder).config
    assert settings[0] == "model.hidden=[6]"
    of_a_cell = made_run(tmp_path / "other", ("swish", "relu"))
    assert "To train this again" not in page_of(of_a_cell)


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (Path.mkdir, "run is not the folder of a run: it has no config.yaml"),
        (Path.touch, "run"),
        (lambda path: None, "run"),
    ],
)
def test_a_folder_without_a_run_is_an_error(
    tmp_path: Path, create: Any, message: str, capsys: pytest.CaptureFixture[str]
):
    create(tmp_path / "run")
    assert main(["report", str(tmp_path / "run")]) == 1
    assert f"{tmp_path}/{message}" in capsys.readouterr().err


def test_operators_of_a_run_are_neither_run_nor_taken_for_markup_and_nothing_is_fetched(tmp_path: Path):
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\n")
    page = page_of(made_run(tmp_path / "run", (HOSTILE, f"{trap}:f")))
    assert not (tmp_path / "sprung").exists()
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(page)
    assert (tags.count("script"), tags.count("img")) == (0, page.count("data:image/png"))
    assert all(source.startswith(("data:", "#")) for source in re.findall(r'(?:src|href)="([^"]*)"', page))


def test_answers_of_later_weights_than_the_measured_ones_are_pointed_out(tmp_path: Path):
    note = "which are later than the last full epoch"
    assert note in page_of(made_run(tmp_path / "run", finished=2))
    assert note not in page_of(made_run(tmp_path / "run"))


def test_a_run_that_was_killed_at_once_has_a_report_without_answers(tmp_path: Path):
    folder = made_run(tmp_path / "run", finished=0, costs=False)
    start = (folder / "metrics.jsonl").read_text()
    (folder / "metrics.jsonl").write_text(start + '{"event": "iteration", "oper')
    page = page_of(folder)
    assert "<h1>custom.relu against relu</h1>" in page
    assert 'id="settings"' in page
    assert "Mistakes" not in page


def test_several_seeds_are_a_curve_with_a_band(tmp_path: Path):
    assert page_of(compared(tmp_path / "run")).count('class="band') >= 4


# --- Damage ---


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("[1]", "metrics.jsonl, line 2"),
        ('{"event": "epoch", "operator": "relu", "epoch": -1}', "metrics.jsonl, line 2"),
        ('{"event": "epoch", "operator": "\\ud800"}', "metrics.jsonl, line 2"),
        ('{"event": "cost", "operator": 3, "forward": 1, "backward": 1}', "Expected `str`"),
        ("\0" * 50, "metrics.jsonl, line 2"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str, problem: str):
    folder = made_run(tmp_path / "run")
    first, *others = (folder / "metrics.jsonl").read_text().splitlines()
    (folder / "metrics.jsonl").write_text("\n".join([first, line, *others, ""]))
    with pytest.raises(AppError, match=re.escape(problem)):
        read_run(folder)


def test_an_event_of_an_unknown_kind_is_an_error(tmp_path: Path):
    folder = made_run(tmp_path / "run", others=[{"event": "something new", "operator": 7}])
    with pytest.raises(
        AppError, match=r"metrics.jsonl, line 34: Invalid value 'something new' - at `\$.event`; the run wrote"
    ):
        read_run(folder)


EXTREME = ("1e308", "-1e308", "9e99", "1e-308", "-1", "0", "5000000000")


@pytest.mark.parametrize("number", [EXTREME[0], *(pytest.param(n, marks=pytest.mark.soak) for n in EXTREME[1:])])
@pytest.mark.parametrize("name", ["metrics.jsonl", "seed-1/metrics.jsonl", "operators.json"])
def test_a_report_of_any_numbers_is_written_or_refused_about_as_fast_as_another(tmp_path: Path, name: str, number: str):
    folder = compared(tmp_path / "run") if "/" in name else made_run(tmp_path / "run")
    if name == "operators.json":
        curve = Curve([-1.0, 1.0], [-2.0, 2.0], [3.0, 4.0], [3.5, 4.5])
        descriptions.write_descriptions(
            [Description("custom.relu", {"forward": "x"}, Histogram(-6.5, 7.5, [8, 9]), curve, 0.25)], folder
        )
    whole = (folder / name).read_text()
    keys = sorted(set(re.findall(r'"(\w+)": ?\[?-?[0-9]', whole)))
    assert len(keys) >= 6
    page_of(folder)  # which imports what it needs
    start = time.process_time()
    page_of(folder)
    usual = time.process_time() - start
    for key in keys:
        pattern = rf'("{key}": ?)(\[?)-?[0-9][0-9.e-]*'
        (folder / name).write_text(re.sub(pattern, rf"\g<1>\g<2>{number}", whole))
        with suppress(FileError):
            page_of(folder)
    assert time.process_time() - start - usual < 10 * usual * len(keys)


ARRAYS = (PREDICTIONS, "weights-0.safetensors")


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *itertools.product([*ARRAYS, "operators.json"], [b"", b"\x80\x04.", b"{" * 100, bytes(200)]),
        *itertools.product(ARRAYS, [slice(7), slice(1000), slice(-1)]),  # what is left of it
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, damage: bytes | slice):
    folder = made_run(tmp_path / "run")
    file = folder / name
    file.write_bytes(file.read_bytes()[damage] if isinstance(damage, slice) else damage)
    with pytest.raises(AppError, match=re.escape(name)):
        page_of(folder)


@pytest.mark.parametrize(
    ("arrays", "shape"),
    [
        ({"other": np.zeros(1)}, "missing"),
        ({FIRST_LAYER: np.zeros([1, 2, 3])}, "float64[1, 2, 3]"),
        ({FIRST_LAYER: np.zeros([3, 3], np.int8)}, "int8[3, 3]"),
    ],
)
def test_weights_without_a_first_layer_are_an_error(tmp_path: Path, arrays: dict[str, np.ndarray], shape: str):
    folder = made_run(tmp_path / "run")
    write_weights(folder / "weights-0.safetensors", "custom.relu", arrays)
    message = f"weights-0.safetensors: {FIRST_LAYER} is {shape}, expected a float matrix"
    with pytest.raises(AppError, match=re.escape(message)):
        page_of(folder)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("labels", np.full(IMAGES, 10, np.uint8)),
        ("labels", np.zeros((IMAGES, 1), np.uint8)),
        ("shown", np.array([IMAGES])),
        ("shown", np.array([0, 1])),
        ("predicted", [np.zeros(3, np.uint8)] * 2),
        ("predicted", [np.zeros(IMAGES, np.uint8)]),
        ("confidence", [np.zeros(IMAGES, np.uint8)] * 2),
        ("images", np.zeros((2, 2), np.uint8)),
        ("operators", 3),
        ("operators", []),
    ],
)
def test_answers_that_do_not_fit_together_are_an_error(tmp_path: Path, key: str, value: Any):
    arrays = load(made_run(tmp_path) / PREDICTIONS, return_numpy=True)
    save({**arrays, key: value}, tmp_path / PREDICTIONS)
    with pytest.raises(AppError, match="holds no predictions"):
        predictions.read_predictions(tmp_path)


# --- Its parts ---


def test_answers_are_read_as_they_were_kept(tmp_path: Path):
    digits = dataset()
    scores = np.random.default_rng(0).standard_normal((IMAGES, 10)).astype(np.float32)
    scores[3], scores[4, 5], scores[5, 6] = np.nan, np.inf, -np.inf
    result = predictions.predictions_of(digits, {"one": scores, "two": -scores})
    predictions.write_predictions(result, tmp_path)
    again = predictions.read_predictions(tmp_path)
    assert again is not None
    assert (again.predicted["one"] == np.where(np.arange(IMAGES) == 3, predictions.NONE, scores.argmax(1))).all()
    powers = np.exp(scores[5:].astype(float))
    np.testing.assert_allclose(again.confidence["one"][5:], powers.max(1) / powers.sum(1), rtol=1e-5)
    assert again.confidence["one"][3:5].tolist() == [0, 1]
    assert again.confusion("one").sum() == IMAGES
    assert again.confusion("one")[digits.test_labels[3], predictions.NONE] == 1
    sure = again.confidence["one"][again.wrong("one")]
    assert (np.diff(sure) <= 0).all()
    assert (again.images == digits.test_images.reshape(-1, 8, 8)[again.shown]).all()
    assert set(again.wrong("one")[: predictions.SHOWN]) <= set(again.shown)


def test_pictures_have_the_pixels_and_weights():
    pixels = np.arange(64, dtype=np.uint8).reshape(8, 8)
    assert (np.asarray(opened(pictures.digit(pixels))) == pixels).all()
    weights = np.zeros((6, 3))
    weights[0, 0], weights[5, 1] = 2.0, -1.0
    address, width, height = pictures.weights(weights, (2, 3), 2)
    sheet = np.asarray(opened(address).convert("RGBA"))
    assert sheet.shape == (2 * 3 - 1, 2 * 4 - 1, 4) == (height, width, 4)
    assert (sheet[..., 3] > 0).sum() == 2  # the others let the page shine through
    assert sheet[0, 0].tolist() == [213, 94, 0, 255]
    assert sheet[1, 6].tolist() == [0, 114, 178, 255]


@pytest.mark.parametrize("engine", ["reference", "eager"])
def test_the_first_weights_of_training_are_computed_again(engine: Any):
    config = Config(seed=3, engine=engine)
    first = make_learner(config, find_activation("relu"), 20).weights()[FIRST_LAYER]
    assert (units._first_weights(config, 20) == first).all()


@pytest.mark.parametrize(
    ("low", "high", "unit"),
    [
        *((low, high, "") for low, high in [(0, 1), (0.2, 0.21), (-3, 500), (1e-9, 2e-9), (0.9059, 0.906)]),
        *((low, high, "whole") for low, high in [(0.9, 2.1), (0.8, 5.2), (0.5, 60.0)]),
    ],
)
def test_an_axis_has_few_even_marks_inside_it(low: float, high: float, unit: str):
    marks = Axis("", low, high, unit).marks()
    assert 2 <= len(marks) <= 6
    assert all(low <= mark <= high for mark in marks)
    assert np.ptp(np.diff(marks)) < 1e-6 * (high - low)
    assert unit != "whole" or marks == [round(mark) for mark in marks]


def test_numbers_and_times_are_short():
    numbers = {1.5e29: "1.5e+29", 0.25: "0.25", 123456.0: "123,456", 3e-9: "3e-09"}
    assert {value: Axis("", 0, 1).written(value) for value in numbers} == numbers
    times = {
        0.0771: "77.1 ms",
        2.5e-7: "250 ns",
        1.0: "1 s",
        0.9996: "1 s",
        999.6: "1,000 s",
        4000.0: "4,000 s",
        None: "no number",
    }
    assert {value: seconds(value) for value in times} == times


@pytest.mark.parametrize(
    ("values", "log"),
    [([], False), ([3.0], False), ([1e308, -1e308], False), ([0.0], False), ([float("nan")], True), ([1e-6], True)],
)
def test_an_axis_can_always_be_drawn(values: list[float], log: bool):
    axis = around("", values, log=log)
    assert axis.low < axis.high
    assert axis.marks()


def test_long_curves_are_averaged_and_nan_is_a_gap():
    points = [(float(i), float("nan") if i == 5000 else float(i), float(i), float(i)) for i in range(10_000)]
    chart = Chart("long", "Long", "x", "y", [Line("a", points, 0)])
    assert len(chart.lines[0].points) <= POINTS
    drawn = as_html(draw(chart))
    path = re.findall(r'<path class="line c0" d="([^"]*)"', drawn)[-1]
    assert path.count("M") == 2
    assert "nan" not in drawn
    assert 30 < drawn.count("<rect") <= FEW


def test_a_tooltip_has_the_values_of_all_curves_at_its_place():
    one = Line("one", [(1, 0.25, 0.25, 0.25), (2, 0.5, 0.5, 0.5)], 0)
    other = Line("other", [(2, 0.75, 0.75, 0.75)], 1)
    batches = Line("batches", [(0.5, 0.1, 0.1, 0.1), (1.9, 0.4, 0.4, 0.4)], 0, faint=True)
    drawn = as_html(draw(Chart("c", "C", "epoch", "y", [batches, one, other], y_unit="share")))
    titles = re.findall(r"<title>([^<]*)</title></rect>", drawn)
    assert titles == ["epoch 1\nbatches 10 %\none 25 %", "epoch 2\nbatches 40 %\none 50 %\nother 75 %"]


def test_gradients_of_the_ends_and_parameters_of_operators_are_charts(tmp_path: Path):
    steps = {"layers.0.weight": 0.5, "layers.0.bias": 1.0, "layers.1.weight": None, "layers.2.weight": 2.0}
    others = [
        {"event": "parameters", "operator": name, "epoch": epoch, "steps": steps, "own": own}
        for name, own in (("custom.relu", {"activations.0.slope": [0.25, 0.125, 0.75]}), ("relu", {}))
        for epoch in range(2)
    ]
    page = page_of(made_run(tmp_path / "run", others=others))
    tables = tables_of(page)
    assert tables["layers.0.weight.csv"] == [["epoch", "custom.relu", "relu"], ["1", "0.5", "0.5"], ["2", "0.5", "0.5"]]
    assert tables["layers.2.weight.csv"][1] == ["1", "2", "2"]
    assert tables["activations.0.slope.csv"] == [["epoch", "custom.relu"], ["1", "0.25"], ["2", "0.25"]]
    assert "chart-layers.1.weight" not in page
    assert "chart-layers.0.bias" not in page


def test_an_image_of_a_chart_stands_alone():
    line = Line("<b>&amp; one", [(1, 1, 1, 1), (2, 2, 2, 2)], 0)
    shown = image(Chart("c", "C", "x", "y", [line]))
    picture = shown.find("img")
    assert picture is not None
    kind, _, content = picture.attrib["src"].partition(",")
    assert kind == "data:image/svg+xml;base64"
    svg = ElementTree.fromstring(base64.b64decode(content))
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    texts = [text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert "<b>&amp; one" in texts
    assert not re.search(r"(?:href|url\(|@import)", base64.b64decode(content).decode())


@pytest.mark.parametrize("faint", [False, True])
def test_a_curve_has_a_band_from_minimum_to_maximum_and_a_faint_one_has_dots(faint: bool):
    drawn = as_html(draw(Chart("c", "C", "x", "y", [Line("a", [(0, 1, 0, 2), (1, 2, 2, 2)], 3, faint)])))
    paths = dict(re.findall(r'<path class="(line|band|dots) c3[^"]*" d="([^"]*)">', drawn))
    left, right, top, middle, bottom = "60.5", "323.5", "54.7", "144.0", "233.3"
    band = f"M{left} {top}L{right} {top}L{right} {top}L{left} {bottom}Z"
    dots = f"M{left} {middle}h0M{right} {top}h0"
    assert paths == {"line": f"M{left} {middle}L{right} {top}", **({"dots": dots} if faint else {"band": band})}
    assert ('<th scope="row">0</th><td>1</td></tr><tr><th scope="row">1</th><td>2</td>' in drawn) == (not faint)


def test_text_is_escaped_and_invisible_characters_are_shown():
    assert as_html(tag("p", "<b>&\x00\u202e", class_='"')) == '<p class="&quot;">&lt;b&gt;&amp;\ufffd\ufffd</p>'
