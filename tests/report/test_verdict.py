"""What the report says of failures and of comparisons, in words and in its table."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from made_runs import add_events, change_epochs, compared, made_run

from app.errors import AppError
from app.report.record import read
from app.report.report import write_report
from app.report.sections import curves, failures
from app.report.verdict import sentences
from app.run.summary import p_value


def page_of(folder: Path) -> str:
    return write_report(folder).read_text(encoding="utf-8")


# --- Failures ---


def test_a_wrong_gradient_is_the_first_sentence(tmp_path: Path):
    words = "gradient is wrong: it is half of what it should be where x > 0 (wrong in 14 of 24 elements)"
    checked = {"event": "checked", "operator": "custom.relu", "state": "wrong", "words": words}
    folder = add_events(made_run(tmp_path / "run"), checked)
    assert sentences(read(folder))[0] == (
        f"custom.relu: {words}. It was trained anyway; its results say nothing about the operator."
    )


def test_an_operator_that_made_nan_is_shown_with_line_and_values(tmp_path: Path):
    what = "Replaying the step, operator own (my_ops.py:16) is the first ...\n  in   x  float32[8, 5]  min -1"
    event = {"event": "nonfinite", "operator": "relu", "epoch": 0, "iteration": 3, "did": "stop"}
    event |= {"where": "the loss became NaN in iteration 3 of epoch 1", "what": what}
    folder = add_events(made_run(tmp_path / "run", finished=1), event)
    assert "relu: the loss became NaN in iteration 3 of epoch 1." in sentences(read(folder))
    page = page_of(folder)
    assert "What went wrong" in page
    assert what in page


def test_steps_that_were_left_out_are_counted(tmp_path: Path):
    event = {"event": "nonfinite", "operator": "relu", "epoch": 0, "iteration": 3, "did": "skip", "what": ""}
    folder = add_events(made_run(tmp_path / "run"), *[{**event, "where": "the loss became inf"}] * 3)
    assert "relu: the loss became inf. This happened 3 times." in sentences(read(folder))
    assert failures.section(read(folder)) is None  # nothing was looked into


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        (None, "relu diverged: the loss is NaN or infinite (chance level is 2.303)."),
        (3e28, "the loss is up to 3e+28 ("),
    ],
)
def test_a_network_that_diverged_is_said_to(tmp_path: Path, loss: float | None, told: str):
    folder = change_epochs(made_run(tmp_path / "run"), "relu", test_loss=loss)
    first, *others = sentences(read(folder))
    assert told in first
    assert not any("sign test" in sentence for sentence in others)


def test_a_network_at_chance_level_is_said_to_be(tmp_path: Path):
    folder = change_epochs(made_run(tmp_path / "run"), "relu", test_accuracy=0.105)
    assert "relu is at chance level (10 %)." in sentences(read(folder))
    assert not any("chance level" in words for words in sentences(read(made_run(tmp_path / "other"))))


def test_a_loss_over_many_magnitudes_has_a_logarithmic_axis(tmp_path: Path):
    calm, wild = made_run(tmp_path / "calm"), change_epochs(made_run(tmp_path / "wild"), "relu", test_loss=4e20)
    for folder, log in ((calm, False), (wild, True)):
        section = curves.section(read(folder))
        assert section is not None
        assert section.charts[0].log_y is log


def test_an_unfinished_run_is_not_tested(tmp_path: Path):
    assert not any("sign test" in words for words in sentences(read(made_run(tmp_path / "run", finished=2))))


@pytest.mark.parametrize(("p", "words"), [(0.0, "p < 0.0001"), (1e-300, "p < 0.0001"), (0.034, "p = 0.034")])
def test_no_p_is_said_to_be_zero(p: float, words: str):
    assert p_value(p) == words


# --- Comparisons ---


def test_a_comparison_begins_with_what_it_came_to(tmp_path: Path):
    record = read(compared(tmp_path / "run", ("relu", "custom.relu", "tanh", "sigmoid", "elu")))
    assert sentences(record)[0] == (
        "With 3 seeds: sigmoid and elu differ from relu in test accuracy; custom.relu has the same weights as relu, "
        "bit for bit; tanh does not differ significantly from relu in test accuracy."
    )


def test_the_table_is_ranked_and_in_one_unit(tmp_path: Path):
    page = page_of(compared(tmp_path / "run", ("sigmoid", "custom.relu", "tanh", "relu")))
    table = page[page.index('<table class="ranking">') : page.index("</table>")]
    text = re.sub(r"<svg.*?</svg>", "", table)
    rows = [re.sub(r"\s*<[^>]+>\s*", "|", row).strip("|") for row in re.findall(r"<tr class.*?</tr>", text)]
    cells = [re.split(r"\|+", row) for row in rows]
    assert [row[:3] for row in cells] == [
        ["1", "sigmoid", "90.10 % ± 0.10"],
        ["2", "custom.relu", "88.10 % ± 0.10"],
        ["3", "tanh", "86.10 % ± 0.10"],
        ["4", "relu", "84.10 % ± 0.10"],
    ]
    assert [row[3] for row in cells] == ["–", "same", "cannot tell", "differs"]
    assert cells[3][4:6] == ["-6.00 (-7.00 to -5.00)", "p &lt; 0.0001"]
    assert table.count('class="forest"') == 5  # an interval of each claim that was tested
    assert "Accuracies are means and standard deviations over 3 seeds." in page


def test_one_seed_has_no_interval(tmp_path: Path):
    page = page_of(compared(tmp_path / "run", seeds=1))
    assert "One seed does not show how results vary between seeds: use --seeds 5." in page
    assert 'class="reach"' not in page


def changed(folder: Path, **parts: object) -> Path:
    """A comparison some parts of which were edited."""
    kept = json.loads((compared(folder) / "comparison.json").read_text(encoding="utf-8"))
    (folder / "comparison.json").write_text(json.dumps(kept | parts), encoding="utf-8")
    return folder


def test_a_comparison_that_finished_no_seed_has_no_table(tmp_path: Path):
    assert read(changed(tmp_path / "run", seeds=[], differences=[])).comparison is None


@pytest.mark.parametrize(
    "change", [{"first": "gelu"}, {"seeds": [0]}, {"results": {}}, {"differences": [{}]}, {"differences": []}]
)
def test_a_comparison_that_does_not_fit_together_is_refused(tmp_path: Path, change: dict[str, object]):
    folder = changed(tmp_path / "run", **change)
    with pytest.raises(AppError, match="is damaged or was edited"):
        read(folder)
