"""The report without a browser: what is read from a run's folder, what is said of it, and what becomes of damage."""

from __future__ import annotations

import base64
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_runs import HOSTILE, IMAGES, add_events, change_epochs, dataset, made_run
from PIL import Image

from app.__main__ import main
from app.errors import AppError
from app.report import pictures
from app.report.axes import Axis, around
from app.report.charts import POINTS, Chart, Line, data, draw
from app.report.markup import as_html, tag
from app.report.record import FIRST_LAYER, read
from app.report.report import write_report
from app.report.sections import units
from app.report.verdict import sentences
from app.run import answers
from app.run.config import Config
from app.run.folder import ANSWERS, write_weights
from app.run.learners import make_learner
from app.run.network import find_activation
from app.run.wording import seconds

# --- The command, and what it writes ---


def test_the_command_makes_both_files_from_the_folder_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = made_run(tmp_path / "run")
    assert main(["report", str(folder)]) == 0
    assert capsys.readouterr().out == f"The report is {folder}/report.html\n"
    picture = Image.open(folder / "curves.png")
    assert picture.width > 1000
    assert {(0, 99, 166), (189, 75, 0)} <= {colour for _, colour in picture.getcolors(1 << 16)}  # of both operators
    first = (folder / "report.html").read_bytes()
    assert main(["report", str(folder)]) == 0
    assert (folder / "report.html").read_bytes() == first


@pytest.mark.parametrize("made", [Path.mkdir, Path.touch, lambda path: None])
def test_what_is_no_run_is_refused(tmp_path: Path, made: Any, capsys: pytest.CaptureFixture[str]):
    made(tmp_path / "run")
    assert main(["report", str(tmp_path / "run")]) == 1
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}/run")


def test_what_lies_in_a_run_is_never_run(tmp_path: Path):
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\n")
    write_report(made_run(tmp_path / "run", (f"{trap}:f", "relu")))
    assert not (tmp_path / "sprung").exists()


def test_the_page_holds_no_address_but_its_own_pictures(tmp_path: Path):
    page = write_report(made_run(tmp_path / "run")).read_text(encoding="utf-8")
    assert re.search(r"<dd>\d+ training images, \d+ test images of \d+ × \d+ pixels", page)
    sources = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert all(source.startswith(("data:", "#")) for source in sources)
    assert len(page) < 200_000


def test_data_in_the_page_cannot_end_the_element_that_holds_it(tmp_path: Path):
    page = write_report(made_run(tmp_path / "run", (HOSTILE, "relu"))).read_text(encoding="utf-8")
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(page)
    assert tags.count("script") == 2
    assert tags.count("img") == page.count("data:image/png")
    held = page.partition('id="data">')[2].partition("</script>")[0]
    assert json.loads(held)["chart-time"]["lines"][0]["name"] == HOSTILE


# --- What it says ---


def test_operators_that_are_equal_are_said_to_be(tmp_path: Path):
    said = sentences(read(made_run(tmp_path / "run", alike=True)))
    assert said[0] == "custom.relu and relu both classify 70.00 % of the 200 test digits correctly."
    assert said[1] == "The networks give the same answer for all 200 images."
    assert said[2].endswith(" (median), a ratio of 1.00 (0.92 to 1.09); the difference is not significant.")


def test_networks_that_disagree_are_judged_by_the_sign_test(tmp_path: Path):
    record = read(made_run(tmp_path / "run"))
    found = record.answers
    assert found is not None
    one, other = found.right("custom.relu"), found.right("relu")
    said = sentences(record)[1]
    assert said.startswith(f"The networks disagree on {len(found.disputed())} images: only custom.relu is right on ")
    assert f"on {(one & ~other).sum()}, only relu on {(other & ~one).sum()}." in said
    assert "The difference between these two networks is not significant (sign test, p = " in said
    assert sentences(record)[2] == (
        "An epoch takes 500 ms with custom.relu and 600 ms with relu (median), a ratio of 0.83 (0.76 to 0.91); "
        "the difference is significant."
    )


def test_a_run_that_was_stopped_has_a_report_of_what_it_had(tmp_path: Path):
    record = read(made_run(tmp_path / "run", finished=1))
    assert "The run was stopped early. Finished epochs, out of 3: custom.relu 1, relu 1." in sentences(record)
    write_report(record.folder)


def test_answers_of_other_weights_than_those_measured_are_told(tmp_path: Path):
    folder = made_run(tmp_path / "run")
    told = "which are later than the last full epoch"
    assert told in write_report(folder).read_text(encoding="utf-8")
    found = read(folder).answers
    assert found is not None
    for operator in ("custom.relu", "relu"):
        change_epochs(folder, operator, test_accuracy=float(found.right(operator).mean()))
    assert told not in write_report(folder).read_text(encoding="utf-8")


def test_a_run_that_ended_before_the_baseline_began_is_a_run_against_it(tmp_path: Path):
    folder = made_run(tmp_path / "run", finished=0, costs=False)
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    first, other = read(folder).operators
    kept = [line for line in lines if json.loads(line).get("operator") != other]
    (folder / "metrics.jsonl").write_text("".join(kept))
    assert f"<h1>{first} against {other}</h1>" in write_report(folder).read_text(encoding="utf-8")


def test_a_run_that_was_killed_at_once_has_one_too_without_the_answers_of_untrained_networks(tmp_path: Path):
    folder = made_run(tmp_path / "run", finished=0, costs=False)
    (folder / "metrics.jsonl").write_text((folder / "metrics.jsonl").read_text() + '{"event": "iteration", "oper')
    assert sentences(read(folder)) == ["No epoch finished, so there are no results."]
    page = write_report(folder).read_text(encoding="utf-8")
    assert re.findall(r'<section aria-labelledby="[^"]*" id="(\w+)"|<section id="(\w+)"', page)
    assert "Mistakes" not in page


def test_several_seeds_are_one_curve_with_a_band(tmp_path: Path):
    record = read(made_run(tmp_path / "run", seeds=(0, 1, 2)))
    assert sentences(record)[0].endswith(
        "custom.relu 71.00 % ± 1.00, relu 73.00 % ± 1.00 (mean ± standard deviation over 3 seeds)."
    )
    page = write_report(record.folder).read_text(encoding="utf-8")
    assert page.count('class="band') >= 4


# --- Damage ---


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("[1]", "metrics.jsonl, line 2"),
        ('{"event": "epoch", "operator": "relu", "epoch": -1}', "metrics.jsonl, line 2"),
        ('{"event": "epoch", "operator": "\\ud800"}', "metrics.jsonl, line 2"),
        ('{"event": "cost", "operator": 3, "size": 1, "forward": 1, "backward": 1}', "Expected `str`"),
        ("\0" * 50, "metrics.jsonl, line 2"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str, problem: str):
    folder = made_run(tmp_path / "run")
    first, *others = (folder / "metrics.jsonl").read_text().splitlines()
    (folder / "metrics.jsonl").write_text("\n".join([first, line, *others, ""]))
    with pytest.raises(AppError, match=re.escape(problem)):
        read(folder)


def test_events_of_other_kinds_are_passed_over(tmp_path: Path):
    folder = add_events(made_run(tmp_path / "run"), {"event": "something new", "operator": 7})
    assert len(read(folder).epochs) == 6


@pytest.mark.parametrize("name", [ANSWERS, "weights-0.safetensors", "comparison.json", "operators.json"])
@pytest.mark.parametrize("content", [b"", b"\x80\x04.", b"{" * 100, bytes(200)])
def test_a_damaged_file_is_named(tmp_path: Path, name: str, content: bytes):
    folder = made_run(tmp_path / "run")
    (folder / name).write_bytes(content)
    with pytest.raises(AppError, match=re.escape(name)):
        read(folder)


@pytest.mark.parametrize(
    ("arrays", "found"),
    [
        ({"other": np.zeros(1)}, "missing"),
        ({FIRST_LAYER: np.zeros([1, 2, 3])}, "float64[1, 2, 3]"),
        ({FIRST_LAYER: np.zeros([3, 3], np.int8)}, "int8[3, 3]"),
    ],
)
def test_weights_without_a_first_layer_are_refused(tmp_path: Path, arrays: dict[str, np.ndarray], found: str):
    folder = made_run(tmp_path / "run")
    write_weights(folder / "weights-0.safetensors", "custom.relu", arrays)
    told = f"weights-0.safetensors: {FIRST_LAYER} is {found}, expected a float matrix"
    with pytest.raises(AppError, match=re.escape(told)):
        read(folder)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("labels", np.full(IMAGES, 10, np.uint8)),
        ("labels", np.zeros((IMAGES, 1), np.uint8)),
        ("shown", np.array([IMAGES])),
        ("shown", np.array([0, 1])),
        ("predicted", [np.zeros(3, np.uint8)] * 2),
        ("predicted", [np.zeros(IMAGES, np.uint8)]),
        ("sureness", [np.zeros(IMAGES, np.uint8)] * 2),
        ("images", np.zeros((2, 2), np.uint8)),
        ("operators", 3),
        ("operators", []),
    ],
)
def test_answers_that_do_not_fit_together_are_refused(tmp_path: Path, key: str, value: Any):
    from app.saving import load, save

    folder = made_run(tmp_path / "run")
    kept = load(folder / ANSWERS, return_numpy=True)
    save({**kept, key: value}, folder / ANSWERS)
    with pytest.raises(AppError, match="holds no predictions"):
        answers.read(folder)


# --- Its parts ---


def test_answers_are_kept_as_they_are(tmp_path: Path):
    digits = dataset()
    scores = np.random.default_rng(0).standard_normal((IMAGES, 10)).astype(np.float32)
    scores[3] = np.nan
    found = answers.answers(digits, {"one": scores, "two": -scores})
    answers.keep(found, tmp_path)
    again = answers.read(tmp_path)
    assert again is not None
    assert (again.predicted["one"] == np.where(np.arange(IMAGES) == 3, answers.NONE, scores.argmax(1))).all()
    powers = np.exp(scores.astype(float))
    np.testing.assert_allclose(again.sureness["one"][4:], (powers.max(1) / powers.sum(1))[4:], rtol=1e-5)
    assert again.confusion("one").sum() == IMAGES
    assert again.confusion("one")[digits.test_labels[3], answers.NONE] == 1
    sure = again.sureness["one"][again.wrong("one")]
    assert (np.diff(sure) <= 0).all()
    assert (again.images == digits.test_images.reshape(-1, 8, 8)[again.shown]).all()
    assert set(again.wrong("one")[: answers.SHOWN]) <= set(again.shown)


def test_pictures_show_what_they_are_of():
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


def opened(address: str) -> Any:
    return Image.open(io.BytesIO(base64.b64decode(address.removeprefix("data:image/png;base64,"))))


@pytest.mark.parametrize("engine", ["reference", "eager"])
def test_the_weights_that_training_began_with_are_known(engine: Any):
    config = Config(seed=3, engine=engine)
    first = make_learner(config, find_activation("relu"), 20).weights()[FIRST_LAYER]
    assert (units._first_weights(config, 20) == first).all()


@pytest.mark.parametrize(("low", "high"), [(0.9, 2.1), (0.8, 5.2), (0.5, 60.0)])
def test_epochs_have_whole_marks(low: float, high: float):
    marks = Axis("", low, high, "whole").marks()
    assert marks == [round(mark) for mark in marks]
    assert len(marks) >= 2


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.2, 0.21), (-3, 500), (1e-9, 2e-9), (0.9059, 0.906)])
def test_an_axis_has_few_even_marks_inside_it(low: float, high: float):
    marks = Axis("", low, high).marks()
    assert 2 <= len(marks) <= 6
    assert all(low <= mark <= high for mark in marks)
    assert np.ptp(np.diff(marks)) < 1e-9 * (high - low) * 1e3


def test_numbers_are_short_and_times_in_the_unit_that_suits_them():
    numbers = {1.5e29: "1.5e+29", 0.25: "0.25", 123456.0: "123,456", 3e-9: "3e-09"}
    assert {value: Axis("", 0, 1).written(value) for value in numbers} == numbers
    times = {0.0771: "77.1 ms", 2.5e-7: "250 ns", 1.0: "1 s", 4000.0: "4,000 s", None: "no number"}
    assert {value: seconds(value) for value in times} == times


@pytest.mark.parametrize(
    ("values", "log"),
    [([], False), ([3.0], False), ([1e308, -1e308], False), ([0.0], False), ([float("nan")], True), ([1e-6], True)],
)
def test_an_axis_can_always_be_drawn(values: list[float], log: bool):
    axis = around("", values, log=log)
    assert axis.low < axis.high
    assert axis.marks()


def test_long_curves_are_brought_together_and_holes_are_left_open():
    points = [(float(i), float("nan") if i == 5000 else float(i), float(i), float(i)) for i in range(10_000)]
    chart = Chart("long", "Long", "x", "y", [Line("a", points, 0)])
    assert len(data(chart)["lines"][0]["x"]) <= POINTS
    assert None in data(chart)["lines"][0]["y"]
    assert as_html(draw(chart)).count("M", 0) >= 2
    json.dumps(data(chart), allow_nan=False)


@pytest.mark.parametrize("faint", [False, True])
def test_a_curve_has_a_band_of_its_minimum_and_maximum_and_a_faint_one_has_dots(faint: bool):
    drawn = as_html(draw(Chart("c", "C", "x", "y", [Line("a", [(0, 1, 0, 2), (1, 2, 2, 2)], 3, faint)])))
    paths = dict(re.findall(r'<path class="(line|band|dots) c3[^"]*" d="([^"]*)" data-line="3">', drawn))
    band, dots = "M37.04 53.57L962.96 53.57L962.96 53.57L37.04 946.43Z", "M37.04 500h0M962.96 53.57h0"
    assert paths == {"line": "M37.04 500L962.96 53.57", **({"dots": dots} if faint else {"band": band})}
    assert ('<th scope="row">0</th><td>1</td></tr><tr><th scope="row">1</th><td>2</td>' in drawn) == (not faint)


def test_text_is_text_and_what_is_not_seen_is_shown():
    assert as_html(tag("p", "<b>&\x00\u202e", class_='"')) == '<p class="&quot;">&lt;b&gt;&amp;\ufffd\ufffd</p>'
